package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// defaultAnalyzer is the analyzer of a field that names none: the standard one
// unless the index defines it.
const defaultAnalyzer = "default"

const analysisPrefix = "index.analysis."

// Settings are the flat settings of an index: strings or arrays of strings, by
// dotted names.
type Settings map[string]jsontext.Value

// Text returns a setting that is a string, "" where it is missing or is none.
func (s Settings) Text(name string) string {
	var v string
	if decode(s[name], &v) != nil {
		return ""
	}
	return v
}

// Has reports whether a setting's name starts with prefix.
func (s Settings) Has(prefix string) bool { return len(s.under(prefix)) > 0 }

// under returns the names of the settings that start with prefix, in order.
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

// section returns the settings whose names start with prefix, one a line:
// equal sections are equal strings.
func (s Settings) section(prefix string) string {
	var b strings.Builder
	for _, name := range s.under(prefix) {
		fmt.Fprintf(&b, "%q=%s\n", name, s[name])
	}
	return b.String()
}

// defined returns the names of the analyzers that the index defines, or of
// another kind of component. A custom analyzer may leave out its type, never
// its tokenizer; the others have a type.
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

// Definition returns an analyzer's settings with those of all tokenizers and
// filters it is made of, directly or through another filter: analyzers of the
// same definition work alike. One that the index does not define is the
// engine's own of that name.
func (s Settings) Definition(analyzer string) string {
	components := map[string][]string{} // the sections of tokenizers and filters, by name
	for _, kind := range []string{"char_filter", "filter", "tokenizer"} {
		for _, name := range s.defined(kind) {
			components[name] = append(components[name], analysisPrefix+kind+"."+name+".")
		}
	}
	queue := []string{analysisPrefix + "analyzer." + analyzer + "."}
	var b strings.Builder
	for i := 0; i < len(queue); i++ {
		b.WriteString(s.section(queue[i]))
		var refs []string // the names that the definition refers to are among its strings
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

// partsOfWords are the types of analyzers, tokenizers and token filters that
// make parts of words or several words in one, in lower case and without
// underscores: engines know edge_ngram as edgeNGram, too, and path_hierarchy as
// PathHierarchy.
var partsOfWords = map[string]bool{
	"ngram": true, "edgengram": true, "pathhierarchy": true, "shingle": true, "commongrams": true,
	"phonetic": true, "doublemetaphone": true, "beidermorse": true, "daitchmokotoff": true,
	"fingerprint": true, "minhash": true,
}

// NotWords returns which part of an analyzer makes other terms than words, such
// as "filter autocomplete (edge_ngram)", "" where none does.
func (s Settings) NotWords(analyzer string) string {
	prefix := analysisPrefix + "analyzer." + analyzer + "."
	kind := s.Text(prefix + "type")
	if kind == "" && !s.Has(prefix) {
		kind = analyzer // the engine's own of that name
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
		// Those that a multiplexer or a condition is made of.
		inner := analysisPrefix + "filter." + filters[i] + ".filter"
		for _, name := range slices.Concat(s.names(inner), s.names(inner+"s")) {
			if !slices.Contains(filters, name) {
				filters = append(filters, name)
			}
		}
	}
	return ""
}

// component returns the tokenizer or filter of that name if it makes other
// terms than words. One that the index does not define is the engine's own.
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

// names returns the names that a setting lists: an array of them, or a string
// with commas, as a multiplexer filter has.
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

// stringsOf returns the strings of an array of them, or the one that v is.
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

// decode decodes JSON of an answer, which may have a name twice.
func decode(b []byte, out any) error {
	return json.Unmarshal(b, out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}
