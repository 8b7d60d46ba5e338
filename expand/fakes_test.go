package expand

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix"
)

// fakeCluster analyzes by splitting at white space and lower-casing, unless it
// keeps case. It knows
// the fields of types, all scored by BM25 unless weighting says otherwise.
type fakeCluster struct {
	docCount   int64
	docFreqs   map[string]int64 // of terms; others have 0
	inTitle    map[string]int64 // the same in the field title, nil where it is no other
	scale      float64
	scripts    bool
	uncounted  bool
	shards     int
	routed     bool
	filtered   bool
	pipelines  []string // of the indices
	graph      bool     // a term spans several positions
	whole      int      // the number of one that spans all, plus one
	keepsCase  bool
	analyzers  map[string]string // of fields; others have ""
	similarity mapping.Similarity
	phrases    mapping.Phrases
	stopWords  string
	synonyms   map[string]string // stands at the same position
	stored     map[string]string // texts of documents by id, in every field

	// notWords are fields whose analyzers make other terms than words.
	notWords map[string]string

	analyzeErr, statisticsErr error
	broken                    string // the only field with analyzeErr, "" for all
}

func (f *fakeCluster) Analyze(_ context.Context, _ esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	if f.analyzeErr != nil && (f.broken == "" || f.broken == field) {
		return nil, f.analyzeErr
	}
	switch field {
	case "sku":
		return nil, fmt.Errorf("sku: %w", mapping.ErrNotText)
	case "mixed":
		return nil, fmt.Errorf("mixed: %w", mapping.ErrMixed)
	}
	a := &esclient.Analysis{
		Shards: max(f.shards, 1), Routed: f.routed, Filtered: f.filtered, Pipelines: f.pipelines, Graph: f.graph, Whole: f.whole, Similarity: f.similarity, Phrases: f.phrases, NotWords: f.notWords[field],
	}
	if field == "bare" {
		a.Phrases = mapping.NoPhrases
	}
	if strings.HasPrefix(field, "segments.") {
		a.Nested = "segments"
	}
	if a.Analyzer = analyzer; a.Analyzer == "" {
		a.Analyzer = f.analyzers[field]
	}
	written := strings.Fields(text)
	if !f.keepsCase {
		text = strings.ToLower(text)
	}
	for i, term := range strings.Fields(text) {
		if slices.Contains(strings.Fields(f.stopWords), term) {
			continue
		}
		a.Terms = append(a.Terms, term)
		a.Positions = append(a.Positions, i)
		if written[i] == term {
			written[i] = ""
		}
		a.Written = append(a.Written, written[i])
		if s, ok := f.synonyms[term]; ok {
			a.Terms = append(a.Terms, s)
			a.Positions = append(a.Positions, i)
			a.Written = append(a.Written, "")
		}
	}
	if strings.Join(a.Written, "") == "" {
		a.Written = nil
	}
	return a, nil
}

func (f *fakeCluster) DocumentTerms(
	_ context.Context, _ esclient.Indices, _ string, docs []esclient.StoredDocument, _ esclient.TermFilter,
) (*esclient.DocumentTerms, error) {
	freqs := map[string]int{}
	for _, d := range docs {
		for term := range strings.FieldsSeq(f.stored[d.ID]) {
			freqs[term]++
		}
	}
	all := &esclient.DocumentTerms{}
	for _, term := range slices.Sorted(maps.Keys(freqs)) {
		all.Terms, all.Freqs = append(all.Terms, term), append(all.Freqs, freqs[term])
	}
	return all, nil
}

func (f *fakeCluster) Statistics(_ context.Context, _ esclient.Indices, field string, terms []string, docFreqs []int64) (esclient.FieldStatistics, error) {
	if f.statisticsErr != nil {
		return esclient.FieldStatistics{}, f.statisticsErr
	}
	if f.uncounted {
		return esclient.FieldStatistics{Uncounted: true, Scale: f.scale, Scripts: f.scripts}, nil
	}
	of := f.docFreqs
	if field == "title" && f.inTitle != nil {
		of = f.inTitle
	}
	for k, t := range terms {
		docFreqs[k] = of[t]
	}
	return esclient.FieldStatistics{DocCount: f.docCount, Scale: f.scale, Scripts: f.scripts}, nil
}

func (*fakeCluster) ReadsQuery(_ context.Context, pipeline string) (bool, error) {
	switch pipeline {
	case "hidden":
		return false, &esclient.Error{Status: 403, Type: "security_exception"}
	case "gone":
		return false, &esclient.Error{Status: 404}
	case "slow":
		return false, context.DeadlineExceeded
	}
	return pipeline == "reads", nil
}

func (*fakeCluster) Fields(_ context.Context, _ esclient.Indices, pattern string) ([]string, error) {
	var matching []string
	for _, field := range []string{"body", "sku", "title"} {
		if ok, _ := path.Match(pattern, field); ok {
			matching = append(matching, field)
		}
	}
	return matching, nil
}

// fakeMatrix is a matrix bound to every field but "unbound".
type fakeMatrix struct {
	docs  int64
	power float64 // 0 is 1
	model string
	rows  map[string]simmatrix.Row
	err   error
	// nearest are the known words nearest to others, at similarity 0.5.
	nearest map[string]string
}

func (m *fakeMatrix) Pin() Pinned { return m }

func (m *fakeMatrix) For(_ context.Context, _ esclient.Indices, field string) (Bound, error) {
	if field == "unbound" {
		return Bound{}, nil
	}
	return Bound{Rows: m}, nil
}

func (*fakeMatrix) Version() string { return "test@1" }

func (*fakeMatrix) Checksum() string { return "checksum" }

func (m *fakeMatrix) Docs() int64 { return m.docs }

func (m *fakeMatrix) Power() float64 { return cmp.Or(m.power, 1) }
func (m *fakeMatrix) Model() string  { return m.model }

func (m *fakeMatrix) Expressions() func(string) bool {
	for term := range m.rows {
		if simmatrix.IsExpression(term) {
			return func(expression string) bool { return !m.rows[expression].IsZero() }
		}
	}
	return nil
}

func (m *fakeMatrix) Nearest(word string) ([]string, float32) {
	if known := m.nearest[word]; known != "" {
		return strings.Fields(known), 0.5
	}
	return nil, 0
}

func (m *fakeMatrix) Rows(_ context.Context, terms []string, rows []simmatrix.Row) error {
	for k, t := range terms {
		rows[k] = m.rows[t]
	}
	return m.err
}

// rounds is how often a property is tried. The race detector makes these tests
// slow and finds nothing in them, which have one goroutine: with it they are fewer.
func rounds(n int) int {
	if raceEnabled {
		return n / 4
	}
	return n
}

// matrixOf packs rows; the document frequencies are those of the cluster.
func matrixOf(tb testing.TB, c *fakeCluster, rows map[string][]simmatrix.Neighbor) *fakeMatrix {
	tb.Helper()
	m := &fakeMatrix{docs: c.docCount, rows: map[string]simmatrix.Row{}}
	for term, neighbors := range rows {
		for k := range neighbors {
			neighbors[k].DocFreq = uint32(c.docFreqs[neighbors[k].Term])
		}
		slices.SortStableFunc(neighbors, func(a, b simmatrix.Neighbor) int { return cmp.Compare(b.Similarity, a.Similarity) })
		row, err := simmatrix.PackRow(uint32(c.docFreqs[term]), neighbors)
		check.OK(tb, err)
		m.rows[term] = row
	}
	return m
}

// rental is a cluster and a matrix in which "car" and "rental" have neighbors.
func rental(tb testing.TB) (*fakeCluster, *fakeMatrix) {
	tb.Helper()
	c := &fakeCluster{
		docCount: 1000, scale: 2.2, scripts: true,
		docFreqs: map[string]int64{"car": 50, "rental": 20, "automobile": 10, "hire": 30, "lease": 5, "cheap": 90},
	}
	return c, matrixOf(tb, c, map[string][]simmatrix.Neighbor{
		"car":    {{Term: "automobile", Similarity: 0.8}, {Term: "lease", Similarity: 0.1}},
		"rental": {{Term: "hire", Similarity: 0.5}, {Term: "lease", Similarity: 0.4}, {Term: "gone", Similarity: 0.3}},
		"cheap":  {{Term: "hire", Similarity: 0.2}},
	})
}

// widening are the defaults, but related words always find documents.
func widening() Profile {
	o := DefaultProfile()
	o.Matching = Widen
	return o
}

func with(change func(o *Profile)) Profile {
	o := widening()
	change(&o)
	return o
}

// expanded expands a request.
func expanded(tb testing.TB, e *Expander, req *Request) *Result {
	tb.Helper()
	r, err := e.Expand(tb.Context(), req)
	check.OK(tb, err)
	return r
}

func expandBody(tb testing.TB, o Profile, body string) *Result {
	tb.Helper()
	c, m := rental(tb)
	r := expanded(tb, New(c, m, o), &Request{Index: "docs", Body: []byte(body)})
	return r
}
