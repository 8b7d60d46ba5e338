package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/norms"
	"github.com/akin-search/akin/segments"
)

// The verdicts. An index that has one in capitals cannot be ranked by.
const ok, missing, wrong, note = "ok", "MISSING", "WRONG", "note"

// A check is a row of the table: where it applies to an index it gives a
// verdict on something and says why.
type check struct {
	applies bool

	Verdict string `json:"verdict"`
	About   string `json:"about"`
	Says    string `json:"says"`
}

// mappingChecks are those of the mapping and the settings.
func (a *adviser) mappingChecks(i *index) []check {
	l, mapped, linear := &i.linear, i.Field != "", i.linear.Field != ""
	bm25 := linear && !l.Scripted
	all := []check{
		{i.Closed, wrong, "index", "it is closed; open it, and look again"},
		{i.Problem != "", wrong, "field " + a.Field, "the index " + i.Problem + "; searches that go there, too, are not expanded"},
		{mapped, ok, "field " + i.Field, "text, " + i.analyzers()},
		{i.length >= longLength, note, "length", fmt.Sprintf("%.0f terms on average: a passage of a text so long is found better by its segments, see docs/segments.md", i.length)},
		{mapped && a.alias != "", note, "field " + a.alias, "an alias of " + i.Field + ": searches by that name are ranked in mode bm25, whatever there is"},
		{i.uncountable != nil, wrong, "documents", fmt.Sprint(i.uncountable)},
		{linear && l.Scripted, ok, "linear field " + l.Field, "similarity " + l.Similarity + ", scripted: exact"},
		{bm25, ok, "linear field " + l.Field, fmt.Sprintf("similarity %s, BM25 with k1 %g and b 0", l.Similarity, l.K1)},
		{bm25 && l.K1 != bestK1, note, "k1", fmt.Sprintf("%g; the error is smallest at %d: a smaller k1 bends the line, a larger one loses digits", l.K1, bestK1)},
		{mapped && !linear, missing, "linear field", "no field of this text has a score that is linear in the term frequency"},
	}
	for _, c := range i.Siblings {
		meant := c.Retunable && (c.Similarity == linearSimilarity || c.K1 >= intendedK1)
		all = append(all,
			check{!linear && meant, wrong, "  " + c.Field, c.Problem},
			check{!linear && !meant, note, "  " + c.Field, c.Problem})
	}
	stored := func(path string, s mapping.StoredField) {
		all = append(all,
			check{mapped && s.Type == "", missing, path, "not mapped; put the mapping before norms are stored, for the engine would make up another"},
			check{mapped && s.Problem != "", wrong, path, s.Problem + "; this cannot be changed in the index"},
			check{mapped && s.Type != "" && s.Problem == "", ok, path, s.Type})
	}
	stored(norms.NormPath(a.Field), i.Norm)
	stored(norms.WeightsPath(a.Field), i.Weights)
	return all
}

// documentChecks are those of the documents, and of what several indices have
// in common.
func (a *adviser) documentChecks(i *index) []check {
	const both = "; searches of both are not ranked in mode hard, those of one alone can be"
	n, mapped, counted := &i.counts, i.Field != "", i.counts.Docs > 0
	bare, others, mixed := counted && n.Bare > 0, counted && n.Bare == 0 && n.Weighted < n.Docs, len(n.IDs) > 1
	return []check{
		{i.filling && n.Unfilled > 0, missing, "text in " + i.target, fmt.Sprintf("%d of %d documents have the field and not this one", n.Unfilled, n.Docs)},
		{i.filling && n.Unfilled == 0, ok, "text in " + i.target, fmt.Sprintf("all %d documents with the field", n.Docs)},
		{mapped && !i.storable(), missing, "norms", "no document has one"},
		{mapped && i.storable() && !counted, missing, "norms", "no document has the field"},
		{bare && len(n.IDs) == 0, missing, "norms", fmt.Sprintf("%d of %d documents have none", n.Bare, n.Docs)},
		{bare && len(n.IDs) > 0, missing, "norms", fmt.Sprintf("%d of %d documents have none; the others by the weights %s", n.Bare, n.Docs, i.inUse())},
		{others, wrong, "norms", fmt.Sprintf("%d of %d documents have one by other weights than %s: by %s", n.Docs-n.Weighted, n.Docs, a.WeightsID, i.inUse())},
		{counted && !bare && !others && mixed, wrong, "norms", "not all are by the same weights: " + i.inUse()},
		{counted && !bare && !others && !mixed, ok, "norms", fmt.Sprintf("all %d documents, by the weights %s", n.Docs, i.inUse())},
		{counted && n.Normless == n.Docs, missing, "norms", "no document has a term in the field"},
		{0 < n.Normless && n.Normless < n.Docs, note, "norms", fmt.Sprintf("%d documents have no term in the field, so that they have an id and no norm", n.Normless)},
		{i.unlike != "", wrong, "all indices", "the field is analyzed or scored otherwise than in " + i.unlike + both},
		{i.otherLinear != "", wrong, "all indices", "what scores linearly is another field or similarity than in " + i.otherLinear + ", make them the same" + both},
	}
}

// bestK1 has the smallest error, and intendedK1 is one that nobody has who
// wants anything but a straight line.
const bestK1, intendedK1 = 10_000, 1000

// longLength is the average number of terms from which on texts are long: most
// are more than one window of "akin segments backfill", about a page.
const longLength = 300

// An index is what was found of one.
type index struct {
	mapping.Inspection

	uncountable error           // why no norms can be computed of the documents, nil where they can
	linear      mapping.Sibling // the field whose score is linear, the zero value for none
	target      string          // that field, or the one that is going to be it
	there       bool            // the mapping has the target
	filling     bool            // documents may lack the target although they have the text: it was added later
	counts      documents.NormCounts
	skipped     int64   // documents that lack the target and that a backfill leaves out: they have norms
	unlike      string  // the first other index that analyzes or scores the field otherwise, "" for none
	length      float64 // of the documents in terms, on average; 0 where that is not known
	lacking     []byte  // what the mapping lacks for segments, nil for nothing
	otherLinear string  // the first other index with another linear field, "" for none
}

// sameLinear reports whether the linear fields of two indices have the same
// name and score alike.
func (i *index) sameLinear(other *index) bool {
	return i.linear.Field == other.linear.Field && i.linear.Linearity == other.linear.Linearity
}

// look finds out what the checks are about.
func (a *adviser) look(ctx context.Context, inspection mapping.Inspection) (*index, error) {
	i := &index{Inspection: inspection}
	if i.Field == "" {
		return i, nil
	}
	if _, i.uncountable = a.docs.Countable(ctx, i.Index, i.Field); i.uncountable != nil && !errors.Is(i.uncountable, documents.ErrUncountable) {
		return nil, i.uncountable
	}
	if a.measure(ctx, i); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	i.chooseTarget()
	if !i.storable() {
		return i, nil
	}
	// What was written a moment ago is to be counted, if the user may ask for that.
	if err := a.docs.Refresh(ctx, i.Index); ctx.Err() != nil {
		return nil, err
	}
	var linear string
	if i.filling = i.there && i.target != i.Source; i.filling {
		linear = i.target
	}
	var err error
	norm, weights := norms.NormPath(a.Field), norms.WeightsPath(a.Field)
	if i.counts, err = a.docs.CountNorms(ctx, i.Index, i.Field, linear, norm, weights, a.WeightsID); err != nil {
		return nil, err
	}
	switch {
	case !i.there:
		i.skipped = i.counts.Weighted
	case i.counts.Unfilled > 0 && i.counts.Weighted > 0:
		by := exists(weights)
		if a.WeightsID != "" {
			by = object{"term": object{weights: object{"value": a.WeightsID}}}
		}
		query := object{"bool": object{"filter": []object{exists(i.Field), by}, "must_not": exists(i.target)}}
		i.skipped, err = a.docs.Count(ctx, i.Index, encode(query))
	}
	return i, err
}

// chooseTarget finds the field whose score is linear, as a search does: the
// field itself, else a scripted one, else one of BM25. Where there is none, it
// names the one that is going to be it: one with a similarity of ours, else a
// new one.
func (i *index) chooseTarget() {
	for _, c := range i.Siblings {
		if c.Problem == "" && (i.linear.Field == "" || i.linear.Field != i.Field && c.Scripted && !i.linear.Scripted) {
			i.linear, i.target = c, c.Field
		}
	}
	for _, c := range i.Siblings {
		if c.Retunable && c.Similarity == linearSimilarity {
			i.target = cmp.Or(i.target, c.Field)
		}
	}
	if i.there = i.target != ""; i.there {
		return
	}
	_, property := i.property()
	others, name := member(property, "fields"), i.multiName()
	for n := 2; others[name] != nil; n++ {
		name = i.multiName() + "_" + strconv.Itoa(n)
	}
	i.target = i.Source + "." + name
}

// storable reports whether documents may have norms: the ids of the weights are
// what they are counted by.
func (i *index) storable() bool {
	return i.Norm.Type != "" && i.Weights.Type != "" && i.Weights.Problem == ""
}

func (i *index) analyzers() string {
	text := "the default analyzer"
	if i.Analyzer != "" {
		text = "analyzer " + i.Analyzer
	}
	if i.SearchAnalyzer != "" {
		text += ", search analyzer " + i.SearchAnalyzer
	}
	return text
}

// inUse returns the ids of the weights that norms are by, with their numbers.
func (i *index) inUse() string {
	ids := make([]string, 0, len(i.counts.IDs))
	for _, id := range slices.Sorted(maps.Keys(i.counts.IDs)) {
		ids = append(ids, fmt.Sprintf("%s (%d)", id, i.counts.IDs[id]))
	}
	return strings.Join(ids, ", ")
}

// measure finds out how long the texts of an index are, and what its mapping
// lacks for their segments. A cluster that does not say how long they are is
// asked for nothing more.
func (a *adviser) measure(ctx context.Context, i *index) {
	if i.uncountable != nil {
		return
	}
	length, err := a.client.AverageLength(ctx, i.Index, i.Field)
	if err != nil || length < longLength {
		return
	}
	i.length = length
	f := segments.Filling{Field: i.Field, Path: segmentsPath}
	if lacking, err := f.Check(&i.Inspection); err == nil { // else the field is taken
		i.lacking = lacking
	}
}
