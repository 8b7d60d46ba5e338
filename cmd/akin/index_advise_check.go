package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/norms"
)

// The results of a check.
const (
	resultOK      = "ok"
	resultMissing = "MISSING"
	resultWrong   = "WRONG"
	resultNote    = "note"
)

// An indexCheck is what was found of one index.
type indexCheck struct {
	*esclient.Inspection

	counts esclient.NormCounts
	// skipped is how many documents lack the target and are not updated by a
	// backfill, or may not be: they have norms by the weights, or by any where
	// none are given.
	skipped int64
	// linear is the field whose score is linear, nil if there is none.
	linear *esclient.Candidate
	// target is the full name of the field whose score is linear or is going to
	// be, and there says that the mapping has it.
	target string
	there  bool
	// hopeless says that the index cannot be changed into what is needed, and
	// anew that another one like it could be.
	hopeless, anew bool
	rows           []checkRow
}

type checkRow struct{ result, what, detail string }

func (c *indexCheck) add(result, what, format string, args ...any) {
	c.rows = append(c.rows, checkRow{result, what, visible(fmt.Sprintf(format, args...))})
}

// ready reports whether nothing is missing.
func (c *indexCheck) ready() bool {
	return !slices.ContainsFunc(c.rows, func(r checkRow) bool { return r.result == resultMissing || r.result == resultWrong })
}

func (a *adviser) checkIndex(ctx context.Context, i *esclient.Inspection) (*indexCheck, error) {
	c := &indexCheck{Inspection: i}
	if i.Closed {
		c.add(resultWrong, "index", "it is closed; open it, and look again")
		c.hopeless = true
		return c, nil
	}
	if i.Problem != "" {
		c.add(resultWrong, "field "+a.flags.field, "the index %s; searches that go there, too, are not expanded", i.Problem)
		c.hopeless = true
		return c, nil
	}
	c.checkField(a.alias)
	if err := a.checkTexts(ctx, c); err != nil {
		return nil, err
	}
	c.checkLinear()
	c.chooseTarget()
	c.checkStored(norms.NormPath(a.flags.field), norms.WeightsPath(a.flags.field))
	if c.Weights.Type == "" || c.Weights.Problem != "" || c.Norm.Type == "" {
		c.add(resultMissing, "norms", "no document has one")
		return c, nil
	}
	linear := ""
	if c.there && c.target != i.Source {
		linear = c.target
	}
	// What was written a moment ago is to be counted. A user who may not ask for
	// that gets counts that are a second old.
	if err := a.client.Refresh(ctx, i.Index); ctx.Err() != nil {
		return nil, err
	}
	var err error
	c.counts, err = a.client.CountNorms(ctx, i.Index, i.Field, linear,
		norms.NormPath(a.flags.field), norms.WeightsPath(a.flags.field), a.weightsID)
	if err != nil {
		return nil, err
	}
	c.checkFilled(linear)
	c.checkNorms(a.weightsID)
	return c, a.countSkipped(ctx, c)
}

// countSkipped counts the documents whose target a backfill does not fill.
func (a *adviser) countSkipped(ctx context.Context, c *indexCheck) error {
	switch {
	case c.target == c.Source || c.counts.Weighted == 0:
		return nil
	case !c.there:
		c.skipped = c.counts.Weighted
		return nil
	case c.counts.Unfilled == 0:
		return nil
	}
	weights := norms.WeightsPath(a.flags.field)
	by := exists(weights)
	if a.weightsID != "" {
		by = object{"term": object{weights: object{"value": a.weightsID}}}
	}
	query := object{"bool": object{"filter": []object{exists(c.Field), by}, "must_not": exists(c.target)}}
	var err error
	c.skipped, err = a.client.CountMatching(ctx, c.Index, raw(query))
	return err
}

// exists returns a query for the documents that have a field.
func exists(field string) object { return object{"exists": object{"field": field}} }

func (c *indexCheck) checkField(alias string) {
	analyzers := "the default analyzer"
	if c.Analyzer != "" {
		analyzers = "analyzer " + c.Analyzer
	}
	if c.SearchAnalyzer != "" {
		analyzers += ", search analyzer " + c.SearchAnalyzer
	}
	c.add(resultOK, "field "+c.Field, "text, %s", analyzers)
	if alias != "" {
		c.add(resultNote, "field "+alias, "an alias of %s: searches by that name are ranked in mode bm25, whatever there is", c.Field)
	}
}

// checkTexts checks that the norms can be computed from the documents and
// stored in them.
func (a *adviser) checkTexts(ctx context.Context, c *indexCheck) error {
	_, err := a.client.Countable(ctx, c.Index, c.Field)
	if errors.Is(err, esclient.ErrUncountable) {
		c.add(resultWrong, "documents", "%v", err)
		c.hopeless = true
		return nil
	}
	return err
}

// intendedK1 is a k1 that nobody has who wants anything but a straight line.
const intendedK1 = 1000

// checkLinear finds the field whose score is linear: the field itself, else a
// scripted one, else one of BM25. A search chooses alike.
func (c *indexCheck) checkLinear() {
	for k := range c.Candidates {
		l := &c.Candidates[k]
		if l.Problem == "" && (c.linear == nil || c.linear.Field != c.Field && l.Scripted && !c.linear.Scripted) {
			c.linear = l
		}
	}
	if l := c.linear; l != nil {
		how := "scripted: exact"
		if !l.Scripted {
			how = fmt.Sprintf("BM25 with k1 %g and b 0", l.K1)
		}
		c.add(resultOK, "linear field "+l.Field, "similarity %s, %s", l.Similarity, how)
		const best = 10_000
		if !l.Scripted && l.K1 != best {
			c.add(resultNote, "k1", "%g; the error is smallest at %d: a smaller k1 bends the line, a larger one loses digits", l.K1, best)
		}
		return
	}
	c.add(resultMissing, "linear field", "no field of this text has a score that is linear in the term frequency")
	for _, l := range c.Candidates {
		result := resultNote
		if l.Retunable && (l.Similarity == linearSimilarity || l.K1 >= intendedK1) {
			result = resultWrong // it is meant to be one
		}
		c.add(result, "  "+l.Field, "%s", l.Problem)
	}
}

func (c *indexCheck) checkStored(normPath, weightsPath string) {
	check := func(path string, f esclient.StoredField) {
		switch {
		case f.Type == "":
			c.add(resultMissing, path, "not mapped; put the mapping before norms are stored, for the engine would make up another")
		case f.Problem != "":
			c.add(resultWrong, path, "%s; this cannot be changed in the index", f.Problem)
			c.anew = c.anew || !c.hopeless // else another one would have the same text
			c.hopeless = true
		default:
			c.add(resultOK, path, "%s", f.Type)
		}
	}
	check(normPath, c.Norm)
	check(weightsPath, c.Weights)
}

// checkFilled checks that documents written before the linear field was there
// have been written again since.
func (c *indexCheck) checkFilled(linear string) {
	switch {
	case linear == "":
	case c.counts.Unfilled > 0:
		c.add(resultMissing, "text in "+linear, "%d of %d documents have the field and not this one", c.counts.Unfilled, c.counts.Docs)
	default:
		c.add(resultOK, "text in "+linear, "all %d documents with the field", c.counts.Docs)
	}
}

func (c *indexCheck) checkNorms(id string) {
	n, by := &c.counts, c.kinds()
	switch {
	case n.Docs == 0:
		c.add(resultMissing, "norms", "no document has the field")
	case n.Bare > 0:
		c.add(resultMissing, "norms", "%d of %d documents have none%s", n.Bare, n.Docs, prefixed("; the others by the weights ", by))
	case n.Weighted < n.Docs:
		c.add(resultWrong, "norms", "%d of %d documents have one by other weights than %s: by %s", n.Docs-n.Weighted, n.Docs, id, by)
	case len(n.IDs) > 1:
		c.add(resultWrong, "norms", "not all are by the same weights: %s", by)
	default:
		c.add(resultOK, "norms", "all %d documents, by the weights %s", n.Docs, by)
	}
	if n.Docs > 0 && n.Normless == n.Docs {
		c.add(resultMissing, "norms", "no document has a term in the field")
	} else if n.Normless > 0 {
		c.add(resultNote, "norms", "%d documents have no term in the field, so that they have an id and no norm", n.Normless)
	}
}

// kinds returns the ids of the weights that norms are by, with their numbers.
func (c *indexCheck) kinds() string {
	ids := make([]string, 0, len(c.counts.IDs))
	for _, id := range slices.Sorted(maps.Keys(c.counts.IDs)) {
		ids = append(ids, fmt.Sprintf("%s (%d)", id, c.counts.IDs[id]))
	}
	return strings.Join(ids, ", ")
}

// prefixed returns text behind a prefix, "" for no text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// printCheck prints what was found, and what to do where that is not enough.
func (a *adviser) printCheck(out io.Writer, c *indexCheck) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "index %s\n", c.Index)
	for _, r := range c.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.result, r.what, r.detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.ready() {
		_, err := fmt.Fprintf(out, "\nMode hard can rank by %s.\n\n", c.Field)
		return err
	}
	return a.printSteps(out, c)
}
