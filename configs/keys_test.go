package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// secrets lets cmp look into a Secret.
var secrets = cmp.AllowUnexported(Secret{})

// required is the default of a key that has none.
const required = "required"

// content returns a file.
func content(t *testing.T, path string) []byte {
	t.Helper()
	return check.Got(os.ReadFile(path))(t)
}

// A documentedKey is what the documentation has to say of a key.
type documentedKey struct {
	def     string   // in YAML
	allowed []string // as in the tag
	word    bool     // allowed are words, not bounds
}

// keys returns every key that holds a value. The keys of the entries of lists
// stand under "matrices[]", "weights[]", "expansion.segments[]" and
// "expansion.trials[]", the only key of profiles' own under "profiles.NAME".
func keys(t *testing.T) map[string]documentedKey {
	t.Helper()
	all := map[string]documentedKey{}
	walk(t, "", reflect.ValueOf(*Default()), all)
	walk(t, "matrices[]", reflect.ValueOf(defaultMatrix()), all)
	walk(t, "weights[]", reflect.ValueOf(defaultMatrix()), all)
	walk(t, "expansion.segments[]", reflect.ValueOf(defaultSegments()), all)
	walk(t, "expansion.trials[]", reflect.ValueOf(defaultTrial()), all)
	for _, key := range []string{"matrices[].name", "weights[].name", "expansion.segments[].field", "expansion.trials[].name", "expansion.trials[].arms"} {
		all[key] = documentedKey{def: required}
	}
	all["profiles.NAME.matrices"] = documentedKey{def: "[]"} // the others are those of expansion
	return all
}

func walk(t *testing.T, key string, v reflect.Value, all map[string]documentedKey) {
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
		check.Must(t, err == nil, "%s: %v", name, err)
		all[join(key, name)] = documentedKey{strings.TrimSpace(string(out)), f.allowed, f.isWord()}
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

// sameYAML reports whether two pieces of YAML stand for the same value.
func sameYAML(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	err := yaml.Unmarshal([]byte(a), &x)
	check.That(t, err == nil, "%q: %v", a, err)
	err = yaml.Unmarshal([]byte(b), &y)
	check.That(t, err == nil, "%q: %v", b, err)
	return reflect.DeepEqual(x, y)
}

func TestReferenceFileIsTheDefault(t *testing.T) {
	c := check.Got(Parse("akin.yml", content(t, "akin.yml")))(t)
	check.Equal(t, Default(), c, secrets, cmpopts.EquateEmpty())
}

// TestReferenceFileExplainsEveryKey reads the comments: that above a key names
// what is allowed, which may stand above its section, and ends with "Default:
// X.". For the keys of an entry these are in the comment of the list, for the
// one of profiles' own in that of profiles.
func TestReferenceFileExplainsEveryKey(t *testing.T) {
	data := content(t, "akin.yml")
	d := newDecoder("akin.yml")
	d.document(data, Default())
	lines := strings.Split(string(data), "\n")
	above := func(key string) string { return commentAbove(lines, d.lines[key]) }
	stated := regexp.MustCompile(`^(?:.* )?(?:Default: (.*)|(Required))\.$`)
	for key, want := range keys(t) {
		section, name := "", key
		if at := strings.LastIndex(key, "."); at >= 0 {
			section, name = key[:at], key[at+1:]
		}
		says := above(key)
		list := strings.TrimSuffix(strings.TrimSuffix(section, "[]"), ".NAME")
		if list != section {
			if list == "weights" && strings.Contains(oneLine(above(list)), "Entries have the keys of matrices.") {
				list = "matrices"
			}
			says = regexp.MustCompile(`(?m)^#   ` + name + ` .+(\n#    .+)*`).FindString(above(list))
			section = ""
		}
		says = oneLine(says)
		m := stated.FindStringSubmatch(says)
		if m == nil {
			t.Errorf("%s: the comment %q does not end in its default", key, says)
		} else if def := m[1] + strings.ToLower(m[2]); !sameYAML(t, def, want.def) {
			t.Errorf("%s: the comment has the default %s, the code %s", key, def, want.def)
		}
		says += " " + oneLine(above(section))
		check.That(t, namesAllowed(says, want), "%s: the comment %q does not name %q, which is allowed", key, says, want.allowed)
	}
	for _, name := range []string{EnvClusterUsername, EnvClusterPassword, EnvClusterAPIKey, EnvRedisURL, EnvAdminToken, EnvEmbeddingsKey, EnvListenUsername, EnvListenPassword, EnvListenAPIKey} {
		check.That(t, strings.Contains(string(data), name), "%s is missing", name)
	}
}

// namesAllowed reports whether a comment has the bounds of a key, as "1s to 1h"
// or "above 0, up to 1", or all of its words.
func namesAllowed(comment string, k documentedKey) bool {
	switch {
	case len(k.allowed) == 0:
		return true
	case k.word:
		return !slices.ContainsFunc(k.allowed, func(word string) bool {
			return !regexp.MustCompile(`\b` + word + `\b`).MatchString(comment)
		})
	}
	bounds := k.allowed[0] + " to " + k.allowed[1]
	if low, open := strings.CutPrefix(k.allowed[0], "("); open {
		bounds = "above " + low + ", up to " + k.allowed[1]
	}
	return strings.Contains(strings.ToLower(comment), strings.ToLower(bounds))
}

// oneLine returns the text of a comment.
func oneLine(comment string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(comment, "#", "")), " ")
}

// commentAbove returns the comment that ends right above line, from 1.
func commentAbove(lines []string, line int) string {
	var c []string
	for i := line - 2; i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "#"); i-- {
		c = append([]string{strings.TrimSpace(lines[i])}, c...)
	}
	return strings.Join(c, "\n")
}

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
	check.Must(t, err == nil, "%v\nin:\n%s", err, example.String())
	want := Default()
	want.Matrices = []Matrix{
		{Name: "catalogue", Indices: []string{"catalogue", "products-*", "-products-old"}, Fields: []string{"title", "description"}, File: "catalogue.akin"},
		{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}},
	}
	want.Weights = []Matrix{{Name: "body-weights", Indices: []string{"catalogue"}, Fields: []string{"title"}, File: "weights.akin"}}
	first := form.Segments{Path: "segments", Text: "segments.text", Position: "segments.position", Share: "segments.share", Godwin: "segments.godwin"}
	first.Field, first.Aggregate = "body", form.FirstHeavy
	want.Expansion.Segments = []form.Segments{first}
	want.Vectors = []string{"model.akin"}
	want.Embeddings.URL, want.Embeddings.Model = "http://127.0.0.1:8080/v1/embeddings", "sentence-transformers/all-MiniLM-L6-v2"
	want.Embeddings.Fields, want.Embeddings.File = []string{"title", "body"}, "vectors.db"
	want.Searches.Collect, want.Searches.ExcludeIndices = true, []string{"patients-*"}
	careful, plain := defaultProfile(want), defaultProfile(want)
	careful.Matching, careful.Strength, careful.Matrices = expand.Same, 0.5, []string{"main"}
	plain.Enabled = false
	want.Profiles = map[string]Profile{"careful": careful, "plain": plain}
	want.Expansion.Trials = []Trial{{
		Name: "stronger", Indices: []string{"products*"}, Arms: []string{"off", "careful"}, Share: 0.1, Header: "X-Session",
	}}
	want.Redis.URL = NewSecret("redis://127.0.0.1:6379/0")
	check.Equal(t, want, c, secrets, cmpopts.EquateEmpty())
}

func TestDocumentsNameOnlyKeysThatExist(t *testing.T) {
	pages := check.Got(filepath.Glob("../docs/*.md"))(t)
	all := map[string]bool{}
	for key := range keys(t) {
		for at := range len(key) {
			if key[at] == '.' {
				all[strings.TrimSuffix(key[:at], "[]")] = true
			}
		}
		all[key] = true
		if of, ok := strings.CutPrefix(key, "expansion."); ok {
			all["profiles.NAME."+of] = true
		}
	}
	_, sections := fieldsOf(reflect.ValueOf(Config{}))
	named := regexp.MustCompile("`((?:" + strings.Join(sections, "|") + `)(?:\[\])?\.[A-Za-z_.\[\]]+)(?::[^` + "`]*)?`")
	n := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md") {
		text := content(t, page)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if strings.HasSuffix(m[1], ".md") || strings.HasSuffix(m[1], ".yml") {
				continue
			}
			n++
			check.That(t, all[m[1]], "%s: `%s` is no key", page, m[1])
		}
	}
	check.That(t, n >= 50, "%d keys found", n)
}

func TestReferenceFileSaysWhatProfilesLack(t *testing.T) {
	data := content(t, "akin.yml")
	stated := regexp.MustCompile("the keys of expansion except ([^;]*);").FindStringSubmatch(oneLine(string(data)))
	check.Must(t, stated != nil, "the sentence is missing")
	_, all := fieldsOf(reflect.ValueOf(Expansion{}))
	have, names := fieldsOf(reflect.ValueOf(Profile{}))
	var lack []string
	for _, name := range all {
		if _, ok := have[name]; !ok {
			lack = append(lack, name)
		}
	}
	want := strings.Join(lack[:len(lack)-1], ", ") + " and " + lack[len(lack)-1]
	check.Equal(t, want, stated[1])
	own := names[len(names)-1:]
	check.That(t, len(names)+len(lack) == len(all)+len(own) && own[0] == "matrices", "profiles have %s", names)
}

func TestLimitsAreReadable(t *testing.T) {
	limits := 0
	var look func(v reflect.Value)
	look = func(v reflect.Value) {
		fields, names := fieldsOf(v)
		for _, name := range names {
			f := fields[name]
			if f.isSection() {
				look(f.Value)
			}
			if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
				look(reflect.New(f.Type().Elem()).Elem())
			}
			check.That(t, f.is == "" || rules[f.is] != nil, "%s: there is no rule %s", name, f.is)
			if len(f.allowed) == 0 {
				continue
			}
			limits++
			if f.isWord() {
				wordsNameTheirValues(t, name, f)
				continue
			}
			check.Equal(t, 2, len(f.allowed), name)
			for _, text := range f.allowed {
				text = strings.TrimPrefix(text, "(")
				bound := field{Value: reflect.New(f.Type()).Elem()}
				err := bound.decode(&yaml.Node{Kind: yaml.ScalarNode, Value: text})
				check.That(t, err == nil, "%s: %q: %v", name, text, err)
			}
		}
	}
	look(reflect.ValueOf(*Default()))
	check.Equal(t, 42, limits)
}

// wordsNameTheirValues checks that words stand in the order of the constants that
// they are decoded to, if these have names.
func wordsNameTheirValues(t *testing.T, name string, f field) {
	t.Helper()
	for _, word := range f.allowed {
		f.Value = reflect.New(f.Type()).Elem()
		check.OK(t, f.decodeWord(&yaml.Node{Kind: yaml.ScalarNode, Value: word}))
		if value, named := f.Interface().(fmt.Stringer); named {
			check.Equal(t, word, value.String(), name)
		}
	}
}
