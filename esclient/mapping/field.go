package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// PositionGap is what the cluster adds to the position between two texts of a
// field, and of an _analyze call by the name of an analyzer, unless the
// analyzer's position_increment_gap says otherwise.
const PositionGap = 100

// Analyzers are the names that a field's own analyzers have.
type Analyzers struct {
	// IndexAnalyzer makes the terms of documents, SearchAnalyzer those of
	// queries; the latter is "" where only the cluster knows it.
	IndexAnalyzer, SearchAnalyzer string
	// Dense says that the index analyzer sets a smaller position gap between
	// texts than is usual.
	Dense bool
}

// Scoring is how a field scores.
type Scoring struct {
	Similarity Similarity
	// K1 is BM25's. Legacy says that the field names LegacyBM25, which
	// multiplies by k1+1 where OpenSearch 3's BM25 does not.
	K1     float64
	Legacy bool
}

// A Field is what one index says of a field.
type Field struct {
	// Index is the concrete index, and Shards the number of its primary shards.
	Index  string
	Shards int
	// AliasOf is the field's own name where it was asked for by an alias.
	AliasOf string
	// Nested is the path of the innermost nested object above the field, "" for
	// none, and Source the path of its text in a document: for a multi-field that
	// of the field it belongs to.
	Nested, Source string
	Analyzers
	Scoring
	// SimilarityName and Settings serve to compare similarities and analyzers.
	SimilarityName string
	Settings       Settings
}

// Fields returns what the indices that map a field say of it, by the name
// of the index. It returns [ErrNotText] if one of them maps it as something
// else than searchable text, or none maps it.
func Fields(answer map[string]Index, field string) ([]Field, error) {
	var fields []Field
	for _, index := range slices.Sorted(maps.Keys(answer)) {
		m := answer[index]
		if m.Closed() {
			continue // a search that takes it at all leaves it out
		}
		if m.Mappings.Runtime[field] != nil || m.Mappings.Derived[field] != nil {
			return nil, fmt.Errorf("index %q computes it when searching: %w", index, ErrNotText)
		}
		p, alias, err := m.Resolve(field)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", index, err)
		}
		if p == nil {
			continue
		}
		if p.Type != "text" || string(p.Index) == "false" {
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

// readField resolves what a property leaves to the settings of its index.
func readField(index string, p *Found, s Settings) (Field, error) {
	f := Field{
		Index: index, Nested: p.Nested, Source: p.Source, Settings: s,
		SimilarityName: p.Similarity, Scoring: Scoring{K1: defaultK1},
	}
	const maxShards = 1 << 16 // far above the engines' own bound of 1024
	f.Shards = 1              // where a hosted cluster keeps the number to itself
	if n := s.Text("index.number_of_shards"); n != "" {
		var err error
		if f.Shards, err = strconv.Atoi(n); err != nil || f.Shards < 1 || f.Shards > maxShards {
			return f, fmt.Errorf("index.number_of_shards is %q", n)
		}
	}
	f.IndexAnalyzer = p.Analyzer
	if f.IndexAnalyzer == "" {
		f.IndexAnalyzer = defaultAnalyzer
	}
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
	f.readSimilarity()
	return f, nil
}

// readSimilarity resolves the similarity's name. A field that names none has
// the one called "default", which an index may define; both engines know BM25
// and boolean without a definition.
func (f *Field) readSimilarity() {
	if f.SimilarityName == "" {
		f.SimilarityName = "default"
	}
	prefix := "index.similarity." + f.SimilarityName + "."
	kind := f.Settings.Text(prefix + "type")
	if kind == "" {
		kind = f.SimilarityName
	}
	switch kind {
	case "BM25", "LegacyBM25", "default":
		f.Similarity = BM25
		f.Legacy = kind == "LegacyBM25"
		if k1, err := strconv.ParseFloat(f.Settings.Text(prefix+"k1"), 64); err == nil {
			f.K1 = k1
		}
	case "boolean":
		f.Similarity = Boolean
	default:
		f.Similarity = Other
	}
}

// Treatment returns what an index does with the field, for comparison: the
// nested object it is in, its analyzers and its similarity.
func (f *Field) Treatment() string {
	return strings.Join([]string{
		f.Nested, f.Settings.Definition(f.IndexAnalyzer), f.Settings.Definition(f.SearchAnalyzer),
		f.SimilarityName, f.Settings.section("index.similarity." + f.SimilarityName + "."),
	}, "\x00")
}
