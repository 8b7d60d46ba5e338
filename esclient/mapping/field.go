package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// PositionGap is what the cluster adds, by default, to the position between two
// texts of a field, or of an _analyze call that names an analyzer.
const PositionGap = 100

// Analyzers are the names of a field's analyzers.
type Analyzers struct {
	// IndexAnalyzer is for documents, SearchAnalyzer for queries; that is "" if
	// only the cluster knows it.
	IndexAnalyzer, SearchAnalyzer string
	// Dense says that the index analyzer has a smaller gap than [PositionGap].
	Dense bool
}

// FieldScoring is how a field is scored. K1 and B are BM25's. Legacy says that
// the field uses LegacyBM25, which multiplies by k1+1; OpenSearch 3's BM25 does
// not.
type FieldScoring struct {
	Similarity Similarity
	K1, B      float64
	Legacy     bool
}

// Phrases says how a field finds phrases.
type Phrases uint8

// The ways of finding phrases.
const (
	// ByPositions is the usual way: a phrase has the idf of its terms.
	ByPositions Phrases = iota
	// ByPairs is that of index_phrases: pairs of words have terms of their own, and
	// so a phrase of two has another idf.
	ByPairs
	// NoPhrases is that of index_options docs and freqs. The engine refuses
	// phrases.
	NoPhrases
)

// A Field is a field in one index.
type Field struct {
	Target
	// Nested is the path of the innermost nested object above the field, or "".
	Nested string
	Analyzers
	FieldScoring
	Phrases Phrases
	// SimilarityName and Settings are for comparing similarities and analyzers.
	SimilarityName string
	Settings       Settings
}

// Fields returns the field in each index that maps it, by index name. It
// returns [ErrNotText] if an index maps it as something other than searchable
// text, or none maps it.
func Fields(answer map[string]Index, field string) ([]Field, error) {
	var fields []Field
	for _, index := range slices.Sorted(maps.Keys(answer)) {
		m := answer[index]
		if m.Closed() {
			continue // searches skip it, or refuse it
		}
		if m.Mappings.computed(field) {
			return nil, fmt.Errorf("index %q computes it when searching: %w", index, ErrNotText)
		}
		p, alias, err := m.Resolve(field)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", index, err)
		}
		if p == nil {
			continue
		}
		if p.Type != "text" && p.Type != "search_as_you_type" || string(p.Index) == "false" {
			return nil, fmt.Errorf("index %q maps it as %s: %w", index, p.TypeName(), ErrNotText)
		}
		f, err := readField(index, p, m.Settings)
		if err != nil {
			return nil, fmt.Errorf("settings of index %q: %w", index, err)
		}
		f.AliasOf = alias
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("no index maps it: %w", ErrNotText)
	}
	return fields, nil
}

// readField resolves what a property leaves to the index settings.
func readField(index string, p *Property, s Settings) (Field, error) {
	f := Field{
		Target: Target{Index: index, Source: p.Source}, Nested: p.Nested, Settings: s,
		SimilarityName: p.Similarity, FieldScoring: FieldScoring{K1: defaultK1, B: defaultB},
	}
	const maxShards = 1 << 16 // far above the engines' limit of 1024
	f.Shards = 1              // if a hosted cluster hides the number
	if n := s.Text("index.number_of_shards"); n != "" {
		var err error
		if f.Shards, err = strconv.Atoi(n); err != nil || f.Shards < 1 || f.Shards > maxShards {
			return f, fmt.Errorf("index.number_of_shards is %q", n)
		}
	}
	f.IndexAnalyzer = cmp.Or(p.Analyzer, defaultAnalyzer)
	if gap := s.Text(analysisPrefix + "analyzer." + f.IndexAnalyzer + ".position_increment_gap"); gap != "" {
		n, err := strconv.Atoi(gap)
		f.Dense = err != nil || n < PositionGap
	}
	switch {
	case p.SearchAnalyzer != "":
		f.SearchAnalyzer = p.SearchAnalyzer
	case !s.Has("index.analysis.analyzer.default_search."):
		f.SearchAnalyzer = f.IndexAnalyzer
	case f.IndexAnalyzer == defaultAnalyzer:
		f.SearchAnalyzer = "default_search"
	}
	switch options := string(p.IndexOptions); {
	case options == `"docs"` || options == `"freqs"`:
		f.Phrases = NoPhrases
	case string(p.IndexPhrases) == "true" || string(p.IndexPhrases) == `"true"`:
		f.Phrases = ByPairs
	}
	f.readSimilarity()
	return f, nil
}

// readSimilarity resolves the similarity's name. A field without one has
// "default", which an index may define; both engines know BM25 and boolean.
func (f *Field) readSimilarity() {
	f.SimilarityName = cmp.Or(f.SimilarityName, "default")
	prefix := "index.similarity." + f.SimilarityName + "."
	switch kind := cmp.Or(f.Settings.Text(prefix+"type"), f.SimilarityName); kind {
	case "BM25", "LegacyBM25", "default":
		f.Similarity = BM25
		f.Legacy = kind == "LegacyBM25"
		if k1, err := strconv.ParseFloat(f.Settings.Text(prefix+"k1"), 64); err == nil {
			f.K1 = k1
		}
		if b, err := strconv.ParseFloat(f.Settings.Text(prefix+"b"), 64); err == nil {
			f.B = b
		}
	case "boolean":
		f.Similarity = Boolean
	default:
		f.Similarity = Other
	}
}

// A Treatment is how an index treats a field, for comparison: its nested
// object, the definitions of its analyzers, and its similarity's name and
// settings.
type Treatment struct{ nested, index, search, similarity, settings string }

// Treatment returns how the index treats the field.
func (f *Field) Treatment() Treatment {
	return Treatment{
		nested: f.Nested, index: f.Settings.Definition(f.IndexAnalyzer), search: f.Settings.Definition(f.SearchAnalyzer),
		similarity: f.SimilarityName, settings: f.Settings.section("index.similarity." + f.SimilarityName + "."),
	}
}

// A Similarity is the kind of a field's scoring.
type Similarity uint8

// The similarities.
const (
	BM25    Similarity = iota // multiplies by idf once
	Boolean                   // scores every term by its boost
	Other                     // unknown formula: DFR, IB, language models, scripted
)

// defaultK1 and defaultB are BM25's defaults in both engines.
const defaultK1, defaultB = 1.2, 0.75

// A Schema is a field that all indices of an expression that map it treat
// alike. It is shared and, except for Unvectored, read-only.
type Schema struct {
	Targets []Target // by name, at least one
	Nested  string   // as in [Field]
	Analyzers
	FieldScoring
	// Phrases is the worst of the indices.
	Phrases Phrases
	// SearchAnalyzers is the name of the search analyzer; if it differs between
	// indices, all names with the indices' names.
	SearchAnalyzers string
	// NotWords names the component of the analyzers that makes other terms than
	// words.
	NotWords string
	// Shards is the number of primary shards of the targets.
	Shards int
	// Routed says that an alias may send a search to some of them only, Filtered
	// that an alias of the expression has a filter, or a target its own search
	// pipeline. Pipelines are the names of these.
	Routed, Filtered bool
	Pipelines        []string
	// differing names the analyzers that are not defined alike in all targets.
	differing map[string]bool
	// Unvectored says that the cluster refused to count terms by _termvectors.
	Unvectored atomic.Bool
}

// A Target is a concrete index that maps a field.
type Target struct {
	Index  string
	Shards int // primary shards
	// Source is the path of the field's text in a document; for a multi-field, of
	// its parent field.
	Source string
	// AliasOf is the field's own name if it was asked for by an alias, else "".
	AliasOf string
}

// Bytes returns the approximate size of a schema.
func (s *Schema) Bytes() int {
	n := 128
	if s == nil {
		return n
	}
	n += len(s.SearchAnalyzers)
	for _, t := range s.Targets {
		n += 80 + len(t.Index) + len(t.Source) + len(t.AliasOf)
	}
	for name := range s.differing {
		n += 32 + len(name)
	}
	return n
}

// Analyzer returns the name of a clause's analyzer; named is the one it asks
// for. It returns [ErrMixed] if the indices define that one differently.
func (s *Schema) Analyzer(named string) (string, error) {
	if named == "" {
		return s.SearchAnalyzer, nil
	}
	if s.differing[named] {
		return "", fmt.Errorf("analyzer %q: %w", named, ErrMixed)
	}
	return named, nil
}

// Merge returns the common schema of a field in its indices, or [ErrMixed] if
// they differ in what a search sees.
func Merge(fields []Field) (*Schema, error) {
	first := &fields[0]
	s := &Schema{
		Nested: first.Nested, Analyzers: first.Analyzers, FieldScoring: first.FieldScoring,
		SearchAnalyzers: searchAnalyzers(fields),
		NotWords:        cmp.Or(first.Settings.NotWords(first.IndexAnalyzer), first.Settings.NotWords(first.SearchAnalyzer)),
		differing:       map[string]bool{},
	}
	analysis, treatment := first.Settings.section(analysisPrefix), first.Treatment()
	for i := range fields {
		f := &fields[i]
		if f.Treatment() != treatment {
			return nil, fmt.Errorf("indices %q and %q: %w", first.Index, f.Index, ErrMixed)
		}
		s.Shards += f.Shards
		s.Phrases = max(s.Phrases, f.Phrases)
		s.Targets = append(s.Targets, f.Target)
		if f.Settings.section(analysisPrefix) == analysis {
			continue
		}
		for _, name := range slices.Concat(first.Settings.defined("analyzer"), f.Settings.defined("analyzer")) {
			if first.Settings.Definition(name) != f.Settings.Definition(name) {
				s.differing[name] = true
			}
		}
	}
	return s, nil
}

// searchAnalyzers returns [Schema.SearchAnalyzers].
func searchAnalyzers(fields []Field) string {
	name := fields[0].SearchAnalyzer
	if !slices.ContainsFunc(fields, func(f Field) bool { return f.SearchAnalyzer != name }) {
		return name
	}
	var b strings.Builder
	for i := range fields {
		b.WriteString(fields[i].Index + ":" + fields[i].SearchAnalyzer + ",")
	}
	return b.String()
}
