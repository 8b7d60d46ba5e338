package configs

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// secrets lets cmp look into a Secret.
var secrets = cmp.AllowUnexported(Secret{})

// required is the default of a key that has none.
const required = "required"

// keys returns every key that holds a value, with its default in YAML. The
// keys of the entries of lists stand under "matrices[]", "weights[]",
// "expansion.segments[]" and "expansion.trials[]", the only key of profiles' own under "profiles.NAME".
func keys(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	walk(t, "", reflect.ValueOf(*Default()), all)
	walk(t, "matrices[]", reflect.ValueOf(defaultMatrix()), all)
	walk(t, "weights[]", reflect.ValueOf(defaultMatrix()), all)
	all["matrices[].name"], all["weights[].name"] = required, required
	walk(t, "expansion.segments[]", reflect.ValueOf(defaultSegments()), all)
	all["expansion.segments[].field"] = required
	walk(t, "expansion.trials[]", reflect.ValueOf(defaultTrial()), all)
	all["expansion.trials[].name"], all["expansion.trials[].arms"] = required, required
	all["profiles.NAME.matrices"] = "[]" // the others are those of expansion
	return all
}

func walk(t *testing.T, key string, v reflect.Value, all map[string]string) {
	t.Helper()
	keys := keysOf(v)
	fields, names := fieldsOf(v)
	for _, name := range names {
		f := fields[name]
		if f.isSection() {
			walk(t, join(key, name), f.Value, all)
			continue
		}
		if h, ok := keys[name].(expand.Disclosure); ok {
			keys[name] = hidden(h)
		}
		out, err := yaml.Marshal(keys[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[join(key, name)] = strings.TrimSpace(string(out))
	}
}

// hidden returns the value as the file has it.
func hidden(h expand.Disclosure) any {
	if h == expand.DiscloseSecured {
		return "auto"
	}
	names := []string{}
	for i, name := range []string{"profile", "explain", "validate"} {
		if h&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// content returns a file.
func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

// sameYAML reports whether two pieces of YAML stand for the same value.
func sameYAML(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := yaml.Unmarshal([]byte(a), &x); err != nil {
		t.Errorf("%q: %v", a, err)
	}
	if err := yaml.Unmarshal([]byte(b), &y); err != nil {
		t.Errorf("%q: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

func TestReferenceFileIsTheDefault(t *testing.T) {
	c, err := Parse("akin.yml", content(t, "akin.yml"))
	must(t, err)
	if diff := cmp.Diff(Default(), c, secrets, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("akin.yml differs from Default (-default +file):\n%s", diff)
	}
}

// TestReferenceFileExplainsEveryKey reads the comments: above each key that
// holds a value stands "Default: X.".
func TestReferenceFileExplainsEveryKey(t *testing.T) {
	data := content(t, "akin.yml")
	stated := regexp.MustCompile(`^(?:#.*\n)*# Default: (.*)\.$`)
	d := newDecoder("akin.yml")
	d.document(data, Default())
	lines := strings.Split(string(data), "\n")
	for key, want := range keys(t) {
		if strings.Contains(key, "[].") || strings.HasPrefix(key, "profiles.NAME.") {
			continue // In the comment of the list or of profiles; the examples have them.
		}
		line, ok := d.lines[key]
		if !ok {
			t.Errorf("%s is missing", key)
			continue
		}
		m := stated.FindStringSubmatch(commentAbove(lines, line))
		if m == nil {
			t.Errorf("line %d: the comment above %s does not end in its default", line, key)
		} else if !sameYAML(t, m[1], want) {
			t.Errorf("line %d: %s: the comment has the default %s, the code %s", line, key, m[1], want)
		}
	}
}

// commentAbove returns the comment that ends right above line, from 1.
func commentAbove(lines []string, line int) string {
	var c []string
	for i := line - 2; i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "#"); i-- {
		c = append([]string{strings.TrimSpace(lines[i])}, c...)
	}
	return strings.Join(c, "\n")
}

// TestReferenceExamplesLoad uncomments the examples and loads each by itself.
func TestReferenceExamplesLoad(t *testing.T) {
	data := content(t, "akin.yml")
	var example strings.Builder
	for line := range strings.Lines(string(data)) {
		text, ok := strings.CutPrefix(line, "#")
		if setting := regexp.MustCompile(`^( {2,6}(- )?)?[a-z_]+:`).MatchString(text); ok && setting {
			example.WriteString(text)
		}
	}
	c, err := Parse("examples", []byte(example.String()))
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, example.String())
	}
	want := Default()
	want.Matrices = []Matrix{
		{Name: "catalogue", Indices: []string{"catalogue", "products-*", "-products-old"}, Fields: []string{"title", "description"}, File: "catalogue.akin"},
		{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}},
	}
	want.Weights = []Matrix{{Name: "body-weights", Indices: []string{"catalogue"}, Fields: []string{"title"}, File: "weights.akin"}}
	first := form.Segments{Path: "segments", Text: "segments.text", Position: "segments.position", Share: "segments.share"}
	first.Field, first.Aggregate = "body", form.FirstHeavy
	want.Expansion.Segments = []form.Segments{first}
	want.Vectors = []string{"model.akin"}
	careful, plain := defaultProfile(want), defaultProfile(want)
	careful.SameMatches, careful.Strength.Saturated, careful.Matrices = true, 0.1, []string{"main"}
	plain.Enabled = false
	want.Profiles = map[string]Profile{"careful": careful, "plain": plain}
	want.Expansion.Trials = []Trial{{
		Name: "stronger", Indices: []string{"products*"}, Arms: []string{"off", "careful"}, Share: 0.1, Header: "X-Session",
	}}
	want.Redis.URL = NewSecret("redis://127.0.0.1:6379/0")
	if diff := cmp.Diff(want, c, secrets, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDocumentationListsEveryKey compares the tables of docs/config.md, whose
// rows are | `key` | `default` | allowed | meaning |, with the structs.
func TestDocumentationListsEveryKey(t *testing.T) {
	data := content(t, "../docs/config.md")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`([^`]*)`|(required)) \\| ([^|]+) \\| ([^|]+) \\|$")
	want := keys(t)
	seen := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		key, def := m[1], m[2]+m[3]
		code, ok := want[key]
		switch {
		case strings.HasPrefix(key, "AKIN_"):
		case !ok:
			t.Errorf("`%s` is no key", key)
		case seen[key]:
			t.Errorf("`%s` stands there twice", key)
		case !sameYAML(t, def, code):
			t.Errorf("`%s` has the default %s, the code %s", key, def, code)
		}
		seen[key] = true
	}
	for key := range want {
		if !seen[key] {
			t.Errorf("`%s` is missing", key)
		}
	}
	for _, name := range []string{EnvClusterUsername, EnvClusterPassword, EnvClusterAPIKey, EnvRedisURL} {
		if !strings.Contains(string(data), fmt.Sprintf("| `%s` |", name)) {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestDocumentationSaysWhatProfilesLack compares the sentence about the keys of
// expansion that profiles have not with the structs.
func TestDocumentationSaysWhatProfilesLack(t *testing.T) {
	data := content(t, "../docs/config.md")
	stated := regexp.MustCompile("every key of `expansion` but ([^.]*)\\.").FindStringSubmatch(strings.ReplaceAll(string(data), "\n", " "))
	if stated == nil {
		t.Fatal("the sentence is missing")
	}
	_, all := fieldsOf(reflect.ValueOf(Expansion{}))
	have, names := fieldsOf(reflect.ValueOf(Profile{}))
	var lack []string
	for _, name := range all {
		if _, ok := have[name]; !ok {
			lack = append(lack, "`"+name+"`")
		}
	}
	want := strings.Join(lack[:len(lack)-1], ", ") + " and " + lack[len(lack)-1]
	if stated[1] != want {
		t.Errorf("it says %s, the code %s", stated[1], want)
	}
	if own := names[len(names)-1:]; len(names)+len(lack) != len(all)+len(own) || own[0] != "matrices" {
		t.Errorf("profiles have %s", names)
	}
}

func TestDefaultIsOwnedByTheCaller(t *testing.T) {
	a, b := Default(), Default()
	a.Cluster.URLs[0] = "http://elsewhere:9200"
	if b.Cluster.URLs[0] != "http://127.0.0.1:9200" {
		t.Error("two defaults share their slices")
	}
}

func TestLimitsAreReadable(t *testing.T) {
	limits := 0
	var check func(v reflect.Value)
	check = func(v reflect.Value) {
		fields, names := fieldsOf(v)
		for _, name := range names {
			f := fields[name]
			if f.isSection() {
				check(f.Value)
			}
			if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
				check(reflect.New(f.Type().Elem()).Elem())
			}
			if f.is != "" && rules[f.is] == nil {
				t.Errorf("%s: there is no rule %s", name, f.is)
			}
			if len(f.allowed) == 0 {
				continue
			}
			limits++
			if f.isWord() {
				continue
			}
			if len(f.allowed) != 2 {
				t.Errorf("%s: %d bounds", name, len(f.allowed))
			}
			for _, text := range f.allowed {
				text = strings.TrimPrefix(text, "(")
				bound := field{Value: reflect.New(f.Type()).Elem()}
				if err := bound.decode(&yaml.Node{Kind: yaml.ScalarNode, Value: text}); err != nil {
					t.Errorf("%s: %q: %v", name, text, err)
				}
			}
		}
	}
	check(reflect.ValueOf(*Default()))
	if limits != 43 {
		t.Errorf("%d keys with limits", limits)
	}
}
