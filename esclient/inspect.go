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
)

// An Inspection tells what one index holds of that which exact scores of a
// field need.
type Inspection struct {
	// Index is the concrete index.
	Index string
	// Closed says that the index is closed, then nothing else is told.
	Closed bool
	// Field is the field's own name, which is another than the one asked for
	// where that is an alias. "" says that the index does not map it, and then
	// all that follows up to Dotted is empty.
	Field string
	// Problem says why the index has something else than text to search under
	// the name; "" that it has none or text. Field is then "".
	Problem string
	// Analyzer and SearchAnalyzer are as the mapping has them, "" where it does
	// not name them.
	Analyzer, SearchAnalyzer string
	// Nested is the path of the innermost nested object above the field.
	Nested string
	// Source is the full name of the field that a document has the text under:
	// Field or the one that Field is a multi-field of. Keys are the names that
	// lead to it in the mapping, from object to object.
	Source string
	Keys   []string
	// Property is the mapping of Source without its multi-fields; MultiFields
	// are the names of those.
	Property    jsontext.Value
	MultiFields []string
	// Candidates are the fields of that text, Field itself first.
	Candidates []Candidate
	// Norm and Weights are the two fields beside it.
	Norm, Weights StoredField
	// Dotted says that the mapping holds no objects: their members have names
	// with dots.
	Dotted bool
	// Settings are the flat settings of the index.
	Settings map[string]jsontext.Value
	// Mappings are all of its mappings.
	Mappings jsontext.Value

	// treatment is what [indexField.treatment] says.
	treatment string
}

// Alike reports whether two indices that map the field analyze and score it
// alike: searches of both are left alone otherwise.
func (i *Inspection) Alike(other *Inspection) bool { return i.treatment == other.treatment }

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
	// definition of its own in the settings, that can be changed.
	Retunable bool
}

// Same reports whether two fields that score linearly have the same name and
// score alike.
func (c *Candidate) Same(other *Candidate) bool {
	return c.Field == other.Field && c.Scripted == other.Scripted && c.K1 == other.K1
}

// A StoredField is what the mapping has of a norm or an id.
type StoredField struct {
	// Type is "" where the mapping does not have the field.
	Type string
	// Problem says why it cannot be used, "" that it can.
	Problem string
}

// Inspect tells what the indices of an expression hold of that which exact
// scores of a field need, by their names: those that map it, those that do not
// or not as text, and those that are closed. norm and weights are as in
// [Cached.Linear].
func (c *Client) Inspect(ctx context.Context, index, field, norm, weights string) ([]Inspection, error) {
	indices := Indices{Expression: index}
	if err := indices.check(); err != nil {
		return nil, err
	}
	if err := checkField(field); err != nil {
		return nil, err
	}
	var answer map[string]struct {
		Mappings jsontext.Value `json:"mappings"`
		Settings settings       `json:"settings"`
	}
	r := request{method: http.MethodGet, path: indices.path("", url.Values{"flat_settings": {"true"}, "expand_wildcards": {"open,closed"}})}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	var all []Inspection
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		i, err := inspect(name, answer[name].Mappings, answer[name].Settings, field, norm, weights)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

func inspect(index string, mappings jsontext.Value, s settings, field, norm, weights string) (Inspection, error) {
	i := Inspection{Index: index, Settings: s, Mappings: mappings}
	if s.text("index.verified_before_close") == "true" {
		i.Closed = true
		return i, nil
	}
	var root struct {
		Subobjects jsontext.Value `json:"subobjects"`
	}
	m := indexMapping{Settings: s}
	if len(mappings) > 0 {
		if err := errors.Join(decode(mappings, &root), decode(mappings, &m.Mappings)); err != nil {
			return i, fmt.Errorf("mappings of index %q: %w", index, err)
		}
	}
	i.Dotted = string(root.Subobjects) == "false"
	if err := i.inspectStored(&m, norm, weights); err != nil {
		return i, fmt.Errorf("mapping of index %q: %w", index, err)
	}
	fields, err := findFields(map[string]indexMapping{index: m}, field)
	if errors.Is(err, ErrNotText) {
		if p, _, findErr := m.resolve(field); p == nil && findErr == nil {
			return i, nil // an index without the field
		}
		i.Problem = strings.TrimPrefix(err.Error(), fmt.Sprintf("index %q ", index))
		return i, nil
	}
	if err != nil {
		return i, err
	}
	if err := i.inspectField(&m, &fields[0], field); err != nil {
		return i, fmt.Errorf("mapping of index %q: %w", index, err)
	}
	return i, nil
}

// inspectField fills in what there is of a field.
func (i *Inspection) inspectField(m *indexMapping, f *indexField, field string) error {
	i.Field = cmp.Or(f.field, field)
	i.Nested, i.Source, i.treatment = f.nested, f.source, f.treatment()
	own, err := find(m.Mappings.Properties, i.Field, 0, "")
	if err != nil {
		return err
	}
	i.Analyzer, i.SearchAnalyzer = own.Analyzer, own.SearchAnalyzer
	var raw jsontext.Value
	if i.Keys, raw, err = keysOf(m.Mappings.Properties, i.Source); err != nil {
		return err
	}
	var property map[string]jsontext.Value
	if err := decode(raw, &property); err != nil {
		return err
	}
	var multi map[string]jsontext.Value
	if fields := property["fields"]; fields != nil {
		if err := decode(fields, &multi); err != nil {
			return err
		}
	}
	i.MultiFields = slices.Sorted(maps.Keys(multi))
	delete(property, "fields")
	if i.Property, err = encode(property); err != nil {
		return err
	}
	all, err := m.related(f, field)
	for _, r := range all {
		prefix := "index.similarity." + r.similarity + "."
		c := Candidate{
			Field: r.name, Similarity: r.similarity, Scripted: r.scripted, Problem: r.problem,
			Retunable: r.retunable && m.Settings.has(prefix),
		}
		if k1, err := strconv.ParseFloat(m.Settings.text(prefix+"k1"), 64); err == nil {
			c.K1 = k1
		}
		i.Candidates = append(i.Candidates, c)
	}
	return err
}

// inspectStored fills in what there is of the norms.
func (i *Inspection) inspectStored(m *indexMapping, norm, weights string) error {
	p, err := find(m.Mappings.Properties, norm, 0, "")
	if err != nil {
		return err
	}
	if p != nil {
		i.Norm.Type = p.typeName()
		if err := p.checkNorm(); err != nil {
			i.Norm.Problem = err.Error()
		}
	}
	if p, err = find(m.Mappings.Properties, weights, 0, ""); p == nil || err != nil {
		return err
	}
	i.Weights.Type = p.typeName()
	if p.Type != "keyword" || string(p.Index) == "false" || string(p.DocValues) == "false" {
		i.Weights.Problem = fmt.Sprintf("mapped as %s, wanted is a keyword that is indexed and has doc values", p.typeName())
	}
	return nil
}

// keysOf returns the names that lead to a field which is no multi-field, and
// its property.
func keysOf(properties map[string]jsontext.Value, path string) ([]string, jsontext.Value, error) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '.' {
			continue
		}
		raw, ok := properties[path[:end]]
		if !ok {
			continue
		}
		if end == len(path) {
			return []string{path}, raw, nil
		}
		var p property
		if err := decode(raw, &p); err != nil {
			return nil, nil, fmt.Errorf("field %q: %w", path[:end], err)
		}
		if keys, raw, err := keysOf(p.Properties, path[end+1:]); keys != nil || err != nil {
			return append([]string{path[:end]}, keys...), raw, err
		}
	}
	return nil, nil, nil
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

// NormCounts tell how far the documents of an index have what exact scores
// need.
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
	aggregations := object{"bare": without(weights), "normless": without(norm, exists(weights)), "weighted": object{"filter": exists(weights)}}
	if linear != "" {
		aggregations["unfilled"] = without(linear)
	}
	if id != "" {
		aggregations["weighted"] = object{"filter": termQuery(weights, id)}
	}
	const someIDs = 5
	aggregations["ids"] = object{"terms": object{"field": weights, "size": someIDs}}
	r := request{
		method: http.MethodPost,
		path:   indexPath(index, "/_search?filter_path=_shards.failed,aggregations"),
		body: object{"size": 0, "track_total_hits": false, "aggs": object{
			"docs": object{"filter": exists(field), "aggs": aggregations},
		}},
		timeout: pageTimeout,
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

// Linear reports whether the index's settings define a similarity of that name
// that scores linearly.
func (i *Inspection) Linear(similarity string) bool {
	f := indexField{settings: i.Settings, similarityName: similarity, k1: defaultK1}
	f.readSimilarity()
	_, problem := f.linear()
	return problem == ""
}
