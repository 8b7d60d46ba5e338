package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// defaultAnalyzer is the analyzer of a field that names none: the standard one,
// unless the index defines it.
const defaultAnalyzer = "default"

const analysisPrefix = "index.analysis."

// Settings are the flat settings of an index: strings or lists of strings, by
// name.
type Settings map[string]jsontext.Value

// Text returns a string setting, or "" if it is missing or not a string.
func (s Settings) Text(name string) string {
	var v string
	if decode(s[name], &v) != nil {
		return ""
	}
	return v
}

// Has reports whether a setting's name starts with prefix.
func (s Settings) Has(prefix string) bool { return len(s.under(prefix)) > 0 }

// under returns the sorted names of the settings with a prefix.
func (s Settings) under(prefix string) []string {
	var names []string
	for name := range s {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// section returns the settings with a prefix, a line each, to be compared.
func (s Settings) section(prefix string) string {
	var b strings.Builder
	for _, name := range s.under(prefix) {
		fmt.Fprintf(&b, "%q=%s\n", name, s[name])
	}
	return b.String()
}

// defined returns the names of the analyzers, or components of another kind,
// that the index defines. A custom analyzer may omit its type but not its
// tokenizer; the others have a type.
func (s Settings) defined(kind string) []string {
	prefix := analysisPrefix + kind + "."
	var names []string
	for _, key := range s.under(prefix) {
		for _, suffix := range []string{".type", ".tokenizer"} {
			if name, ok := strings.CutSuffix(key[len(prefix):], suffix); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Definition returns an analyzer's settings with those of all its tokenizers
// and filters, direct or through another filter: analyzers with equal
// definitions work alike. An analyzer that the index does not define is the
// engine's own.
func (s Settings) Definition(analyzer string) string {
	components := map[string][]string{} // sections of tokenizers and filters, by name
	for _, kind := range []string{"char_filter", "filter", "tokenizer"} {
		for _, name := range s.defined(kind) {
			components[name] = append(components[name], analysisPrefix+kind+"."+name+".")
		}
	}
	queue := []string{analysisPrefix + "analyzer." + analyzer + "."}
	var b strings.Builder
	for i := 0; i < len(queue); i++ {
		b.WriteString(s.section(queue[i]))
		var refs []string // names that the definition refers to are among its strings
		for _, setting := range s.under(queue[i]) {
			refs = append(refs, s.names(setting)...)
		}
		slices.Sort(refs)
		for _, name := range slices.Compact(refs) {
			for _, next := range components[name] {
				if !slices.Contains(queue, next) {
					queue = append(queue, next)
				}
			}
		}
	}
	if b.Len() > 0 {
		return b.String()
	}
	if analyzer == defaultAnalyzer && !s.Has(analysisPrefix+"analyzer.standard.") {
		analyzer = "standard"
	}
	return "built in: " + analyzer
}

// partsOfWords are types of analyzers, tokenizers and token filters that make
// parts of words or combine words, in lower case and without underscores: the
// engines also know edgeNGram for edge_ngram, and PathHierarchy.
var partsOfWords = map[string]bool{
	"ngram": true, "edgengram": true, "pathhierarchy": true, "shingle": true, "commongrams": true,
	"phonetic": true, "doublemetaphone": true, "beidermorse": true, "daitchmokotoff": true,
	"fingerprint": true, "minhash": true,
}

// NotWords returns the component of an analyzer that makes terms other than
// words, such as "filter autocomplete (edge_ngram)", or "".
func (s Settings) NotWords(analyzer string) string {
	prefix := analysisPrefix + "analyzer." + analyzer + "."
	kind := s.Text(prefix + "type")
	if kind == "" && !s.Has(prefix) {
		kind = analyzer // the engine's own
	}
	if kind != "" && kind != "custom" {
		return nonWord("analyzer", analyzer, kind)
	}
	for _, name := range s.names(prefix + "tokenizer") {
		if found := s.component("tokenizer", name); found != "" {
			return found
		}
	}
	filters := s.names(prefix + "filter")
	for i := 0; i < len(filters); i++ {
		if found := s.component("filter", filters[i]); found != "" {
			return found
		}
		// Filters inside a multiplexer or a condition.
		inner := analysisPrefix + "filter." + filters[i] + ".filter"
		for _, name := range slices.Concat(s.names(inner), s.names(inner+"s")) {
			if !slices.Contains(filters, name) {
				filters = append(filters, name)
			}
		}
	}
	return ""
}

// component returns the tokenizer or filter if it makes terms other than words.
// One that the index does not define is the engine's own.
func (s Settings) component(kind, name string) string {
	return nonWord(kind, name, cmp.Or(s.Text(analysisPrefix+kind+"."+name+".type"), name))
}

func nonWord(kind, name, typ string) string {
	switch {
	case !partsOfWords[strings.ToLower(strings.ReplaceAll(typ, "_", ""))]:
		return ""
	case name == typ:
		return kind + " " + name
	default:
		return kind + " " + name + " (" + typ + ")"
	}
}

// names returns the names in a setting: an array, or a string with commas, as
// in a multiplexer filter.
func (s Settings) names(setting string) []string {
	var names []string
	for _, item := range stringsOf(s[setting]) {
		for name := range strings.SplitSeq(item, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// stringsOf returns the strings of an array, or v itself if it is a string.
func stringsOf(v jsontext.Value) []string {
	var list []string
	var one string
	if decode(v, &list) == nil {
		return list
	}
	if decode(v, &one) == nil {
		return []string{one}
	}
	return nil
}

// decode decodes JSON of an answer, which may have duplicate names.
func decode(b []byte, out any) error {
	return json.Unmarshal(b, out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}
