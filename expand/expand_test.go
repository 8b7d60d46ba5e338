package expand

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// rounded cuts the numbers of a rewritten body to four decimals.
func rounded(s []byte) string {
	return regexp.MustCompile(`\d+\.\d+`).ReplaceAllStringFunc(string(s), func(n string) string {
		v, _ := strconv.ParseFloat(n, 64)
		return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64)
	})
}

const carRental = `{"query":{"match":{"body":"car rental"}}}`

// The boosts below are λ v_j / idf_j with v_j = Σ_i x_i √(idf_i idf_j) s_ij over
// the document frequencies of rental(), N = 1000, worked out apart from the
// code: v(automobile) = 2.9515, v(lease) = 2.1936, v(hire) = 1.8422.
func TestAddedTermsStandBesideTheOriginal(t *testing.T) {
	const original = `{"match":{"body":"car rental"}}`
	invert := func(term, m, b string) string {
		return `{"script_score":{"query":{"term":{"body":{"value":"` + term + `"}}},"script":{"source":"` + scriptInvert + `","params":{"m":` + m + `,"c":0.999,"b":` + b + `}}}}`
	}
	saturate := func(m string, terms ...string) string {
		return `{"script_score":{"query":{"bool":{"should":[` + strings.Join(terms, ",") + `]}},"script":{"source":"` + scriptSaturate + `","params":{"m":` + m + `}}}}`
	}
	for scoring, want := range map[form.Scoring]string{
		form.Linear: original + `,{"term":{"body":{"value":"automobile","boost":0.1471}}},{"term":{"body":{"value":"lease","boost":0.0743}}},{"term":{"body":{"value":"hire","boost":0.0975}}}`,
		form.Grouped: `{"bool":{"filter":[` + original + `]}},{"dis_max":{"tie_breaker":0.1,"queries":[{"term":{"body":{"value":"car"}}},` +
			`{"dis_max":{"tie_breaker":0.35,"queries":[{"term":{"body":{"value":"automobile","boost":0.3678}}}]}}]}},` +
			`{"dis_max":{"tie_breaker":0.1,"queries":[{"term":{"body":{"value":"rental"}}},` +
			`{"dis_max":{"tie_breaker":0.35,"queries":[{"term":{"body":{"value":"lease","boost":0.1857}}},{"term":{"body":{"value":"hire","boost":0.2438}}}]}}]}}`,
		// m = 2.2 idf, β = 0.25 v_j / idf_i.
		form.Saturated: `{"bool":{"filter":[` + original + `]}},` + saturate("6.5709", invert("car", "6.5709", "1"), invert("automobile", "10.0262", "0.2806")) + "," +
			saturate("8.5543", invert("rental", "8.5543", "1"), invert("lease", "11.4488", "0.1243"), invert("hire", "7.6803", "0.1094")),
	} {
		r := expandBody(t, with(func(o *Profile) { o.Scoring, o.NoRescore = scoring, true }), carRental)
		check.Equal(t, `{"query":{"bool":{"should":[`+want+`]}}}`, rounded(r.Body), scoring)
	}
}

func TestFrequenciesOfTheMatrixReplaceThoseThatTheClusterDoesNotTell(t *testing.T) {
	const car = `{"query":{"match":{"body":"car"}}}`
	counted := expandBody(t, with(func(o *Profile) { o.Scoring = form.Grouped }), car)
	c, m := rental(t)
	c.uncounted = true
	r := expandIn(t, c, m, widening(), car)
	check.Equal(t, string(counted.Body), string(r.Body))
	e := r.Clauses[0]
	check.That(t, e.Form == "grouped" && e.Reason == reason.NoFrequencies && e.MatrixFrequencies && !counted.Clauses[0].MatrixFrequencies, "%+v", e)

	m.docs = 0 // a matrix that counted no documents: all words count alike
	r = expandIn(t, c, m, widening(), car)
	check.That(t, len(r.Clauses[0].Added) == 2, "%+v", r.Clauses[0])
	m.nearest = map[string]string{"karr": "car"} // a document may have the word
	r = expandIn(t, c, m, with(func(o *Profile) { o.NearestWords = true }), `{"query":{"match":{"body":"karr rental"}}}`)
	check.That(t, len(r.Clauses[0].Nearest) == 0 && len(r.Clauses[0].Added) > 0, "%+v", r.Clauses[0])
}

func TestExplanationNamesEachAddedTerm(t *testing.T) {
	r := expandBody(t, with(func(o *Profile) { o.Scoring = form.Linear }), carRental)
	want := []Explanation{{
		Path: "query.match", Field: "body", Matrix: "test@1", Form: "linear", Phase: "query", Effort: "high", Terms: []string{"car", "rental"},
		Added: []Added{
			{Term: "automobile", From: "car", Similarity: 0.8, Fit: 0.4873, IDF: 4.5574, Weight: 3.3520, Boost: 0.1471},
			{Term: "lease", From: "rental", Similarity: 0.4, Fit: 0.3781, IDF: 5.2040, Weight: 1.9330, Boost: 0.0743},
			{Term: "hire", From: "rental", Similarity: 0.5, Fit: 0.3965, IDF: 3.4910, Weight: 1.7023, Boost: 0.0975},
		},
		LeftOut: []LeftOut{{Term: "gone", From: "rental", Similarity: 0.3, Reason: "not_in_index"}},
	}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-4 })
	check.Equal(t, want, r.Clauses, near, "clauses")
}

func TestExplanationNamesTheWordsWithoutARow(t *testing.T) {
	for body, want := range map[string][]string{
		`{"query":{"match":{"body":"car zeppelin rental blimp"}}}`: {"zeppelin", "blimp"},
		`{"query":{"match":{"body":"zeppelin"}}}`:                  {"zeppelin"},
		`{"query":{"match":{"body":"car rental"}}}`:                nil,
	} {
		got := expandBody(t, widening(), body).Clauses[0].NoRow
		check.That(t, slices.Equal(got, want), "%s: %v, want %v", body, got, want)
	}
}

func TestWeightMatchesTheEnginesFormula(t *testing.T) {
	// car → automobile alone, s = 0.8; idf 2.9868 and 4.5574; λ = 0.2.
	for similarity, boost := range map[mapping.Similarity]float64{
		mapping.BM25:    0.2 * 0.8 * math.Sqrt(2.98678/4.55738), // idf once
		mapping.Other:   0.2 * 0.8 * math.Sqrt(2.98678/4.55738), // not known
		mapping.Boolean: 0.2 * 0.8,                              // no idf
	} {
		c, _ := rental(t)
		c.similarity = similarity
		m := matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": {{Term: "automobile", Similarity: 0.8}}})
		r := expandIn(t, c, m, with(func(o *Profile) { o.Scoring = form.Linear }), `{"query":{"match":{"body":"car"}}}`)
		got := r.Clauses[0].Added[0]
		check.That(t, got.Term == "automobile" && math.Abs(got.Boost-boost) <= 1e-5, "similarity %v: added %+v, want automobile with boost %.5f", similarity, got, boost)
	}
}

// manyFields returns n names of fields, quoted.
func manyFields(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Quote("f" + strconv.Itoa(i))
	}
	return strings.Join(names, ",")
}

// What the files of e2e/testdata/requests do not have.
func TestSearchesLeftAlone(t *testing.T) {
	same := func(o *Profile) { o.Matching = Same }
	clause := func(query string) Request { return Request{Body: []byte(`{"query":` + query + `}`)} }
	for name, tt := range map[string]struct {
		req    Request
		change func(o *Profile)
		want   reason.Reason
	}{
		"min_score, escaped":  {Request{Body: []byte(`{"min\u005fscore":1,"query":{"match":{"body":"car"}}}`)}, nil, reason.MinScore},
		"too many fields":     {clause(`{"multi_match":{"query":"car","fields":[` + manyFields(65) + `]}}`), nil, reason.TooManyClauses},
		"source in YAML":      {Request{RawQuery: `source=%7B%7D&source_content_type=application/yaml`}, nil, reason.SourceParameter},
		"same, size=0":        {Request{RawQuery: "size=0", Body: []byte(carRental)}, same, reason.NoScores},
		"same, sorted by URL": {Request{RawQuery: "sort=date:desc", Body: []byte(carRental)}, same, reason.NoScores},
		"same, by _score":     {Request{Body: []byte(`{"sort":["_score","date"],"query":{"match":{"body":"car"}}}`)}, same, ""},
		"too long a text":     {clause(`{"match":{"body":"` + strings.Repeat("ca", maxText) + `"}}`), nil, reason.TooManyTerms},
		"too many terms":      {clause(`{"match":{"body":"` + strings.Repeat("car ", maxTerms+1) + `"}}`), nil, reason.TooManyTerms},
		"wrong operator":      {clause(`{"match":{"body":{"query":"car","operator":"xor"}}}`), nil, reason.Options},
		"minus zero":          {clause(`{"match":{"body":{"query":"car","boost":"-0"}}}`), nil, reason.Options},
		"boosts too large":    {clause(`{"multi_match":{"query":"car","fields":["body^1e20"],"boost":1e20}}`), nil, reason.Options},
		"wildcard fields":     {clause(`{"multi_match":{"query":"car","fields":["nothing*"]}}`), nil, reason.NoField},
		"no fields":           {clause(`{"query_string":{"query":"car"}}`), nil, reason.NoDefaultFields},
	} {
		r := expandRequest(t, &tt.req, func(_ *fakeCluster, o *Profile) {
			if *o = widening(); tt.change != nil {
				tt.change(o)
			}
		})
		check.That(t, r.Reason == tt.want && r.Rewritten == (tt.want == ""), "%s: reason %q, rewritten %t; want reason %q", name, r.Reason, r.Rewritten, tt.want)
	}
}

// With a knn beside the query Elasticsearch scores by the statistics of all
// shards, and answers 400 to any search_type.
func TestFormFollowsWhatIsPossible(t *testing.T) {
	const knn = `,"knn":{"field":"v","query_vector":[1],"k":1,"num_candidates":2}`
	for name, tt := range map[string]struct {
		change func(c *fakeCluster)
		query  string
		beside string // members of the body beside the query
		params string
		form   string
		reason reason.Reason
	}{
		"unknown scale":       {change: func(c *fakeCluster) { c.scale = 0 }, form: "grouped", reason: reason.NotBM25},
		"it has a name":       {query: `{"multi_match":{"query":"car rental","fields":["body","sku"],"_name":"n"}}`, form: "linear", reason: reason.NotAdditive},
		"it is among all":     {query: `{"multi_match":{"query":"car rental","fields":["body","sku","*"]}}`, form: "linear", reason: reason.NotAdditive},
		"shards, dfs":         {change: func(c *fakeCluster) { c.shards = 5 }, params: "search_type=dfs_query_then_fetch", form: "saturated"},
		"shards, knn":         {change: func(c *fakeCluster) { c.shards = 5 }, beside: knn, form: "saturated", reason: reason.Vectors},
		"shards, knn, dfs":    {change: func(c *fakeCluster) { c.shards = 5 }, beside: knn, params: "search_type=dfs_query_then_fetch", form: "saturated", reason: reason.Vectors},
		"shards, knn, sort":   {change: func(c *fakeCluster) { c.shards = 5 }, beside: knn + `,"sort":["_score"]`, form: "saturated", reason: reason.Sort},
		"shards, knn, routed": {change: func(c *fakeCluster) { c.shards = 5 }, beside: knn, params: "routing=a", form: "grouped", reason: reason.Routing},
		"routing":             {change: func(c *fakeCluster) { c.shards = 5 }, params: "routing=a%2Cb", form: "grouped", reason: reason.Routing},
		"some shards":         {change: func(c *fakeCluster) { c.shards = 5 }, params: "preference=_shards%3A0,1%7C_local", form: "grouped", reason: reason.Routing},
		"one node's shards":   {change: func(c *fakeCluster) { c.shards = 5 }, params: "preference=_only_local", form: "grouped", reason: reason.Routing},
		"any copies":          {change: func(c *fakeCluster) { c.shards = 5 }, params: "preference=session_shards", form: "saturated"},
		"routed alias":        {change: func(c *fakeCluster) { c.shards, c.routed = 5, true }, form: "grouped", reason: reason.Routing},
		"one shard, routed":   {change: func(c *fakeCluster) { c.routed = true }, params: "routing=a&preference=_shards:0", form: "saturated"},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			if tt.change != nil {
				tt.change(c)
			}
			query := tt.query
			if query == "" {
				query = `{"match":{"body":"car rental"}}`
			}
			r := expanded(t, New(c, m, widening()), &Request{RawQuery: tt.params, Body: []byte(`{"query":` + query + tt.beside + `}`)})
			got := r.Clauses[0]
			check.That(t, got.Form == tt.form && got.Reason == tt.reason, "form %q, reason %q; want %q, %q", got.Form, got.Reason, tt.form, tt.reason)
			wantDFS := c.shards > 1 && tt.form == "saturated" && tt.beside == "" || strings.Contains(tt.params, dsl.DFS)
			check.Equal(t, wantDFS, strings.Contains(r.RawQuery, dsl.DFS), r.RawQuery, "raw query dfs")
		})
	}
}

// Engines look for each word in all fields of one analyzer together.
func TestFieldsOfOtherAnalyzersAreSearchedApart(t *testing.T) {
	for name, tt := range map[string]struct {
		analyzers map[string]string
		options   string
		apart     bool
	}{
		"one":              {map[string]string{"body": "a", "title": "a"}, "", false},
		"two":              {map[string]string{"body": "a", "title": "b"}, "", true},
		"the clause's own": {map[string]string{"body": "a", "title": "b"}, `,"analyzer":"c"`, false},
	} {
		change := func(c *fakeCluster, _ *Profile) { c.analyzers = tt.analyzers }
		r := expandRequest(t, &Request{Body: []byte(`{"query":{"multi_match":{"query":"car","fields":["body","title"],"type":"cross_fields"` + tt.options + `}}}`)}, change)
		check.That(t, r.Rewritten, "%s: not rewritten", name)
		check.Equal(t, tt.apart, len(r.Clauses[1].Added) > 0, name+": title has words of its own") // else it follows body
		r = expandRequest(t, &Request{Body: []byte(`{"query":{"combined_fields":{"query":"car","fields":["body","title"]` + tt.options + `}}}`)}, change)
		check.Equal(t, tt.apart, r.Reason == reason.FieldsDiffer, name+": combined_fields is left alone")
	}
}

func TestFieldsThatDoNotMatchDoNotScore(t *testing.T) {
	query := `{"query":{"multi_match":{"query":"car rental","fields":["body","title"],"operator":"and"}}}`
	r := expandBody(t, with(func(o *Profile) { o.Matching = Same }), query)
	check.Equal(t, 2, strings.Count(string(r.Body), `"minimum_should_match":"100%"`), string(r.Body))
	r = expandBody(t, with(func(o *Profile) { o.Matching = Same }), strings.Replace(query, `,"title"`, "", 1))
	check.That(t, !strings.Contains(string(r.Body), "minimum_should_match"), "a single field counts what its filter has counted:\n%s", r.Body)
}

func TestAddedTermsAreSharedBetweenClauses(t *testing.T) {
	body := `{"query":{"bool":{"must":[{"match":{"body":"rental"}},{"match":{"body":"cheap"}},{"match":{"body":"car"}}]}}}`
	for name, tt := range map[string]struct {
		limit int
		want  []int // rental has 2 to add, cheap 1, car 2
	}{
		"enough for all":    {30, []int{2, 1, 2}},
		"unused goes on":    {4, []int{2, 1, 1}},
		"one each":          {3, []int{1, 1, 1}},
		"first come":        {2, []int{1, 1, 0}},
		"none":              {0, []int{0, 0, 0}},
		"exactly all there": {5, []int{2, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := expandBody(t, with(func(o *Profile) { o.MaxAddedTerms = tt.limit }), body)
			var got []int
			for _, c := range r.Clauses {
				got = append(got, len(c.Added))
				check.That(t, (c.Reason == "") == (len(c.Added) > 0), "%d terms added, reason %q", len(c.Added), c.Reason)
			}
			check.Equal(t, tt.want, got, "added terms")
		})
	}
}

func TestExplanationSaysWhichNeighborsAreLeftOutAndWhy(t *testing.T) {
	c, _ := rental(t)
	rows := map[string][]simmatrix.Neighbor{
		"price": {{Term: "cost", Similarity: 0.98}},
		"fee":   {{Term: "cost", Similarity: 0.7}, {Term: "gone", Similarity: 0.9}, {Term: "hire", Similarity: 0.5}},
		"old":   {{Term: "lately", Similarity: 0.6}},
		"many":  nil,
	}
	for i := range 40 {
		rows["many"] = append(rows["many"], simmatrix.Neighbor{Term: fmt.Sprint("absent", i), Similarity: float32(i+1) / 50})
	}
	rows["many"] = append(rows["many"], simmatrix.Neighbor{Term: "cost", Similarity: 0.01})
	c.docFreqs["cost"] = 101 // of 1000, above a tenth
	m := matrixOf(t, c, rows)
	c.docFreqs["lately"] = 500 // since the matrix was built
	for _, tt := range []struct {
		query  string
		reason reason.Reason
		want   []string
	}{
		{`{"match":{"body":"price"}}`, reason.NeighborsTooFrequent, []string{"price cost 0.98 max_doc_share"}},
		{`{"match":{"body":"old"}}`, reason.NeighborsTooFrequent, []string{"old lately 0.60 max_doc_share"}},
		{`{"match":{"body":"fee"}}`, "", []string{"fee cost 0.70 max_doc_share", "fee gone 0.90 not_in_index"}},
		{`{"match":{"body":"fee price"}}`, "", []string{"price cost 0.98 max_doc_share", "fee gone 0.90 not_in_index"}},
		{`{"match":{"body":"zebra"}}`, reason.NoNeighbors, nil},
		{`{"multi_match":{"query":"price","fields":["body","title"],"type":"cross_fields"}}`, reason.NeighborsTooFrequent, []string{"price cost 0.98 max_doc_share"}},
		{`{"match":{"body":"many"}}`, reason.NeighborsTooFrequent, []string{
			"many cost 0.01 max_doc_share", "many absent39 0.80 not_in_index", "many absent38 0.78 not_in_index", "many absent37 0.76 not_in_index",
			"many absent36 0.74 not_in_index", "many absent35 0.72 not_in_index", "many absent34 0.70 not_in_index", "many absent33 0.68 not_in_index",
			"many absent32 0.66 not_in_index", "many absent31 0.64 not_in_index",
		}},
	} {
		r := expanded(t, New(c, m, with(func(o *Profile) { o.Scoring = form.Linear })), &Request{Body: []byte(`{"query":` + tt.query + `}`)})
		var got []string
		for _, l := range r.Clauses[0].LeftOut {
			got = append(got, fmt.Sprintf("%s %s %.2f %s", l.From, l.Term, l.Similarity, l.Reason))
		}
		diff := cmp.Diff(tt.want, got)
		check.That(t, diff == "" && r.Clauses[0].Reason == tt.reason, "%s: reason %q, want %q; left out (-want +got):\n%s", tt.query, r.Clauses[0].Reason, tt.reason, diff)
	}
}

func TestFailuresNameTheirStage(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		mode  Mode
		stage Stage
		set   func(c *fakeCluster, m *fakeMatrix, f *fakeWeights)
	}{
		{ModeBM25, StageAnalyze, func(c *fakeCluster, _ *fakeMatrix, _ *fakeWeights) { c.analyzeErr = boom }},
		{ModeBM25, StageRows, func(_ *fakeCluster, m *fakeMatrix, _ *fakeWeights) { m.err = boom }},
		{ModeBM25, StageStatistics, func(c *fakeCluster, _ *fakeMatrix, _ *fakeWeights) { c.statisticsErr = boom }},
		{ModeHard, StageLinear, func(_ *fakeCluster, _ *fakeMatrix, f *fakeWeights) { f.linearErr = boom }},
		{ModeHard, StageWeights, func(_ *fakeCluster, _ *fakeMatrix, f *fakeWeights) { f.rowsErr = boom }},
		{ModeHard, StageStatistics, func(c *fakeCluster, _ *fakeMatrix, _ *fakeWeights) { c.statisticsErr = boom }},
	} {
		for _, body := range []string{carRental, `{"query":{"multi_match":{"query":"car","fields":["body","title"]}}}`} {
			c, m := rental(t)
			f := rentalWeights()
			tt.set(c, m, f)
			r, err := New(c, m, with(func(o *Profile) { o.Mode = tt.mode })).WithWeights(f).Expand(t.Context(), &Request{Body: []byte(body)})
			var failure *StageError
			check.That(t, r == nil && errors.As(err, &failure) && failure.Stage == tt.stage && errors.Is(err, boom), "result %v, error %v; want an error of stage %s", r, err, tt.stage)
		}
	}
}

func TestExpansionsSideBySideDoNotMix(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	bodies := []string{
		carRental, `{"query":{"match":{"title":"cheap"}}}`, `{"query":`, `{"query":{"multi_match":{"query":"car","fields":["a","b^2"]}}}`,
		`{"query":{"bool":{"must":[{"match":{"body":"rental"}},{"match":{"sku":"car"}}]}}}`,
	}
	want := make([]string, len(bodies))
	for i, b := range bodies {
		r := expanded(t, New(c, m, widening()), &Request{Body: []byte(b)})
		want[i] = string(r.Body)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 200 {
				i := (n + g) % len(bodies)
				r, err := e.Expand(context.Background(), &Request{Body: []byte(bodies[i])})
				if err != nil || string(r.Body) != want[i] {
					t.Errorf("body %d: error %v, got %s, want %s", i, err, r.Body, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}
