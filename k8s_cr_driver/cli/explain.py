# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr explain`: what a code of `validate` means, why it is a finding, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import click

from k8s_cr_driver.objects.fields import similar


class Explanation(NamedTuple):
    title: str
    why: str
    remedy: str


CODES: Mapping[str, Explanation] = {
    "alternatives": Explanation(
        "Files of which a request names one",
        "Several manifest files have the same object, or an object for the same VDU, as the variants of a package have. An "
        "operation that is given all of them is refused.",
        "Name the files of each choice in a request*.json in the package: each is checked then. If it is no choice, remove "
        "one, or annotate exactly one object with k8s-cr-driver/vdu.",
    ),
    "count": Explanation(
        "A count that an instantiate would refuse",
        "The count in the manifest, or at a level of the VNFD, is none that the kind or the VDU's profile allows.",
        "Change the count, the level, or min_number_of_instances and max_number_of_instances of the VDU's vdu_profile.",
    ),
    "crd": Explanation(
        "A CustomResourceDefinition that the API server refuses",
        "Its name, its names, its versions or its schema break a rule of apiextensions.k8s.io. The instantiate would fail with "
        "its first write.",
        "Generate the CRD again from its source, as with controller-gen, or correct the field that the sentence names.",
    ),
    "health-rule": Explanation(
        "A readiness rule that may not do what it says",
        "It can be read, and names a field or a kind that there is not, so that it never decides.",
        "Correct the expression; k8s-cr health --explain shows what each rule has decided.",
    ),
    "hook": Explanation(
        "A hook of Helm among the manifests",
        "`helm template` prints tests and the Jobs of a deletion like everything else. They are not applied, unless the "
        "request has the parameter helm-hooks.",
        "Take the object out of the package, or make the package with k8s-cr init, which puts hooks in order.",
    ),
    "kind": Explanation(
        "A kind that the cluster may not have",
        "It is neither built-in, nor does a CRD of the package define it, or Kubernetes serves it no longer in this version.",
        "Write the apiVersion that the sentence names, add the CRD, or see that the cluster has it before the instantiate.",
    ),
    "leftover": Explanation(
        "A template that nobody has rendered",
        "`{{ }}` is of Helm, and a kustomization is of kubectl: the driver applies manifests as they are written.",
        "Render it first: k8s-cr init FOLDER --from CHART-OR-KUSTOMIZATION.",
    ),
    "management-driver": Explanation(
        "A management driver that Tacker could not run",
        "Tacker calls the script of an interface's artifact at the start and the end of an operation.",
        "Correct the artifact in the VNFD, or add the script to the package.",
    ),
    "manifest": Explanation(
        "A document that is no object, or none that can be applied",
        "Each document of a manifest file is one Kubernetes object: a mapping with apiVersion, kind and metadata.name.",
        "Correct the document at the line that is named.",
    ),
    "network": Explanation(
        "A network attachment that does not fit",
        "The annotation k8s.v1.cni.cncf.io/networks names a NetworkAttachmentDefinition; the Pod stays in ContainerCreating "
        "without it.",
        "Correct the name, or add the NetworkAttachmentDefinition to the package.",
    ),
    "node-cluster": Explanation(
        "Servers that cannot become a cluster",
        "The request, or the VNFD, does not have what a management driver of node clusters needs.",
        "Correct the field that is named; the tutorials have a whole request.",
    ),
    "order": Explanation(
        "Objects that wait for each other",
        "An object waits for those that it names in config.kubernetes.io/depends-on. These references are wrong, or a cycle.",
        "Correct the annotation, or take one of the references out.",
    ),
    "parameter": Explanation(
        "A parameter that is not as it seems",
        "A reference ${NAME} without a value is checked with a sample, and one in the form of a shell is left as it is.",
        "Write the value in request.json, give it with --param NAME=VALUE, or write ${NAME:=default}.",
    ),
    "reference": Explanation(
        "A reference to an object that the package does not have",
        "Pods wait without end for a ConfigMap, a Secret, a ServiceAccount or a claim that is not there.",
        "Correct the name, add the object, or see that it is on the cluster before.",
    ),
    "request": Explanation(
        "A request that does not fit the package",
        "Its flavour, files, parameters or keys are none that the package, or the driver, has.",
        "Correct the field of the request.",
    ),
    "scaling": Explanation(
        "Scaling policies that do not fit together",
        "Tacker reads them when an instance is scaled, and not at the onboarding.",
        "Correct the policy of the VNFD: SOL001, Policy types.",
    ),
    "schema": Explanation(
        "A field that the API server refuses, or would drop",
        "The schema of the CRD, or Kubernetes itself for a built-in kind, has no such field, or another type for it.",
        "Correct the field. For a built-in kind that only a newer Kubernetes knows, install a newer driver.",
    ),
    "script": Explanation(
        "A script that is not the driver's own",
        "It has the name of one of this project's scripts, and another text.",
        "Remove it, and k8s-cr package adds that of the installed driver.",
    ),
    "tacker": Explanation(
        "The package would not be onboarded",
        "Tacker's own TOSCA parser refuses the VNFD.",
        "Correct what the parser names; k8s-cr init makes a VNFD that it accepts.",
    ),
    "tosca-meta": Explanation(
        "TOSCA.meta, or a file that it names, is wrong",
        "Tacker reads the CSAR by TOSCA-Metadata/TOSCA.meta, and compares the hashes that it gives.",
        "Correct the block. k8s-cr package fills in the blocks of files that have none.",
    ),
    "unread": Explanation(
        "A file that is not checked",
        "It is beside the manifests, and is none by its name, or is part of a Helm chart.",
        "Rename it, name it with --file, or move it out of Files/kubernetes.",
    ),
    "update": Explanation(
        "A change of package cannot take this over",
        "Instances of the old package have what the new one would have to delete, or what cannot be changed on a live object.",
        "Annotate the object with k8s-cr-driver/replace: true, or keep the field as it was.",
    ),
    "vdu": Explanation(
        "A VDU that is no object, or several",
        "The object of a VDU has the name of the VDU's node, or the annotation k8s-cr-driver/vdu.",
        "Annotate exactly one object with k8s-cr-driver/vdu.",
    ),
    "vnfd": Explanation(
        "The VNFD cannot be used",
        "The files below Definitions are no service templates, or miss a flavour, an import or a type.",
        "Correct the file at the line that is named.",
    ),
}


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Say what CODE, which `validate` prints behind a finding, means; without it, list all codes.

    What it is about, why it is a finding, and what to do.
    """
    if code is None:
        for name, about in CODES.items():
            click.echo(f"{name:18} {about.title}")
        return
    if code not in CODES:
        near = similar(code, CODES)
        raise click.UsageError(f"{code}: is no code; " + (f"did you mean {near}?" if near else "k8s-cr explain lists them"))
    about = CODES[code]
    click.echo(f"{code}: {about.title}\n\nWhy:  {about.why}\nDo:   {about.remedy}")
