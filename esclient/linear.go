package esclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

// Errors of [Cached.Linear] that mean "this field has no exact scores".
var (
	// ErrNoLinear says that no field scores linearly in all indices.
	ErrNoLinear = errors.New("no field with a linear similarity")
	// ErrNoNorms says that the documents have no norms by the weights asked for.
	ErrNoNorms = errors.New("no norms of the documents")
)

// LinearScript is the source of a scripted similarity that scores a term with
// its boost times its frequency.
const LinearScript = mapping.LinearScript

// A Linear tells where the exact scores of a field come from.
type Linear struct {
	// Field is the field whose score for a term is linear in its frequency tf:
	// the one asked for or one that has the same text and analyzers.
	Field string
	// Scripted says that the score is boost·tf. Else it is boost·Factor·idf·tf.
	Scripted bool
	// Factor is positive; 1 where Scripted.
	Factor float64
	// Norm is the name of the doc value that holds the norm of a document.
	Norm string
	// Missing stands for the norm where a document has none by the weights asked
	// for: the mean of those that have one. It is positive.
	Missing float64
}

// A normSource is what [Cached.Linear] is asked for besides the field: the
// names of two fields, and the id of the weights.
type normSource struct{ norm, weights, id string }

// Linear tells where the exact scores of a field come from: the field itself if
// its score is linear in the term frequency, else a multi-field of the same
// text and analyzers, a scripted one before one of BM25. norm is the full name
// of the doc value with the documents' norms, and weights that of the keyword
// with the id of the weights that they were computed with.
//
// The error wraps [ErrNoLinear] or [ErrNoNorms] where the indices do not hold
// what is needed, [ErrMixed] where they differ, and [ErrNotText] or [ErrRemote]
// where the field is none to ask for. What is not remembered takes three round
// trips, one more for an alias of a field.
func (c *Cached) Linear(ctx context.Context, indices Indices, field, norm, weights, id string) (Linear, error) {
	k := c.key(indices, field)
	k.text = strings.Join([]string{norm, weights, id}, "\x00")
	l, warm, err := c.statistics.linears.Get(k)
	if !warm {
		own := k.clone()
		from := normSource{strings.Clone(norm), strings.Clone(weights), strings.Clone(id)}
		l, err = c.statistics.linears.Load(ctx, own, func(ctx context.Context) (Linear, error) {
			return c.linear(ctx, own.Indices, own.field, from)
		})
	}
	c.tally(&c.statistics.Counters, warm, err)
	return l, err
}

// linear makes the calls for Linear.
func (c *Cached) linear(ctx context.Context, indices Indices, field string, from normSource) (Linear, error) {
	name, how, err := c.client.linearField(ctx, indices, field, from)
	if err != nil {
		return Linear{}, fmt.Errorf("field %q of %q: %w", field, indices.Expression, err)
	}
	l := Linear{Field: name, Scripted: how.Scripted, Factor: 1, Norm: from.norm}
	var group errgroup.Group // which cancels no call, for the reason in Cached.guess
	group.Go(c.client.guarded(func() (err error) {
		l.Missing, err = c.client.meanNorm(ctx, indices, field, from)
		return err
	}))
	if !how.Scripted {
		group.Go(c.client.guarded(func() (err error) {
			l.Factor, err = c.linearFactor(ctx, indices, name, how)
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return Linear{}, fmt.Errorf("field %q of %q: %w", field, indices.Expression, err)
	}
	return l, nil
}

// linearField asks for the mappings and returns the field that scores linearly.
func (c *Client) linearField(ctx context.Context, indices Indices, field string, from normSource) (string, mapping.Linearity, error) {
	if err := indices.check(); err != nil {
		return "", mapping.Linearity{}, err
	}
	if err := checkField(field); err != nil {
		return "", mapping.Linearity{}, err
	}
	answer, err := c.mappings(ctx, indices, field, from.norm, from.weights)
	if err != nil {
		return "", mapping.Linearity{}, err
	}
	fields, err := mapping.Fields(answer, field)
	if err != nil {
		return "", mapping.Linearity{}, err
	}
	if _, err := mapping.Merge(fields); err != nil {
		return "", mapping.Linearity{}, err
	}
	name, how, err := chooseLinear(answer, fields, field)
	if err != nil {
		return "", mapping.Linearity{}, err
	}
	for i := range fields {
		m := answer[fields[i].Index]
		if err := checkNorms(&m, &fields[i], from.norm); err != nil {
			return "", mapping.Linearity{}, fmt.Errorf("index %q: %w", fields[i].Index, err)
		}
	}
	return name, how, nil
}

// checkNorms returns [ErrNoNorms] if the norms of a field cannot be read. Those
// of a nested field would have to be in the nested document.
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
	if err := p.CheckNorm(); err != nil {
		return fmt.Errorf("%q is %w: %w", norm, err, ErrNoNorms)
	}
	return nil
}

// chooseLinear returns the first of the fields that score linearly in all
// indices. It returns [ErrMixed] where there are such, of other similarities in
// other indices.
func chooseLinear(answer map[string]mapping.Index, fields []mapping.Field, field string) (string, mapping.Linearity, error) {
	var common map[string]mapping.Linearity
	mixed := false
	for i := range fields {
		f := &fields[i]
		m := answer[f.Index]
		all, err := m.Related(f, field)
		if err != nil {
			return "", mapping.Linearity{}, err
		}
		found := map[string]mapping.Linearity{}
		for _, r := range all {
			if r.Problem == "" {
				found[r.Name] = r.Linearity
			}
		}
		if common == nil {
			common = found
			continue
		}
		maps.DeleteFunc(common, func(name string, l mapping.Linearity) bool {
			other, ok := found[name]
			mixed = mixed || ok && other != l
			return !ok || other != l
		})
	}
	names := slices.SortedFunc(maps.Keys(common), func(a, b string) int {
		return compareLinear(a, b, common, field)
	})
	switch {
	case len(names) > 0:
		return names[0], common[names[0]], nil
	case mixed:
		return "", mapping.Linearity{}, fmt.Errorf("its linear similarity: %w", ErrMixed)
	default:
		return "", mapping.Linearity{}, ErrNoLinear
	}
}

// compareLinear puts the field itself first, then scripted ones.
func compareLinear(a, b string, how map[string]mapping.Linearity, field string) int {
	rank := func(name string) int {
		switch {
		case name == field:
			return 0
		case how[name].Scripted:
			return 1
		default:
			return 2
		}
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// maxNormless is the largest share of the documents with the field that may
// lack the norm by the weights asked for. A few that were written past akin do
// not turn the exact scores off and on; with more, such as in the middle of a
// backfill, the ranking would hang on which of them have it.
const maxNormless = 0.1

// meanNorm returns the mean norm of the documents that have one by the weights
// asked for. It returns [ErrNoNorms] where none has, or more than [maxNormless]
// lack it.
func (c *Client) meanNorm(ctx context.Context, indices Indices, field string, from normSource) (float64, error) {
	var answer struct {
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Aggregations struct {
			Others documents `json:"others"`
			Normed struct {
				documents

				Norm struct {
					Value *float64 `json:"value"`
				} `json:"norm"`
			} `json:"normed"`
		} `json:"aggregations"`
	}
	normed := termQuery(from.weights, from.id)
	r := request{
		method: http.MethodPost, limit: smallAnswer,
		path: indices.path("/_search", url.Values{"filter_path": {"_shards.failed,aggregations"}}),
		body: object{
			"size": 0, "track_total_hits": false,
			"query": object{"bool": object{"filter": object{"exists": object{"field": field}}}},
			"aggs": object{
				"others": object{"filter": object{"bool": object{"must_not": normed}}},
				"normed": object{"filter": normed, "aggs": object{"norm": object{"avg": object{"field": from.norm}}}},
			},
		},
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return 0, fmt.Errorf("learn the mean norm: %w", err)
	}
	if n := answer.Shards.Failed; n > 0 {
		return 0, fmt.Errorf("learn the mean norm: %d shards failed", n)
	}
	others, some := answer.Aggregations.Others.DocCount, answer.Aggregations.Normed.DocCount
	mean := answer.Aggregations.Normed.Norm.Value
	switch {
	case float64(others) > maxNormless*float64(others+some):
		return 0, fmt.Errorf("%d of %d documents do not have %q by the weights %q: %w", others, others+some, from.norm, from.id, ErrNoNorms)
	case mean == nil:
		return 0, fmt.Errorf("no document has %q by the weights %q: %w", from.norm, from.id, ErrNoNorms)
	case !(*mean > 0) || math.IsInf(*mean, 0):
		return 0, fmt.Errorf("the mean of %q is %g: %w", from.norm, *mean, ErrNoNorms)
	}
	return *mean, nil
}

// linearFactor returns what BM25 multiplies idf·tf by as long as tf is small
// beside k1: its scale over k1. It learns the scale from the explanation of a
// score, or else from what the cluster runs.
func (c *Cached) linearFactor(ctx context.Context, indices Indices, field string, how mapping.Linearity) (float64, error) {
	if scale, err := c.client.probeLinear(ctx, indices, field); err == nil && scale > 0 {
		return scale / how.K1, nil
	}
	info, err := c.statistics.infos.Load(ctx, key{}, c.client.Info)
	if err != nil {
		return 0, err
	}
	s := mapping.Scoring{K1: how.K1, Legacy: how.Legacy}
	scale := scaleOf(s, info)
	if scale <= 0 {
		return 0, fmt.Errorf("the scale of BM25 in %s %q is not known", info.Distribution, info.Version)
	}
	return scale / how.K1, nil
}

// probeLinear learns the scale of a field's BM25 as probeScale does, without
// knowing a term: it looks for a document that is like one with the field. It
// returns 0 if that tells nothing.
func (c *Client) probeLinear(ctx context.Context, indices Indices, field string) (float64, error) {
	var answer struct {
		Hits struct {
			Hits []struct {
				answers.Hit

				Explanation answers.Explanation `json:"_explanation"`
			} `json:"hits"`
		} `json:"hits"`
	}
	body := object{
		"size": 1, "terminate_after": 1, "track_total_hits": false, "_source": false,
		"query": object{"bool": object{"filter": object{"exists": object{"field": field}}}},
	}
	r := request{
		method: http.MethodPost, body: body,
		path: indices.path("/_search", url.Values{"filter_path": {
			"hits.hits._index,hits.hits._id,hits.hits._routing,hits.hits._explanation",
		}}),
	}
	if err := c.call(ctx, r, &answer); err != nil || len(answer.Hits.Hits) == 0 {
		return 0, err
	}
	like := object{"_index": answer.Hits.Hits[0].Index, "_id": answer.Hits.Hits[0].ID}
	if routing := answer.Hits.Hits[0].Routing; routing != "" {
		like["routing"] = routing
	}
	const terms = 8 // few, for a short explanation
	body["explain"] = true
	body["query"] = object{"more_like_this": object{
		"fields": []string{field}, "like": like, "include": true,
		"min_term_freq": 1, "min_doc_freq": 1, "max_query_terms": terms, "minimum_should_match": "1",
	}}
	answer.Hits.Hits = nil
	if err := c.call(ctx, r, &answer); err != nil {
		return 0, err
	}
	for i := range answer.Hits.Hits {
		if scale, ok := answer.Hits.Hits[i].Explanation.Scale(); ok {
			return scale, nil
		}
	}
	return 0, nil
}
