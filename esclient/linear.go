package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/recovery"
)

// Errors of [Cached.Linear]: no field scores linearly in all indices, or
// documents lack norms for the weights.
var (
	ErrNoLinear = errors.New("no field with a linear similarity")
	ErrNoNorms  = errors.New("no norms of the documents")
)

// A Linear says how to get exact scores of a field.
type Linear struct {
	// Field is the field whose score for a term is linear in its frequency tf: the
	// one asked for, or one with the same text and analyzers.
	Field string
	// Scripted says that the score is boost·tf; else it is boost·Factor·idf·tf.
	Scripted bool
	Factor   float64 // positive; 1 if Scripted
	// Norm is the name of the doc value with a document's norm.
	Norm string
	// Missing replaces the norm of documents without one for these weights: it is
	// the mean of those that exist. It is positive.
	Missing float64
}

// Objects in a document with its norms and the ids of what they were computed
// with; one member per field.
const (
	// NormObject has the norms: floats with doc values.
	NormObject = "akin_norm"
	// NormWeightsObject has the ids of the weights: keywords.
	NormWeightsObject = "akin_norm_weights"
	// SoftNormObject has the soft norms: floats with doc values.
	SoftNormObject = "akin_soft_norm"
	// SoftNormMatrixObject has the ids of the weights and the matrix: keywords.
	SoftNormMatrixObject = "akin_soft_norm_matrix"
)

// NormName returns the name of a field in the two objects: its full name with
// "__" for ".". An index can have norms for only one of a.b and a__b.
func NormName(field string) string { return strings.ReplaceAll(field, ".", "__") }

// NormPath returns the full name of the doc value with ‖Wy‖ of a field.
func NormPath(field string) string { return NormObject + "." + NormName(field) }

// NormWeightsPath returns the full name of the keyword with the id of a field's
// weights. A document with it but without a norm has no terms there.
func NormWeightsPath(field string) string { return NormWeightsObject + "." + NormName(field) }

// NormWeightsID returns the id of weights: the first 16 hexadecimal digits of
// their matrix's checksum, or all of a shorter one.
func NormWeightsID(checksum string) string { return checksum[:min(len(checksum), 16)] }

// SoftNormPath is the path in a document of √((Wy)ᵀS(Wy)), its soft norm.
func SoftNormPath(field string) string { return SoftNormObject + "." + NormName(field) }

// SoftNormMatrixPath is the path in a document of the [SoftNormID] of the
// weights and the matrix of its soft norm.
func SoftNormMatrixPath(field string) string { return SoftNormMatrixObject + "." + NormName(field) }

// SoftNormID returns the id of weights, see [NormWeightsID], with that of the
// matrix S with the checksum.
func SoftNormID(weights, checksum string) string { return weights + "." + NormWeightsID(checksum) }

// linear makes the calls for [Cached.Linear]. norm and weights are field names,
// id is the weights' id; info says what the cluster runs.
func (q question) linear(ctx context.Context, norm, weights, id string, info func(context.Context) (Info, error)) (Linear, error) {
	name, how, err := q.chooseField(ctx, norm, weights)
	if err != nil {
		return Linear{}, q.wrap(err)
	}
	l := Linear{Field: name, Scripted: how.Scripted, Factor: 1, Norm: norm}
	err = recovery.InParallel(2, 2, func(i int) (err error) {
		switch {
		case i == 0:
			l.Missing, err = q.meanNorm(ctx, norm, weights, id)
		case !how.Scripted:
			l.Factor, err = question{q.client, q.indices, name}.linearFactor(ctx, how, info)
		}
		return err
	})
	if err != nil {
		return Linear{}, q.wrap(err)
	}
	return l, nil
}

// chooseField asks for mappings and returns the field that scores linearly.
func (q question) chooseField(ctx context.Context, norm, weights string) (name string, how mapping.Linearity, err error) {
	answer, err := q.mappings(ctx, norm, weights)
	if err != nil {
		return "", how, err
	}
	fields, err := mapping.Fields(answer, q.field)
	if err != nil {
		return "", how, err
	}
	if _, err := mapping.Merge(fields); err != nil {
		return "", how, err
	}
	if name, how, err = chooseLinear(answer, fields, q.field); err != nil {
		return "", how, err
	}
	for i := range fields {
		m := answer[fields[i].Index]
		if err := checkNorms(&m, &fields[i], norm); err != nil {
			return "", how, fmt.Errorf("index %q: %w", fields[i].Index, err)
		}
	}
	return name, how, nil
}

// checkNorms returns [ErrNoNorms] if the norms of a field cannot be read. For a
// nested field they would have to be in the nested document.
func checkNorms(m *mapping.Index, f *mapping.Field, norm string) error {
	if f.Nested != "" {
		return fmt.Errorf("the field is in the nested object %q: %w", f.Nested, ErrNoNorms)
	}
	p, err := mapping.Find(m.Mappings.Properties, norm)
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("%q is not mapped: %w", norm, ErrNoNorms)
	}
	if p.Type != "float" && p.Type != "double" || string(p.DocValues) == "false" || p.Nested != "" {
		return fmt.Errorf("%q is mapped as %s, wanted is a float with doc values: %w", norm, p.TypeName(), ErrNoNorms)
	}
	return nil
}

// chooseLinear returns the first field that scores linearly in all indices: the
// field itself, then scripted ones. It returns [mapping.ErrMixed] if there are
// some but with different similarities.
func chooseLinear(answer map[string]mapping.Index, fields []mapping.Field, field string) (string, mapping.Linearity, error) {
	var common map[string]mapping.Linearity
	mixed := false
	for i := range fields {
		m := answer[fields[i].Index]
		found, err := m.LinearFields(&fields[i], field)
		if err != nil {
			return "", mapping.Linearity{}, err
		}
		if i == 0 {
			common = found
			continue
		}
		maps.DeleteFunc(common, func(name string, l mapping.Linearity) bool {
			other, ok := found[name]
			mixed = mixed || ok && other != l
			return !ok || other != l
		})
	}
	rank := func(name string) int {
		switch {
		case name == field:
			return 0
		case common[name].Scripted:
			return 1
		default:
			return 2
		}
	}
	names := slices.SortedFunc(maps.Keys(common), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
	switch {
	case len(names) > 0:
		return names[0], common[names[0]], nil
	case mixed:
		return "", mapping.Linearity{}, fmt.Errorf("its linear similarity: %w", mapping.ErrMixed)
	default:
		return "", mapping.Linearity{}, ErrNoLinear
	}
}

// maxNormless is the largest share of documents with the field that may lack
// the norm for these weights: a few written since do not turn exact scores off.
// With more, as during a backfill, ranking would depend on which of them have
// it.
const maxNormless = 0.1

// meanNorm returns the mean norm of the documents that have one for these
// weights, or [ErrNoNorms] if none has or more than [maxNormless] lack it.
func (q question) meanNorm(ctx context.Context, norm, weights, id string) (float64, error) {
	type aggregations struct {
		Others documents `json:"others"`
		Normed struct {
			documents

			Norm struct {
				Value *float64 `json:"value"`
			} `json:"norm"`
		} `json:"normed"`
	}
	normed := TermQuery(weights, id)
	answer, err := search[none, aggregations](ctx, q.client, q.indices, "_shards.failed,aggregations", Object{
		"size":  0,
		"query": Object{"bool": Object{"filter": ExistsQuery(q.field)}},
		"aggs": Object{
			"others": Object{"filter": Object{"bool": Object{"must_not": normed}}},
			"normed": Object{"filter": normed, "aggs": Object{"norm": Object{"avg": Object{"field": norm}}}},
		},
	})
	if err != nil {
		return 0, fmt.Errorf("learn the mean norm: %w", err)
	}
	others, some := answer.Aggregations.Others.DocCount, answer.Aggregations.Normed.DocCount
	mean := answer.Aggregations.Normed.Norm.Value
	switch {
	case float64(others) > maxNormless*float64(others+some):
		return 0, fmt.Errorf("%d of %d documents do not have %q by the weights %q: %w", others, others+some, norm, id, ErrNoNorms)
	case mean == nil:
		return 0, fmt.Errorf("no document has %q by the weights %q: %w", norm, id, ErrNoNorms)
	case !(*mean > 0) || math.IsInf(*mean, 0):
		return 0, fmt.Errorf("the mean of %q is %g: %w", norm, *mean, ErrNoNorms)
	}
	return *mean, nil
}

// linearFactor returns the factor of idf·tf in BM25 while tf is small against
// k1: its scale over k1. It learns the scale from the explanation of a score,
// or else from the engine's version.
func (q question) linearFactor(ctx context.Context, how mapping.Linearity, info func(context.Context) (Info, error)) (float64, error) {
	if scale, err := q.probeLinear(ctx); err == nil && scale > 0 {
		return scale / how.K1, nil
	}
	runs, err := info(ctx)
	if err != nil {
		return 0, err
	}
	scale := scaleOf(mapping.FieldScoring{K1: how.K1, Legacy: how.Legacy}, runs)
	if scale <= 0 {
		return 0, fmt.Errorf("the scale of BM25 in %s is not known", runs)
	}
	return scale / how.K1, nil
}

// probeLinear learns the scale of a field's BM25 as probeScale does, but
// without knowing a term: it searches for documents like one with the field.
func (q question) probeLinear(ctx context.Context) (float64, error) {
	some, err := search[map[string]string, none](ctx, q.client, q.indices, "hits.hits._index,hits.hits._id,hits.hits._routing", Object{
		"size": 1, "terminate_after": 1, "query": Object{"bool": Object{"filter": ExistsQuery(q.field)}},
	})
	if err != nil || len(some.Hits.Hits) == 0 {
		return 0, err
	}
	like := Object{"_index": some.Hits.Hits[0]["_index"], "_id": some.Hits.Hits[0]["_id"]}
	if routing := some.Hits.Hits[0]["_routing"]; routing != "" {
		like["routing"] = routing
	}
	const terms = 8 // few, for a short explanation
	answer, err := search[explained, none](ctx, q.client, q.indices, "hits.hits._explanation", Object{
		"size": 1, "terminate_after": 1, "explain": true,
		"query": Object{"more_like_this": Object{
			"fields": []string{q.field}, "like": like, "include": true,
			"min_term_freq": 1, "min_doc_freq": 1, "max_query_terms": terms, "minimum_should_match": "1",
		}},
	})
	return firstScale(answer.Hits.Hits), err
}

// ErrNoVectors says that too few documents have vectors of a model.
var ErrNoVectors = errors.New("no vectors of the documents")

// stamped makes the call for [Cached.Vectors].
func (q question) stamped(ctx context.Context, stamp, id string) (mixed bool, err error) {
	type aggregations struct {
		Stamped documents `json:"stamped"`
		Others  documents `json:"others"`
		Foreign documents `json:"foreign"`
	}
	stamped := TermQuery(stamp, id)
	answer, err := search[none, aggregations](ctx, q.client, q.indices, "_shards.failed,aggregations", Object{
		"size":  0,
		"query": Object{"bool": Object{"filter": ExistsQuery(q.field)}},
		"aggs": Object{
			"stamped": Object{"filter": stamped},
			"others":  Object{"filter": Object{"bool": Object{"must_not": stamped}}},
			"foreign": Object{"filter": Object{"bool": Object{"must_not": stamped, "filter": ExistsQuery(stamp)}}},
		},
	})
	if err != nil {
		return false, q.wrap(fmt.Errorf("count the documents with vectors: %w", err))
	}
	some, others := answer.Aggregations.Stamped.DocCount, answer.Aggregations.Others.DocCount
	if some == 0 || float64(others) > maxNormless*float64(others+some) {
		return false, q.wrap(fmt.Errorf("%d of %d documents have vectors by the model %s: %w", some, some+others, id, ErrNoVectors))
	}
	return answer.Aggregations.Foreign.DocCount > 0, nil
}
