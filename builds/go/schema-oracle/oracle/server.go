package main

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"
)

var scheme = runtime.NewScheme()

func init() {
	install.Install(scheme)
}

// definition is a CustomResourceDefinition as the API server serves it.
type definition struct {
	versions map[string]*version
}

type version struct {
	schema    *schema.Structural
	validator validation.SchemaCreateValidator
	rules     *cel.Validator
	types     managedfields.TypeConverter
}

func defined(raw []byte) (*definition, []string) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	strict, err := kjson.UnmarshalStrict(raw, crd)
	if err != nil || len(strict) > 0 {
		return nil, []string{fmt.Sprint(err, strict)}
	}
	scheme.Default(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(crd, internal, nil); err != nil {
		return nil, []string{err.Error()}
	}
	if found := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(found) > 0 {
		return nil, texts(found)
	}
	result := &definition{versions: map[string]*version{}}
	for _, served := range crd.Spec.Versions {
		if !served.Served {
			continue
		}
		if result.versions[served.Name], err = serve(crd, internal, served.Name); err != nil {
			return nil, []string{err.Error()}
		}
	}
	return result, nil
}

func serve(crd *apiextensionsv1.CustomResourceDefinition, internal *apiextensions.CustomResourceDefinition, name string) (*version, error) {
	given, err := apiextensions.GetSchemaForVersion(internal, name)
	if err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(given.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(given.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	models, err := builder.BuildOpenAPIV3(crd, name, builder.Options{})
	if err != nil {
		return nil, err
	}
	types, err := managedfields.NewTypeConverter(models.Components.Schemas, crd.Spec.PreserveUnknownFields)
	if err != nil {
		return nil, err
	}
	return &version{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit), types}, nil
}

func (d *definition) judge(raw []byte) verdict {
	content := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		return verdict{Errors: []string{err.Error()}}
	}
	obj := &unstructured.Unstructured{Object: content}
	served := d.versions[obj.GroupVersionKind().Version]
	if served == nil {
		return verdict{Errors: []string{"the version is not served"}}
	}
	said := verdict{Apply: served.applied(obj.DeepCopy())}
	said.create(served, obj)
	return said
}

// applied is what a server-side apply does with a manifest first (managedfields.FieldManager.Apply).
func (v *version) applied(obj *unstructured.Unstructured) string {
	if _, err := v.types.ObjectToTyped(obj); err != nil {
		return err.Error()
	}
	return ""
}

// create follows crdHandler: unstructuredSchemaCoercer, unstructuredDefaulter, then customResourceStrategy.Validate.
func (said *verdict) create(v *version, obj *unstructured.Unstructured) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(obj.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		said.Errors = []string{err.Error()}
		return
	}
	said.Unknown = append(unknown, pruning.PruneWithOptions(obj.Object, v.schema, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, v.schema)
	coerced, unknown := objectmeta.CoerceWithOptions(nil, obj.Object, v.schema, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	said.Unknown = append(said.Unknown, unknown...)
	if coerced != nil {
		said.Errors = []string{coerced.Error()}
		return
	}
	if found {
		if err := objectmeta.SetObjectMeta(obj.Object, meta); err != nil {
			said.Errors = []string{err.Error()}
			return
		}
	}
	defaulting.Default(obj.Object, v.schema)
	errors := validation.ValidateCustomResource(nil, obj.Object, v.validator)
	errors = append(errors, objectmeta.Validate(nil, obj.Object, v.schema, false)...)
	errors = append(errors, listtype.ValidateListSetsAndMaps(nil, v.schema, obj.Object)...)
	said.Errors = texts(errors)
	if len(errors) == 0 && v.rules != nil {
		broken, _ := v.rules.Validate(context.Background(), nil, v.schema, obj.Object, nil, celconfig.RuntimeCELCostBudget)
		said.Rules = texts(broken)
	}
}

func texts(errors field.ErrorList) []string {
	var result []string
	for _, err := range errors {
		result = append(result, err.Error())
	}
	return result
}
