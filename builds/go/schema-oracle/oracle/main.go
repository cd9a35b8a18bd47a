// Oracle says what an API server would say of custom resources: it runs the packages with which kube-apiserver itself
// checks CustomResourceDefinitions and their objects, in the order of a create and of a server-side apply.
//
// Each line of the input is {"definition": CRD, "objects": [...]}. Each line of the output is
// {"definition": [errors], "objects": [{"unknown": [paths], "errors": [...], "rules": [...], "apply": "..."}, ...]}:
// `unknown` is what strict field validation reports, `errors` are those of a create, `rules` those of CEL, and `apply` is
// the error of a server-side apply before anything is merged. All are empty for what the API server accepts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type question struct {
	Definition json.RawMessage   `json:"definition"`
	Objects    []json.RawMessage `json:"objects"`
}

type answer struct {
	Definition []string  `json:"definition"`
	Objects    []verdict `json:"objects"`
}

type verdict struct {
	Unknown []string `json:"unknown"`
	Errors  []string `json:"errors"`
	Rules   []string `json:"rules"`
	Apply   string   `json:"apply"`
}

func main() {
	input, output := bufio.NewReaderSize(os.Stdin, 1<<20), json.NewEncoder(os.Stdout)
	decoder := json.NewDecoder(input)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := output.Encode(judged(asked)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func judged(asked question) answer {
	crd, problems := defined(asked.Definition)
	said := answer{Definition: problems}
	if len(problems) > 0 {
		return said
	}
	for _, object := range asked.Objects {
		said.Objects = append(said.Objects, crd.judge(object))
	}
	return said
}
