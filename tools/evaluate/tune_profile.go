package evaluate

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/configs"
)

// WriteProfile writes a configuration with the profile "tuned", which has the
// keys that a setting changes, and an entry of matrices. Lines of the comment
// go before it.
func WriteProfile(w io.Writer, s *Setting, matrix configs.Matrix, comment string) error {
	changed, err := changes(s.Rewriting)
	if err != nil {
		return err
	}
	changed["matrices"] = []string{matrix.Name}
	type object = map[string]any
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(object{
		"profiles": object{"tuned": changed},
		"matrices": []object{{"name": matrix.Name, "indices": matrix.Indices, "fields": matrix.Fields, "file": matrix.File}},
	}); err != nil {
		return err
	}
	for line := range bytes.Lines([]byte(comment)) {
		if _, err := fmt.Fprintf(w, "# %s\n", bytes.TrimSpace(line)); err != nil {
			return err
		}
	}
	_, err = text.WriteTo(w)
	return err
}

// changes returns the keys whose values are not the defaults.
func changes(r configs.Rewriting) (map[string]any, error) {
	var of [2]map[string]any
	for k, r := range []configs.Rewriting{configs.Default().Expansion.Rewriting, r} {
		text, err := yaml.Marshal(r)
		if err == nil {
			err = yaml.Unmarshal(text, &of[k])
		}
		if err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(of[1], func(key string, value any) bool { return reflect.DeepEqual(value, of[0][key]) })
	return of[1], nil
}
