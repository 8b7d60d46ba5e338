package esclient

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// Names of the tests' doc values, and an id of weights.
const (
	normPath, weightsPath = "akin_norm.body", "akin_norm_weights.body"
	weightsID             = "0123456789abcdef"
)

// A linearIndex is what the mapping and settings of an index are made of.
type linearIndex struct {
	body, norm, settings string
}

// indexAnswer returns the answer of GET /{index} for indices by their names.
func indexAnswer(indices map[string]linearIndex) string {
	var all []string
	for name, i := range indices {
		norm := i.norm
		if norm == "" {
			norm = `{"type":"float","index":false}`
		}
		all = append(all, fmt.Sprintf(`%q:{"mappings":{"properties":{"body":%s,
			"akin_norm":{"properties":{"body":%s}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}}},
			"settings":{"index.number_of_shards":"1"%s}}`, name, i.body, norm, i.settings))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// similarity returns settings of the similarity s, each "name=value".
func similarity(settings ...string) string {
	var text strings.Builder
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		fmt.Fprintf(&text, `,"index.similarity.s.%s":%q`, name, value)
	}
	return text.String()
}

// withMulti returns a field with the multi-field "lin", of more parameters.
func withMulti(parameters string) string {
	return `{"type":"text","analyzer":"english","fields":{"raw":{"type":"keyword"},
		"lin":{"type":"text","similarity":"s"` + parameters + `}}}`
}

const english = `,"analyzer":"english"`

// linearFake answers as a cluster with these indices and a mean norm of 2.5.
func linearFake(indices map[string]linearIndex) *clustertest.Fake {
	f := clustertest.New()
	f.Reply("GET /i", 200, indexAnswer(indices))
	f.Reply("GET /", 200, `{"version":{"number":"8.1.0"}}`)
	f.On("POST /_search", func(w http.ResponseWriter, r *http.Request) {
		text := readAll(r)
		switch {
		case strings.Contains(text, `"avg"`):
			_, _ = w.Write([]byte(normsAnswer(0, 10, "2.5")))
		case strings.Contains(text, "more_like_this"):
			_, _ = w.Write([]byte(`{"hits":{"hits":[{"_explanation":{"value":1,"description":"score(freq=1.0), computed as boost * idf * tf from:",
				"details":[{"value":1.9,"description":"idf, computed"},{"value":0.1,"description":"tf, computed",
				"details":[{"value":10000,"description":"k1, term saturation parameter"}]}]}}]}}`))
		default:
			_, _ = w.Write([]byte(`{"hits":{"hits":[{"_index":"i","_id":"7"}]}}`))
		}
	})

	return f
}

// normsAnswer is what a search for the norms answers where so many documents
// have the field, other weights or none, or these with a mean norm.
func normsAnswer(others, normed int, mean string) string {
	return fmt.Sprintf(`{"_shards":{"failed":0},"aggregations":{"others":{"doc_count":%d},"normed":{"doc_count":%d,"norm":{"value":%s}}}}`,
		others, normed, mean)
}

// linear asks for the linear field of body.
func linear(tb testing.TB, c *Cached) (Linear, error) {
	tb.Helper()
	return c.Linear(tb.Context(), at("i"), "body", normPath, weightsPath, weightsID)
}

func readAll(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

func TestLinearFieldIsFoundByItsSimilarity(t *testing.T) {
	bm25 := similarity("type=BM25", "k1=10000", "b=0")
	script := similarity("type=scripted", "script.source= "+mapping.LinearScript+"\n")
	multi := func(settings ...string) linearIndex {
		return linearIndex{body: withMulti(english), settings: similarity(settings...)}
	}
	normed := func(norm string) linearIndex {
		return linearIndex{body: withMulti(english), settings: bm25, norm: norm}
	}
	with := func(parameters string) linearIndex { return linearIndex{body: withMulti(parameters), settings: bm25} }
	for name, test := range map[string]struct {
		index linearIndex
		want  Linear
		err   error
	}{
		"BM25 in a multi-field":     {with(english), Linear{Field: "body.lin", Factor: 1e-4}, nil}, // the explanation has no k1+1
		"a script in a multi-field": {linearIndex{body: withMulti(english), settings: script}, Linear{Field: "body.lin", Scripted: true, Factor: 1}, nil},
		"the field itself": {
			linearIndex{body: `{"type":"text","similarity":"s","fields":{"lin":{"type":"text","similarity":"s"}}}`, settings: script},
			Linear{Field: "body", Scripted: true, Factor: 1},
			nil,
		},
		"a script goes before BM25": {
			linearIndex{
				body: `{"type":"text","fields":{"a":{"type":"text","similarity":"s"},"b":{"type":"text","similarity":"t"}}}`,
				settings: bm25 + `,"index.similarity.t.type":"scripted","index.similarity.t.script.source":"` + mapping.LinearScript +
					`","index.similarity.t.script.lang":"painless"`,
			},
			Linear{Field: "body.b", Scripted: true, Factor: 1},
			nil,
		},
		"the similarity of all fields": {
			linearIndex{
				body:     `{"type":"text"}`,
				settings: `,"index.similarity.default.type":"BM25","index.similarity.default.k1":"6000.0","index.similarity.default.b":"0.0"`,
			},
			Linear{Field: "body", Factor: 1.0 / 6000},
			nil,
		},
		"analyzers of one definition": { // "english" is not defined here, and may be another
			linearIndex{body: withMulti(`,"analyzer":"en","search_analyzer":"english"`), settings: bm25 + `,"index.analysis.analyzer.en.type":"english"`},
			Linear{},
			ErrNoLinear,
		},
		"k1 too small":                 {multi("type=BM25", "k1=5999", "b=0"), Linear{}, ErrNoLinear},
		"k1 too large":                 {multi("type=BM25", "k1=100001", "b=0"), Linear{}, ErrNoLinear},
		"k1 that is no number":         {multi("type=BM25", "k1=NaN", "b=0"), Linear{}, ErrNoLinear},
		"b of 0.75, as by default":     {multi("type=BM25", "k1=10000"), Linear{}, ErrNoLinear},
		"b that is no number":          {multi("type=BM25", "k1=10000", "b=x"), Linear{}, ErrNoLinear},
		"another script":               {multi("type=scripted", "script.source=return doc.freq;"), Linear{}, ErrNoLinear},
		"a script in another language": {multi("type=scripted", "script.lang=x", "script.source="+mapping.LinearScript), Linear{}, ErrNoLinear},
		"another kind of similarity":   {multi("type=DFI"), Linear{}, ErrNoLinear},
		"another analyzer":             {with(""), Linear{}, ErrNoLinear},
		"another search analyzer":      {with(english + `,"search_analyzer":"simple"`), Linear{}, ErrNoLinear},
		"no frequencies":               {with(english + `,"index_options":"docs"`), Linear{}, ErrNoLinear},
		"not indexed":                  {with(english + `,"index":false`), Linear{}, ErrNoLinear},
		"nothing linear":               {linearIndex{body: `{"type":"text"}`}, Linear{}, ErrNoLinear},
		"no text":                      {linearIndex{body: `{"type":"keyword"}`}, Linear{}, mapping.ErrNotText},
		"norms as integers":            {normed(`{"type":"long"}`), Linear{}, ErrNoNorms},
		"norms without doc values":     {normed(`{"type":"float","doc_values":false}`), Linear{}, ErrNoNorms},
		"norms as text":                {normed(`{"type":"text"}`), Linear{}, ErrNoNorms},
	} {
		t.Run(name, func(t *testing.T) {
			f := linearFake(map[string]linearIndex{"i": test.index})
			got, err := linear(t, cached(t, f))
			check.Must(t, errors.Is(err, test.err), "%v, want %v", err, test.err)
			if test.err != nil {
				return
			}
			test.want.Norm, test.want.Missing = normPath, 2.5
			off := math.Abs(got.Factor - test.want.Factor)
			if got.Factor = test.want.Factor; off > 1e-12 || got != test.want {
				t.Errorf("%+v, its factor off by %g, want %+v", got, off, test.want)
			}
			check.Equal(t, 1, f.Asked(`"normed":{"aggs":{"norm":{"avg":{"field":"akin_norm.body"}}},"filter":{"term":{"akin_norm_weights.body":{"value":"`+weightsID+`"}`))
		})
	}
}

func TestMultiFieldHasLinearRelatives(t *testing.T) {
	f := linearFake(map[string]linearIndex{"i": {
		body:     `{"type":"keyword","fields":{"std":{"type":"text"},"std_akin":{"type":"text","similarity":"s"}}}`,
		settings: similarity("type=scripted", "script.source="+mapping.LinearScript),
	}})
	got, err := cached(t, f).Linear(t.Context(), at("i"), "body.std", normPath, weightsPath, weightsID)
	check.That(t, err == nil && got.Field == "body.std_akin", "%+v, %v", got, err)
}

func TestIndicesMustScoreLinearlyAlike(t *testing.T) {
	one := linearIndex{body: withMulti(english), settings: similarity("type=BM25", "k1=10000", "b=0")}
	for name, test := range map[string]struct {
		other linearIndex
		err   error
	}{
		"alike":              {one, nil},
		"another k1":         {linearIndex{body: one.body, settings: similarity("type=BM25", "k1=20000", "b=0")}, mapping.ErrMixed},
		"a script":           {linearIndex{body: one.body, settings: similarity("type=scripted", "script.source="+mapping.LinearScript)}, mapping.ErrMixed},
		"none":               {linearIndex{body: `{"type":"text","analyzer":"english"}`}, ErrNoLinear},
		"another analyzer":   {linearIndex{body: `{"type":"text","fields":{"lin":{"type":"text","similarity":"s"}}}`, settings: one.settings}, mapping.ErrMixed},
		"norms not so there": {linearIndex{body: one.body, settings: one.settings, norm: `{"type":"long"}`}, ErrNoNorms},
	} {
		f := linearFake(map[string]linearIndex{"i": one, "j": test.other})
		check.Error(t, test.err, check.ErrOf(linear(t, cached(t, f))), name)
	}
}

func TestFieldsInNestedObjectsHaveNoNorms(t *testing.T) {
	f := linearFake(nil)
	f.Reply("GET /i", 200, `{"i":{"mappings":{"properties":{"n":{"type":"nested","properties":{"body":{"type":"text","similarity":"s"}}},
		"akin_norm":{"properties":{"n__body":{"type":"float"}}}}},"settings":{"index.similarity.s.type":"scripted",
		"index.similarity.s.script.source":"`+mapping.LinearScript+`"}}}`)

	_, err := cached(t, f).Linear(t.Context(), at("i"), "n.body", "akin_norm.n__body", "akin_norm_weights.n__body", weightsID)
	check.Error(t, ErrNoNorms, err)
}

func TestDocumentsMustHaveNorms(t *testing.T) {
	index := map[string]linearIndex{"i": {body: withMulti(english), settings: similarity("type=scripted", "script.source="+mapping.LinearScript)}}
	other := errors.New("another")
	for name, test := range map[string]struct {
		answer string
		want   error // other for one that is not ErrNoNorms
	}{
		"no documents":                  {normsAnswer(0, 0, "null"), ErrNoNorms},
		"none without terms":            {normsAnswer(0, 5, "null"), ErrNoNorms},
		"zero":                          {normsAnswer(0, 5, "0"), ErrNoNorms},
		"negative":                      {normsAnswer(0, 5, "-1"), ErrNoNorms},
		"no number":                     {normsAnswer(0, 5, "1e999"), other},
		"a shard failed":                {strings.Replace(normsAnswer(0, 5, "2.5"), `"failed":0`, `"failed":1`, 1), other},
		"one document of many":          {normsAnswer(999, 1, "2.5"), ErrNoNorms},
		"half a backfill":               {normsAnswer(50, 50, "2.5"), ErrNoNorms},
		"a few more than are let pass":  {normsAnswer(101, 899, "2.5"), ErrNoNorms},
		"as many as are let pass":       {normsAnswer(100, 900, "2.5"), nil},
		"a few written past the weight": {normsAnswer(1, 99, "2.5"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := linearFake(index).Reply("POST /_search", 200, test.answer)
			l, err := linear(t, cached(t, f))
			switch {
			case test.want == nil && (err != nil || l.Missing != 2.5), test.want != nil && err == nil,
				err != nil && errors.Is(err, ErrNoNorms) != errors.Is(test.want, ErrNoNorms):
				t.Errorf("%+v, %v, want %v", l, err, test.want)
			}
			for _, part := range []string{
				`"query":{"bool":{"filter":{"exists":{"field":"body"}}}}`, `"bool":{"must_not":{"term":{"akin_norm_weights.body"`,
			} {
				check.Equal(t, 1, f.Asked(part), part, f.Calls(), "not asked")
			}
			check.Equal(t, 0, f.Asked("terminate_after"))
		})
	}
}

// C is (k1+1)/k1, and 1/k1 in OpenSearch 3, there too but for LegacyBM25.
func TestFactorWithoutAnExplanationIsThatOfTheVersion(t *testing.T) {
	for _, test := range []struct {
		version, kind string
		want          float64
	}{
		{`"number":"7.10.2"`, "BM25", 1.0001},
		{`"number":"2.19.1","distribution":"opensearch"`, "BM25", 1.0001},
		{`"number":"3.8.0","distribution":"opensearch"`, "BM25", 1e-4},
		{`"number":"3.8.0","distribution":"opensearch"`, "LegacyBM25", 1.0001},
		{`"number":"x"`, "BM25", 0},
	} {
		f := linearFake(map[string]linearIndex{"i": {body: withMulti(english), settings: similarity("type="+test.kind, "k1=10000", "b=0")}})
		f.Reply("GET /", 200, `{"version":{`+test.version+`}}`)
		f.On("POST /_search", func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(readAll(r), `"avg"`) {
				_, _ = w.Write([]byte(normsAnswer(0, 1, "1")))
				return
			}
			w.WriteHeader(http.StatusForbidden)
		})

		l, err := linear(t, cached(t, f))
		check.That(t, math.Abs(l.Factor-test.want) <= 1e-12 && (err == nil) == (test.want > 0), "%s %s: factor %g, want %g; %v", test.version, test.kind, l.Factor, test.want, err)
	}
}

func TestLinearIsRememberedAndForgotten(t *testing.T) {
	script := similarity("type=scripted", "script.source="+mapping.LinearScript)
	for name, test := range map[string]struct {
		index linearIndex
		again time.Duration // after which the cluster is asked again
	}{
		"an answer":  {linearIndex{body: withMulti(english), settings: script}, time.Minute},
		"no norms":   {linearIndex{body: withMulti(english), settings: script, norm: `{"type":"long"}`}, guessTime},
		"not linear": {linearIndex{body: `{"type":"text"}`}, guessTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := linearFake(map[string]linearIndex{"i": test.index})
				c := cached(t, f)
				ask := func(want int) {
					t.Helper()
					_, _ = linear(t, c)
					check.Equal(t, want, f.Asked("GET /i?"))
				}
				ask(1)
				check.Elapse(test.again - time.Second)
				ask(1)
				check.Elapse(2 * time.Second)
				ask(2)
				c.Forget("i")
				ask(3)
				s := c.Stats()
				check.That(t, s.Statistics.Failures == 0 && s.Statistics.Loads == 3 && s.Statistics.Hits == 1, "%+v", s.Statistics)
			})
		})
	}
}

func TestInspectionGoesOnBehindAnIndexWithoutTheText(t *testing.T) {
	f := clustertest.New().Reply("GET /x", 200, `{
		"b":{"mappings":{"properties":{"other":{"type":"keyword"}}},"settings":{}},
		"c":{"mappings":{},"settings":{}},
		"d":{"settings":{"index.verified_before_close":"true"}},
		"e":{"mappings":{"properties":{"body":{"type":"alias","path":"title.en"},"title":{"type":"text","fields":{"en":{"type":"text"}}}}},"settings":{}}}`)

	all, err := client(t, f).Inspect(t.Context(), "x", "body")
	check.Must(t, err == nil && len(all) == 1, "%d: %v", len(all), err)
	if e := &all[0]; e.Index != "e" || e.AliasOf != "title.en" || e.Source != "title" || e.Properties["title"] == nil {
		t.Errorf("%+v", e)
	}
	f.Reply("GET /x", 200, `{"a":{"mappings":{"properties":{"body":{"type":"keyword"}}},"settings":{}}}`)
	check.Error(t, mapping.ErrNotText, check.ErrOf(client(t, f).Inspect(t.Context(), "x", "body")))
}

func TestOtherWeightsAndOtherNormsAreOtherQuestions(t *testing.T) {
	f := linearFake(map[string]linearIndex{"i": {body: withMulti(english), settings: similarity("type=scripted", "script.source="+mapping.LinearScript)}})
	c := cached(t, f)
	for range 2 {
		for _, id := range []string{"a", "b"} {
			check.OK(t, check.ErrOf(c.Linear(t.Context(), at("i"), "body", normPath, weightsPath, id)))
		}
	}
	check.Equal(t, 2, f.Asked(`"avg"`))
	check.OK(t, check.ErrOf(linear(t, c)))
	// There is no such norm: an answer could only be that to the other question.
	l, err := c.Linear(t.Context(), at("i"), "body", normPath+"\x00"+weightsPath, weightsID, "")
	check.That(t, err != nil, "the norm of another question: %+v", l)
	_, _ = c.Linear(t.Context(), at("i"), "body", normPath, weightsPath+"\x00x", weightsID)
	check.Equal(t, 5, f.Asked("GET /i?"))
}
