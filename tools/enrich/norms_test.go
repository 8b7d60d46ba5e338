package enrich

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix"
)

// newMatrix returns a matrix of terms with their document frequencies.
func newMatrix(t *testing.T, docs uint64, docFreqs map[string]uint32) *simmatrix.Matrix {
	t.Helper()
	var rows []simmatrix.TermRow
	for term, docFreq := range docFreqs {
		rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: docFreq})
	}
	return check.Got(simmatrix.New(simmatrix.Meta{Source: "test", Docs: docs}, rows))(t)
}

func newWeights(t *testing.T, docs uint64, docFreqs map[string]uint32) *Weights {
	t.Helper()
	return check.Got(NewWeights(newMatrix(t, docs, docFreqs)))(t)
}

// newSoftNorm returns the soft norm by a matrix of some of the fake index's
// words, not symmetric.
func newSoftNorm(t *testing.T, w *Weights, more ...simmatrix.TermRow) *SoftNorm {
	t.Helper()
	rows := append([]simmatrix.TermRow{
		{Term: "common", Neighbors: []simmatrix.Neighbor{{Term: "group1", Similarity: 0.5}, {Term: "twice", Similarity: 0.25}}},
		{Term: "group1", Neighbors: []simmatrix.Neighbor{{Term: "common", Similarity: 0.75}}},
		{Term: "twice"},
	}, more...)
	return NewSoftNorm(w, check.Got(simmatrix.New(simmatrix.Meta{Source: "test", Docs: 10}, rows))(t))
}

func lengthMembers(field, id string, norm float64, stale bool) object {
	return normMembers(esclient.NormObject, esclient.NormWeightsObject, field, id, norm, stale)
}

func TestJSONOfOddNamesIsValid(t *testing.T) {
	for _, field := range []string{"body", `a"b\c`, "été.x", "\u2028"} {
		mapped, err := CheckNorms(&mapping.Inspection{}, field, true)
		check.That(t, json.Valid(mapped) && err == nil, "mapping of %q: %s, %v", field, mapped, err)
		task := NormsTask(nil, newWeights(t, 10, nil), newSoftNorm(t, newWeights(t, 10, nil)), field)
		for _, all := range []bool{false, true} {
			query, err := task.Query(all)
			check.That(t, json.Valid(query) && err == nil, "query of %q: %s, %v", field, query, err)
		}
		for _, norm := range []float64{0, 1.5} {
			p := newPart(lengthMembers(field, "0123", norm, true), false)
			check.That(t, json.Valid(p.JSON), "members of %q: %+v", field, p)
		}
	}
}

func TestMembersOfADocument(t *testing.T) {
	for _, tt := range []struct {
		norm  float64
		stale bool
		want  string
	}{
		{2.5, false, `{"akin_norm":{"a__b":2.5},"akin_norm_weights":{"a__b":"id"}}`},
		{2.5, true, `{"akin_norm":{"a__b":2.5},"akin_norm_weights":{"a__b":"id"}}`},
		{0, false, `{"akin_norm_weights":{"a__b":"id"}}`},
		{0, true, `{"akin_norm":{"a__b":null},"akin_norm_weights":{"a__b":"id"}}`},
	} {
		check.Equal(t, tt.want, string(newPart(lengthMembers("a.b", "id", tt.norm, tt.stale), false).JSON), tt)
	}
}

func TestMappingsThatDoNotStoreNorms(t *testing.T) {
	mapped := func(number, keyword string) string {
		return fmt.Sprintf(`,"akin_norm":{"properties":{"body":%s}},"akin_norm_weights":{"properties":{"body":%s}}`, number, keyword)
	}
	soft := func(number, keyword string) string {
		return mapped(`{"type":"float"}`, `{"type":"keyword"}`) +
			fmt.Sprintf(`,"akin_soft_norm":{"properties":{"body":%s}},"akin_soft_norm_matrix":{"properties":{"body":%s}}`, number, keyword)
	}
	for name, more := range map[string]string{
		"goodForBoth":     soft(`{"type":"float","index":false}`, `{"type":"keyword"}`),
		"good, soft text": soft(`{"type":"float"}`, `{"type":"text"}`),
		"good, soft int":  soft(`{"type":"integer"}`, `{"type":"keyword"}`),
		"good":            mapped(`{"type":"float","index":false}`, `{"type":"keyword"}`),
		"none":            "",
		"text":            mapped(`{"type":"float"}`, `{"type":"text"}`),
		"double":          mapped(`{"type":"double"}`, `{"type":"keyword"}`),
		"noValues":        mapped(`{"type":"float","doc_values":false}`, `{"type":"keyword"}`),
		"unindexed":       mapped(`{"type":"float"}`, `{"type":"keyword","index":false}`),
		"elsewhere":       mapped(`{}`, `{}`),
		"goodAsWell":      mapped(`{"type":"float","doc_values":true}`, `{"type":"keyword","index":true,"ignore_above":256}`),
	} {
		var m mapping.Index
		err := json.Unmarshal([]byte(`{"mappings":{"properties":{"body":{"type":"text"}`+more+`}}}`), &m)
		check.OK(t, err)
		i, err := mapping.Inspect(map[string]mapping.Index{"i": m}, "body")
		check.OK(t, err)
		for soft, stores := range map[bool]bool{false: strings.HasPrefix(name, "good"), true: name == "goodForBoth"} {
			lacking, err := CheckNorms(&i[0], "body", soft)
			check.That(t, (lacking == nil) == stores && err == nil, "%s, soft %t: %s, %v", name, soft, lacking, err)
		}
	}
}

func TestNormIsTheLengthOfTheWeightedVector(t *testing.T) {
	w := newWeights(t, 10, map[string]uint32{"car": 3, "boat": 1, "the": 10, "odd": 0})
	// ln(1 + (10 − df + 0.5)/(df + 0.5)), worked out by hand for df = 3, 1, 10.
	for term, want := range map[string]float64{
		"car": math.Log(11 / 3.5), "boat": math.Log(11 / 1.5), "the": math.Log(11 / 10.5),
		"odd": math.Log(11 / 1.5), "unknown": math.Log(11 / 1.5),
	} {
		got := w.Weight(term)
		check.That(t, math.Abs(got-want) <= 1e-15, "weight of %s is %v, want %v", term, got, want)
	}
	got := w.Norm([]documents.TermFreq{{Term: "the", Freq: 4}, {Term: "car", Freq: 2}, {Term: "unknown", Freq: 1}})
	want := math.Sqrt(math.Pow(2*math.Log(11/3.5), 2) + math.Pow(4*math.Log(11/10.5), 2) + math.Pow(math.Log(11/1.5), 2))
	check.That(t, math.Abs(got-want) <= 1e-14, "norm %v, want %v", got, want)
	check.Equal(t, 0, w.Norm(nil))
}

// w is ln(11/3.5), ln(11/1.5) and ln(11/10.5) for documents in 3, 1 and 10 of
// ten; s is not symmetric, and rounded to 16 bits. boat has no row, and plane is
// in no document.
func TestSoftNormIsTheRootOfTheQuadraticForm(t *testing.T) {
	w := newWeights(t, 10, map[string]uint32{"car": 3, "boat": 1, "the": 10})
	s := check.Got(simmatrix.New(simmatrix.Meta{Source: "test", Docs: 10}, []simmatrix.TermRow{
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "the", Similarity: 0.5}, {Term: "plane", Similarity: 0.9}}},
		{Term: "the", Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.25}}},
		{Term: "plane"},
	}))(t)
	soft := NewSoftNorm(w, s)
	car, the, boat := 2*math.Log(11/3.5), 4*math.Log(11/10.5), math.Log(11/1.5)
	want := math.Sqrt(car*car + the*the + boat*boat + 0.75*car*the)
	terms := []documents.TermFreq{{Term: "the", Freq: 4}, {Term: "car", Freq: 2}, {Term: "boat", Freq: 1}}
	got := soft.Of(terms)
	check.That(t, math.Abs(got-want) <= 1e-4, "soft norm %v, want %v", got, want)
	check.That(t, got > w.Norm(terms), "soft norm %v, norm %v", got, w.Norm(terms))
	one := []documents.TermFreq{{Term: "boat", Freq: 1}}
	check.Equal(t, w.Norm(one), soft.Of(one), "without similar words")
	check.Equal(t, 0, soft.Of(nil))
	check.Equal(t, w.ID()+"."+s.Checksum()[:16], soft.ID())
}

func TestWeightsAreNamedByTheirMatrix(t *testing.T) {
	m := newMatrix(t, 10, map[string]uint32{"car": 3})
	w, err := NewWeights(m)
	check.That(t, err == nil && w.ID() == m.Checksum()[:16] && w.docs == 10, "weights %s of %d documents, %v; checksum %s", w.ID(), w.docs, err, m.Checksum())
	check.Equal(t, "abc", esclient.NormWeightsID("abc"))
	check.Error(t, ErrNoDocs, check.ErrOf(NewWeights(newMatrix(t, 0, map[string]uint32{"car": 3}))))
}

func TestNormIsWrittenAsAFloat(t *testing.T) {
	for _, norm := range []float64{1, 0.1, 1.0 / 3, 123456789.125, 1e-7, 3e10} {
		var back struct {
			Norm map[string]float32 `json:"akin_norm"`
		}
		b := newPart(lengthMembers("f", "id", norm, false), false).JSON
		err := json.Unmarshal(b, &back)
		check.That(t, err == nil && back.Norm["f"] == float32(norm), "%v is %s and comes back as %v, %v", norm, b, back, err)
		check.That(t, !strings.Contains(string(b), "000000") || norm == 123456789.125 || norm == 3e10, "%v is written as %s", norm, b)
	}
}
