package esclient

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// An indexMapping is what GET /{index} with flat settings tells of an index.
type indexMapping struct {
	Mappings struct {
		Properties map[string]jsontext.Value `json:"properties"`
		// Runtime and Derived are fields computed at search time, in
		// Elasticsearch and OpenSearch; they shadow mapped ones.
		Runtime map[string]jsontext.Value `json:"runtime"`
		Derived map[string]jsontext.Value `json:"derived"`
	} `json:"mappings"`
	Settings settings `json:"settings"`
	// DataStream is the stream that the index is behind, "" for none.
	DataStream string `json:"data_stream"`
	// Aliases are those that the expression of the indices may name.
	Aliases map[string]struct {
		SearchRouting string         `json:"search_routing"`
		Filter        jsontext.Value `json:"filter"`
	} `json:"aliases"`
}

// routed reports whether an alias of the expression may send a search to some
// of the index's shards only.
func (m *indexMapping) routed(indices Indices) bool {
	for alias, a := range m.Aliases {
		if a.SearchRouting != "" && indices.mayName(alias) {
			return true
		}
	}
	return false
}

// filtered reports whether an alias of the expression has a filter.
func (m *indexMapping) filtered(indices Indices) bool {
	for alias, a := range m.Aliases {
		if len(a.Filter) > 0 && indices.mayName(alias) {
			return true
		}
	}
	return false
}

func (m *indexMapping) closed() bool { return m.Settings.text("index.verified_before_close") == "true" }

// openIndices returns the names of the open indices in an answer, in order:
// that of the data stream where there is one.
func openIndices(answer map[string]indexMapping) []string {
	names := make([]string, 0, len(answer))
	for index, m := range answer {
		if !m.closed() {
			names = append(names, cmp.Or(m.DataStream, index))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A property is a field's entry in a mapping.
type property struct {
	Type           string                    `json:"type"`
	Analyzer       string                    `json:"analyzer"`
	SearchAnalyzer string                    `json:"search_analyzer"`
	Similarity     string                    `json:"similarity"`
	Path           string                    `json:"path"`
	Index          jsontext.Value            `json:"index"`
	IndexOptions   string                    `json:"index_options"`
	DocValues      jsontext.Value            `json:"doc_values"`
	Properties     map[string]jsontext.Value `json:"properties"`
	Fields         map[string]jsontext.Value `json:"fields"`
}

// A found property is a field's own, with where it stands.
type found struct {
	property
	// nested is the path of the innermost nested object above it.
	nested string
	// source is the path of its text in a document.
	source string
}

// An indexField is what one index says of a field.
type indexField struct {
	index string
	// field is the field's own name where it was asked for by an alias.
	field         string
	shards        int
	routed        bool // see [indexMapping.routed]
	filtered      bool // see [indexMapping.filtered]
	nested        string
	source        string
	indexAnalyzer string
	dense         bool
	// searchAnalyzer is "" where only the cluster knows it.
	searchAnalyzer string
	similarity     Similarity
	k1             float64
	legacy         bool
	settings       settings
	// similarityName is for comparing similarities, with settings.
	similarityName string
}

// findFields returns what the indices that map a field say of it, by the name
// of the index. It returns [ErrNotText] if one of them maps it as something
// else than searchable text, or none maps it.
func findFields(answer map[string]indexMapping, field string) ([]indexField, error) {
	var fields []indexField
	for _, index := range slices.Sorted(maps.Keys(answer)) {
		m := answer[index]
		if m.closed() {
			continue // a search that takes it at all leaves it out
		}
		if m.Mappings.Runtime[field] != nil || m.Mappings.Derived[field] != nil {
			return nil, fmt.Errorf("index %q computes it when searching: %w", index, ErrNotText)
		}
		p, alias, err := m.resolve(field)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", index, err)
		}
		if p == nil {
			continue
		}
		if p.Type != "text" || string(p.Index) == "false" {
			return nil, fmt.Errorf("index %q maps it as %s: %w", index, p.typeName(), ErrNotText)
		}
		f, err := readField(index, p, m.Settings)
		if err != nil {
			return nil, fmt.Errorf("settings of index %q: %w", index, err)
		}
		f.field = alias
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("no index maps it: %w", ErrNotText)
	}
	return fields, nil
}

// resolve returns the property of a field, nil if there is none, and where the
// name is an alias the name of the field that it stands for.
func (m *indexMapping) resolve(field string) (p *found, alias string, err error) {
	p, err = find(m.Mappings.Properties, field, 0, "")
	if p == nil || err != nil || p.Type != typeAlias {
		return p, "", err
	}
	alias = p.Path
	p, err = find(m.Mappings.Properties, alias, 0, "")
	if p == nil && err == nil {
		err = fmt.Errorf("no field %q for the alias: %w", alias, ErrNotText)
	}
	return p, alias, err
}

// typeAlias is the type of a second name for a field.
const typeAlias = "alias"

// typeName returns the type for a message.
func (p *property) typeName() string {
	switch p.Type {
	case "":
		return "object"
	case "text":
		return "text that is not indexed"
	default:
		return p.Type
	}
}

// find returns the property at path[from:] below properties, nil if there is
// none. nested is the innermost nested object above. A key may span several
// segments of the path, in a mapping without subobjects.
func find(properties map[string]jsontext.Value, path string, from int, nested string) (*found, error) {
	for end := from; end <= len(path); end++ {
		if end < len(path) && path[end] != '.' {
			continue
		}
		raw, ok := properties[path[from:end]]
		if !ok {
			continue
		}
		p := found{nested: nested, source: path[:end]}
		if err := decode(raw, &p.property); err != nil {
			return nil, fmt.Errorf("field %q: %w", path[:end], err)
		}
		if end == len(path) {
			return &p, nil
		}
		if below, err := p.find(path, end+1); below != nil || err != nil {
			return below, err
		}
	}
	return nil, nil //nolint:nilnil // an index without the field is no error
}

// find returns the property at path[from:] below p: a multi-field, whose text
// in a document is p's, or one of an object.
func (p *found) find(path string, from int) (*found, error) {
	if multi, ok := p.Fields[path[from:]]; ok {
		below := found{nested: p.nested, source: p.source}
		if err := decode(multi, &below.property); err != nil {
			return nil, fmt.Errorf("field %q: %w", path, err)
		}
		return &below, nil
	}
	nested := p.nested
	if p.Type == "nested" {
		nested = p.source
	}
	return find(p.Properties, path, from, nested)
}

// readField resolves what a property leaves to the settings of its index.
func readField(index string, p *found, s settings) (indexField, error) {
	f := indexField{
		index: index, nested: p.nested, source: p.source, settings: s,
		similarityName: p.Similarity, k1: defaultK1,
	}
	const maxShards = 1 << 16 // far above the engines' own bound of 1024
	f.shards = 1              // where a hosted cluster keeps the number to itself
	if n := s.text("index.number_of_shards"); n != "" {
		var err error
		if f.shards, err = strconv.Atoi(n); err != nil || f.shards < 1 || f.shards > maxShards {
			return f, fmt.Errorf("index.number_of_shards is %q", n)
		}
	}
	f.indexAnalyzer = p.Analyzer
	if f.indexAnalyzer == "" {
		f.indexAnalyzer = defaultAnalyzer
	}
	if gap := s.text(analysisPrefix + "analyzer." + f.indexAnalyzer + ".position_increment_gap"); gap != "" {
		n, err := strconv.Atoi(gap)
		f.dense = err != nil || n < wordGap
	}
	switch {
	case p.SearchAnalyzer != "":
		f.searchAnalyzer = p.SearchAnalyzer
	case !s.has("index.analysis.analyzer.default_search."):
		f.searchAnalyzer = f.indexAnalyzer
	case f.indexAnalyzer == defaultAnalyzer:
		f.searchAnalyzer = "default_search"
	}
	f.readSimilarity()
	return f, nil
}

// readSimilarity resolves the similarity's name. A field that names none has
// the one called "default", which an index may define; both engines know BM25
// and boolean without a definition.
func (f *indexField) readSimilarity() {
	if f.similarityName == "" {
		f.similarityName = "default"
	}
	prefix := "index.similarity." + f.similarityName + "."
	kind := f.settings.text(prefix + "type")
	if kind == "" {
		kind = f.similarityName
	}
	switch kind {
	case "BM25", "LegacyBM25", "default":
		f.similarity = BM25
		f.legacy = kind == "LegacyBM25"
		if k1, err := strconv.ParseFloat(f.settings.text(prefix+"k1"), 64); err == nil {
			f.k1 = k1
		}
	case "boolean":
		f.similarity = Boolean
	default:
		f.similarity = Other
	}
}

// merge returns the schema of a field from what its indices say of it. It
// returns [ErrMixed] where they differ in what a search sees.
func merge(fields []indexField) (*schema, error) {
	first := &fields[0]
	s := &schema{
		nested: first.nested, indexAnalyzer: first.indexAnalyzer, searchAnalyzer: first.searchAnalyzer,
		searchAnalyzers: searchAnalyzers(fields),
		dense:           first.dense, similarity: first.similarity, k1: first.k1, legacy: first.legacy,
		notWords:  cmp.Or(first.settings.notWords(first.indexAnalyzer), first.settings.notWords(first.searchAnalyzer)),
		differing: map[string]bool{},
	}
	analysis, treatment := first.settings.section(analysisPrefix), first.treatment()
	for i := range fields {
		f := &fields[i]
		if f.treatment() != treatment {
			return nil, fmt.Errorf("indices %q and %q: %w", first.index, f.index, ErrMixed)
		}
		s.shards += f.shards
		s.routed = s.routed || f.routed
		s.filtered = s.filtered || f.filtered
		s.targets = append(s.targets, target{index: f.index, shards: f.shards, source: f.source, field: f.field})
		if f.settings.section(analysisPrefix) == analysis {
			continue
		}
		for _, name := range slices.Concat(first.settings.analyzers(), f.settings.analyzers()) {
			if first.settings.definition(name) != f.settings.definition(name) {
				s.differing[name] = true
			}
		}
	}
	return s, nil
}

// searchAnalyzers returns the name that the search analyzer has in all indices,
// or where they call it by several, those with the indices.
func searchAnalyzers(fields []indexField) string {
	name := fields[0].searchAnalyzer
	if !slices.ContainsFunc(fields, func(f indexField) bool { return f.searchAnalyzer != name }) {
		return name
	}
	var b strings.Builder
	for i := range fields {
		b.WriteString(fields[i].index + ":" + fields[i].searchAnalyzer + ",")
	}
	return b.String()
}

// treatment returns what an index does with the field, for comparison: the
// nested object it is in, its analyzers and its similarity.
func (f *indexField) treatment() string {
	return strings.Join([]string{
		f.nested, f.settings.definition(f.indexAnalyzer), f.settings.definition(f.searchAnalyzer),
		f.similarityName, f.settings.section("index.similarity." + f.similarityName + "."),
	}, "\x00")
}
