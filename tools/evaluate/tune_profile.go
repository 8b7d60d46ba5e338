package evaluate

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
)

// WriteProfile writes a configuration with the profile "tuned", which has the
// keys that a setting changes, and an entry of matrices. Lines of the comment
// go before it.
func WriteProfile(w io.Writer, s *expand.Profile, matrix configs.Matrix, comment string) error {
	changed := changes(s)
	changed["matrices"] = []string{matrix.Name}
	for line := range strings.Lines(comment) {
		if _, err := fmt.Fprintf(w, "# %s\n", strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	type object = map[string]any
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	return encoder.Encode(object{
		"profiles": object{"tuned": changed},
		"matrices": []object{{"name": matrix.Name, "indices": matrix.Indices, "fields": matrix.Fields, "file": matrix.File}},
	})
}

// changes returns the keys whose values are not the defaults.
func changes(p *expand.Profile) map[string]any {
	usual := expand.DefaultProfile()
	keys, defaults := configs.Keys(p), configs.Keys(&usual)
	maps.DeleteFunc(keys, func(key string, value any) bool { return reflect.DeepEqual(value, defaults[key]) })
	return keys
}
