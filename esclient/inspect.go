package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/mapping"
)

// An Inspection says what one index has of what exact scores of a field need.
type Inspection struct {
	// Index is the concrete index.
	Index string
	// Closed says that the index is closed; then nothing else is known.
	Closed bool
	// Field is the field's own name, which differs from the one asked for where
	// that is an alias. It is "" where the index does not map it as text.
	Field string
	// Problem says why the index has something else than text to search under
	// the name; "" that it has none or text.
	Problem string
	// Analyzer and SearchAnalyzer are as the mapping has them, "" where it does
	// not name them.
	Analyzer, SearchAnalyzer string
	// Source is the full name of the field that a document has the text under:
	// Field or the one that Field is a multi-field of.
	Source string
	// Candidates are the fields of that text, Field itself first.
	Candidates []Candidate
	// Norm and Weights are the two fields besides it.
	Norm, Weights StoredField
	// Settings are the flat settings of the index, Mappings all of its mappings.
	Settings map[string]jsontext.Value
	Mappings jsontext.Value

	// treatment is what [mapping.Field.Treatment] says.
	treatment string
}

// Alike reports whether two indices that map the field analyze and score it
// alike: searches of both are not expanded otherwise.
func (i *Inspection) Alike(other *Inspection) bool { return i.treatment == other.treatment }

// Linear reports whether the index's settings define a similarity of that name
// that scores linearly.
func (i *Inspection) Linear(similarity string) bool {
	return mapping.Settings(i.Settings).ScoresLinearly(similarity)
}

// A Candidate is a field that has the text of the field inspected.
type Candidate struct {
	// Field is its full name, Similarity the name of its similarity.
	Field, Similarity string
	// Scripted says that it has the scripted similarity.
	Scripted bool
	// K1 is that of a similarity with a definition of its own in the settings, 0
	// where it names none.
	K1 float64
	// Problem says why its scores cannot be used, "" that they can.
	Problem string
	// Retunable says that the similarity is all that is in the way, and has a
	// definition of its own in the settings, which can be changed.
	Retunable bool
}

// Same reports whether two fields that score linearly have the same name and
// score alike.
func (c *Candidate) Same(other *Candidate) bool {
	return c.Field == other.Field && c.Scripted == other.Scripted && c.K1 == other.K1
}

// A StoredField is what the mapping has of a norm or an id: its type, "" for
// none, and why it cannot be used, "" where it can.
type StoredField struct{ Type, Problem string }

// Inspect says what each index of an expression has of what exact scores of a
// field need, by name. Indices that do not map it, or not as text, and closed
// ones are among them. norm and weights are as in [Cached.Linear].
func (c *Client) Inspect(ctx context.Context, index, field, norm, weights string) ([]Inspection, error) {
	indices := Indices{Expression: index}
	if err := errors.Join(indices.check(), checkField(field)); err != nil {
		return nil, err
	}
	var answer map[string]struct {
		Mappings jsontext.Value   `json:"mappings"`
		Settings mapping.Settings `json:"settings"`
	}
	r := request{method: http.MethodGet, path: indices.path("", url.Values{"flat_settings": {"true"}, "expand_wildcards": {"open,closed"}})}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	var all []Inspection
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		i := Inspection{Index: name, Settings: answer[name].Settings, Mappings: answer[name].Mappings}
		if err := i.inspect(answer[name].Settings, field, norm, weights); err != nil {
			return nil, fmt.Errorf("mappings of index %q: %w", name, err)
		}
		all = append(all, i)
	}
	return all, nil
}

// inspect fills in what the mappings and settings say.
func (i *Inspection) inspect(s mapping.Settings, field, norm, weights string) error {
	m := mapping.Index{Settings: s}
	if i.Closed = m.Closed(); i.Closed {
		return nil
	}
	if len(i.Mappings) > 0 {
		if err := decode(i.Mappings, &m.Mappings); err != nil {
			return err
		}
	}
	if err := i.inspectStored(&m, norm, weights); err != nil {
		return err
	}
	fields, err := mapping.Fields(map[string]mapping.Index{i.Index: m}, field)
	if errors.Is(err, ErrNotText) {
		if p, _, findErr := m.Resolve(field); p != nil || findErr != nil { // else an index without the field
			i.Problem = strings.TrimPrefix(err.Error(), fmt.Sprintf("index %q ", i.Index))
		}
		return nil
	}
	if err != nil {
		return err
	}
	f := &fields[0]
	i.Field, i.Source, i.treatment = cmp.Or(f.AliasOf, field), f.Source, f.Treatment()
	own, err := mapping.Find(m.Mappings.Properties, i.Field)
	if err != nil {
		return err
	}
	i.Analyzer, i.SearchAnalyzer = own.Analyzer, own.SearchAnalyzer
	all, err := m.Related(f, field)
	for _, r := range all {
		prefix := "index.similarity." + r.Similarity + "."
		k1, _ := strconv.ParseFloat(s.Text(prefix+"k1"), 64) // 0 where there is none
		i.Candidates = append(i.Candidates, Candidate{
			Field: r.Name, Similarity: r.Similarity, Scripted: r.Scripted, K1: k1, Problem: r.Problem,
			Retunable: r.Retunable && s.Has(prefix),
		})
	}
	return err
}

// inspectStored fills in what there is of the norms.
func (i *Inspection) inspectStored(m *mapping.Index, norm, weights string) error {
	p, err := mapping.Find(m.Mappings.Properties, norm)
	if err != nil {
		return err
	}
	if p != nil {
		i.Norm.Type = p.TypeName()
		if err := p.CheckNorm(); err != nil {
			i.Norm.Problem = err.Error()
		}
	}
	if p, err = mapping.Find(m.Mappings.Properties, weights); p == nil || err != nil {
		return err
	}
	i.Weights.Type = p.TypeName()
	if p.Type != "keyword" || string(p.Index) == "false" || string(p.DocValues) == "false" {
		i.Weights.Problem = fmt.Sprintf("mapped as %s, wanted is a keyword that is indexed and has doc values", p.TypeName())
	}
	return nil
}

// SimilarityScripts reports whether the cluster takes scripts in the settings
// of similarities. It creates nothing for that. It returns an error where the
// cluster does not tell, as hosted ones may.
func (c *Client) SimilarityScripts(ctx context.Context) (bool, error) {
	var answer struct {
		Types     []string `json:"types_allowed"`
		Languages []struct {
			Language string   `json:"language"`
			Contexts []string `json:"contexts"`
		} `json:"language_contexts"`
	}
	if err := c.call(ctx, request{method: http.MethodGet, path: "/_script_language"}, &answer); err != nil {
		return false, err
	}
	if !slices.Contains(answer.Types, "inline") {
		return false, nil
	}
	for _, l := range answer.Languages {
		if l.Language == "painless" && slices.Contains(l.Contexts, "similarity") {
			return true, nil
		}
	}
	return false, nil
}

// NormCounts say how many documents of an index have what exact scores need.
type NormCounts struct {
	// Docs is the number of documents that have the field.
	Docs int64
	// Unfilled is how many of them lack the field that scores linearly, 0 where
	// none was asked for.
	Unfilled int64
	// Weighted is how many of them have the id of the weights asked for, or any
	// where none was, and Bare how many have none at all.
	Weighted, Bare int64
	// Normless is how many of them have an id and no norm: documents without a
	// term.
	Normless int64
	// IDs are the ids of weights that most of them have, with their numbers.
	IDs map[string]int64
}

// CountNorms counts documents of an index by one search. linear is the field
// that scores linearly, "" for none, and id that of the weights, "" for any;
// norm and weights are as in [Cached.Linear].
func (c *Client) CountNorms(ctx context.Context, index, field, linear, norm, weights, id string) (NormCounts, error) {
	var answer struct {
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Aggregations struct {
			Docs struct {
				documents

				Unfilled documents `json:"unfilled"`
				Weighted documents `json:"weighted"`
				Bare     documents `json:"bare"`
				Normless documents `json:"normless"`
				IDs      struct {
					Buckets []struct {
						Key string `json:"key"`
						documents
					} `json:"buckets"`
				} `json:"ids"`
			} `json:"docs"`
		} `json:"aggregations"`
	}
	exists := func(field string) object { return object{"exists": object{"field": field}} }
	without := func(field string, more ...object) object {
		return object{"filter": object{"bool": object{"must_not": exists(field), "filter": more}}}
	}
	const someIDs = 5
	aggregations := object{
		"bare": without(weights), "normless": without(norm, exists(weights)), "weighted": object{"filter": exists(weights)},
		"ids": object{"terms": object{"field": weights, "size": someIDs}},
	}
	if linear != "" {
		aggregations["unfilled"] = without(linear)
	}
	if id != "" {
		aggregations["weighted"] = object{"filter": termQuery(weights, id)}
	}
	r := request{
		method: http.MethodPost, path: indexPath(index, "/_search?filter_path=_shards.failed,aggregations"), timeout: pageTimeout,
		body: object{"size": 0, "track_total_hits": false, "aggs": object{
			"docs": object{"filter": exists(field), "aggs": aggregations},
		}},
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return NormCounts{}, err
	}
	if n := answer.Shards.Failed; n > 0 {
		return NormCounts{}, fmt.Errorf("count the norms of %q: %d shards failed", index, n)
	}
	docs := &answer.Aggregations.Docs
	counts := NormCounts{
		Docs: docs.DocCount, Unfilled: docs.Unfilled.DocCount, Weighted: docs.Weighted.DocCount,
		Bare: docs.Bare.DocCount, Normless: docs.Normless.DocCount, IDs: map[string]int64{},
	}
	for _, b := range docs.IDs.Buckets {
		counts.IDs[b.Key] = b.DocCount
	}
	return counts, nil
}
