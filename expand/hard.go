package expand

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// [ModeHard] makes the score of a hit the hard-normalised soft cosine of the
// text x and a field y of the document:
//
//	(Wx)ᵀS(Wy) / (‖Wx‖·‖Wy‖) = Σ_j v_j·y_j / (‖Wx‖·‖Wy‖),  v_j = Σ_i x_i w_i s_ij w_j
//
// with s_ii = 1, over the terms j of the text and all of their neighbors. W are
// weights that were frozen: idf, see [Weights]. The sum is written as one term
// query for each j on a field that scores linearly in tf, see [Linear], with
// the boost
//
//	v_j / (‖Wx‖·c·idf_j)    c and idf_j the engine's,
//	v_j / ‖Wx‖              where a script scores,
//
// and a function_score divides it by ‖Wy‖, which a doc value of the hit holds.
// The original decides what is found, as in the other forms, and scores
// nothing. Several fields are combined as the clause combines them.
//
// The scores of BM25 are of another scale, so that either all clauses of a
// search that look for text are scored like this, or none: where one cannot be,
// the search is expanded as in [ModeBM25], and each clause says why. Queries of
// other kinds score beside it as the client wrote them.
//
// Cold, the linear fields are asked about beside the terms and the rows of S,
// and the weights beside the statistics, so that there are as many waits as in
// ModeBM25 where the linear field is known after two.

const (
	// maxHardTerms bounds the terms that are added to a search, for clusters that
	// take as many clauses: the neighbors of 50 terms with 200 each, and about
	// 700 KiB.
	maxHardTerms = 10_000
	// maxSharedTerms bounds the terms that are added to all searches of one
	// request, which get the same share of them: about 5 MiB. 64 searches get as
	// many as [defaultClauseLimit] allows each.
	maxSharedTerms = 1 << 16
	// shareOfEngine is the share of the clauses, 16 of 1,024, that is left for the
	// engine.
	shareOfEngine = 64
)

// exact is what [FormHard] needs to know of a target. It is not modified once
// it is complete.
type exact struct {
	// weights are nil once they have been used.
	weights Weights
	linear  Linear
	// norm is ‖Wx‖.
	norm float64
	// truncated says that there are more neighbors than [job.hardTerms] allows.
	truncated bool
	// bar is why there is no linear field to score by, and failure that it is not
	// known.
	bar     Reason
	failure error
}

// boost returns the factor of a term that brings v, for the engine's idf.
func (x *exact) boost(v, idf float64) float64 {
	if x.linear.Scripted {
		return v / x.norm
	}
	return v / (x.norm * x.linear.Factor * idf)
}

// findTexts is [job.texts], beside which it asks for the linear fields where
// the search may be scored by the measure.
func (j *job) findTexts(targets []clauseTarget) (left []clauseTarget, err error) {
	if j.options.Mode != ModeHard || !j.mayBeHard(targets) {
		return j.texts(targets)
	}
	weighted := slices.DeleteFunc(slices.Clone(targets), func(t clauseTarget) bool { return t.exact == nil })
	err = inParallel(2, 2, func(i int) (err error) {
		if i == 0 {
			left, err = j.texts(targets)
			return err
		}
		return each(weighted, j.findLinear)
	})
	return left, err
}

// hard collects what the measure takes, and reports whether the search is
// scored by it; else, in ModeHard, every clause of the search says why not.
func (j *job) hard(targets []clauseTarget) (bool, error) {
	if j.options.Mode != ModeHard {
		return false, nil
	}
	for _, t := range targets {
		t.clause.modeReason = cmp.Or(t.clause.modeReason, j.targetBar(t))
	}
	if j.barHard() || len(targets) == 0 {
		return false, nil
	}
	for _, t := range targets {
		if err := t.exact.failure; err != nil {
			return false, &StageError{StageLinear, err}
		}
	}
	most := j.hardTerms()
	gatherAll(targets, min(candidatesPerTerm*most, maxHardTerms))
	if err := j.weighAll(targets); err != nil {
		return false, err
	}
	added := 0
	for _, t := range targets {
		added += len(t.sel.candidates)
	}
	j.cutExactly(added - most) // before any of them is written
	for _, t := range targets {
		t.exact.truncated = t.exact.truncated || t.truncated
		t.exact.weights = nil // a point in time would hold on to all of them
		t.clause.exact = true
	}
	return true, nil
}

// hardTerms returns how many terms may be added to the search.
func (j *job) hardTerms() int {
	return min(j.hardLimit(), maxHardTerms, maxSharedTerms/j.together)
}

// hardLimit returns how many clauses the search may have. Of those that the
// cluster takes it leaves a few for what engines add to a query themselves: the
// filters of an alias, of nested documents, and of what a user may see. As many
// as the cluster takes is what most searches have here, and would be refused
// with one more.
func (j *job) hardLimit() int {
	limit := cmp.Or(j.clauseLimit(), defaultClauseLimit)
	return limit - limit/shareOfEngine
}

// stage marks an error with the stage that it is of.
func (*job) stage(s Stage, err error) error {
	if err == nil {
		return nil
	}
	return &StageError{s, err}
}

// mayBeHard reports whether nothing that is known already speaks against the
// measure, and gives the targets their weights.
func (j *job) mayBeHard(targets []clauseTarget) bool {
	scan := &j.scanner.scan
	for i := range scan.clauses {
		if c := &scan.clauses[i]; !c.note {
			c.modeReason = j.clauseBar(c)
		}
	}
	if j.barHard() || j.weights == nil || j.linear == nil {
		return false
	}
	for _, t := range targets {
		if t.weights != nil && t.weights.Docs() > 0 {
			t.exact = &exact{weights: t.weights}
		}
	}
	return true
}

// barHard reports whether one of the clauses cannot be scored by the measure.
// Then none is, and those that could be have the reason of the first that
// cannot.
func (j *job) barHard() bool {
	scan := &j.scanner.scan
	var first Reason
	for i := range scan.clauses {
		c := &scan.clauses[i]
		for k := range c.targets {
			t := &c.targets[k]
			if t.reason == "" {
				continue
			}
			t.exact = nil
			if t.reason != ReasonNoTerms { // which finds nothing
				c.modeReason = cmp.Or(c.modeReason, t.reason)
			}
		}
		first = cmp.Or(first, c.modeReason)
	}
	if first == "" {
		return false
	}
	for i := range scan.clauses {
		c := &scan.clauses[i]
		c.modeReason = cmp.Or(c.modeReason, first)
		for k := range c.targets {
			c.targets[k].exact = nil
		}
	}
	return true
}

// clauseBar returns why a clause cannot be scored by the measure, as far as the
// request says, "" where it may be.
func (j *job) clauseBar(c *clause) Reason {
	scan := &j.scanner.scan
	switch {
	case c.reason != "":
		return c.reason
	case scan.minScore:
		return ReasonMinScore // it is meant for other scores
	case scan.hasRescore && !j.options.RescoreQueries:
		return ReasonRescore // so is what it adds
	case strings.Contains(c.path, ".nested."):
		return ReasonNoNorms // they stand in the document around the nested ones
	case !c.plain || c.termwise:
		return ReasonNotPlain
	}
	return ""
}

// targetBar returns why an analyzed target cannot be scored by the measure, ""
// where it can.
func (j *job) targetBar(t clauseTarget) Reason {
	switch c, x := t.clause, t.exact; {
	case !c.plain || !t.analysis.single():
		return ReasonNotPlain
	case c.depth+j.hardLevels(c) > maxLevels:
		return ReasonTooDeep
	case j.linear == nil && j.weights != nil:
		return ReasonNoLinear
	case x == nil:
		return ReasonNoWeights
	case x.bar != "":
		return x.bar
	case !x.linear.Scripted:
		return j.shardBar(t.analysis)
	}
	return ""
}

// hardLevels returns how many levels of queries the clause takes.
func (j *job) hardLevels(c *clause) int {
	n := 4 // bool, function_score, bool, term
	several := len(c.targets) > 1
	if several {
		n++ // dis_max
	}
	if c.groups() && (several || !j.same(c)) {
		n++ // bool, with either the groups or the function_score in it
	}
	return n
}

// findLinear asks for the field that scores t linearly. Others set the target's
// terms meanwhile.
func (j *job) findLinear(t clauseTarget) error {
	x := t.exact
	linear, err := j.linear.Linear(j.ctx, j.indices, t.field, x.weights.ID())
	switch {
	case errors.Is(err, ErrNoLinear):
		x.bar = ReasonNoLinear
	case errors.Is(err, ErrNoNorms):
		x.bar = ReasonNoNorms
	case err != nil:
		if x.bar = reasonOf(err); x.bar == "" {
			x.failure = err
		}
	case j.redefines(linear.Field), j.redefines(linear.Norm):
		x.bar = ReasonRuntimeField
	}
	x.linear = linear
	return nil
}

// redefines reports whether the request may define the field anew.
func (j *job) redefines(field string) bool {
	rm := j.scanner.scan.runtimeMappings
	return !rm.isZero() && bytes.Contains(rm.of(j.body), []byte(`"`+field+`"`))
}

// gatherAll collects the neighbors of all targets, and keeps the best of those
// that have more than their share of keep: all get the same, and what one has
// no use for goes to the others.
func gatherAll(targets []clauseTarget, keep int) {
	sizes := make([]int, len(targets))
	for i, t := range targets {
		t.sel.gather(t.rows.Docs())
		sizes[i] = len(t.sel.candidates)
	}
	slices.Sort(sizes)
	share := keep
	for i, n := range sizes {
		if share = keep / (len(sizes) - i); n > share {
			break
		}
		keep -= n
	}
	for _, t := range targets {
		if len(t.sel.candidates) > share {
			t.sel.keepBest(share)
			t.exact.truncated = true
		}
	}
}

// gather collects all neighbors of the origins: candidates, and entries that
// lead to them or, with the number −1−k for a candidate, to origin k. It sets v
// of the candidates by the document frequencies in the rows, of docs documents;
// where those are unknown, all weigh the same.
func (sel *selection) gather(docs int64) {
	size := len(sel.origins)
	for i := range sel.origins {
		size += sel.origins[i].row.Len()
	}
	sel.byTerm.reset(size)
	weight := func(docFreq uint32) float64 {
		if docs <= 0 || docFreq == 0 {
			return 1
		}
		return idf(int64(docFreq), docs)
	}
	for i := range sel.origins {
		o := &sel.origins[i]
		xw := o.x * weight(o.row.DocFreq())
		for n := range o.row.All() {
			s := float64(n.Similarity)
			if k := sel.originOf(n.Term); k >= 0 {
				sel.entries = append(sel.entries, entry{i, -1 - k, s})
				continue
			}
			slot := sel.byTerm.slot(n.Term, sel.candidates)
			if *slot == 0 {
				sel.candidates = append(sel.candidates, candidate{term: n.Term, id: len(sel.candidates)})
				*slot = len(sel.candidates)
			}
			c := *slot - 1
			sel.entries = append(sel.entries, entry{i, c, s})
			sel.candidates[c].v += xw * s * weight(n.DocFreq)
		}
	}
}

// weighAll weighs the terms of all targets. A single one has the memory of the
// job for that.
func (j *job) weighAll(targets []clauseTarget) error {
	if len(targets) > 1 {
		return each(targets, func(t clauseTarget) error { return j.weighExactly(t, new(weighing)) })
	}
	m := weighing{j.terms, j.rows, j.docFreqs}
	err := j.weighExactly(targets[0], &m)
	j.terms, j.rows, j.docFreqs = m.terms, m.rows, m.docFreqs
	return err
}

// weighing is memory for terms, their rows and their document frequencies.
type weighing struct {
	terms    []string
	rows     []simmatrix.Row
	docFreqs []int64
}

// weighExactly fetches the weights of the terms and, at the same time, their
// live statistics in the linear field, and weighs the terms by them.
func (j *job) weighExactly(t clauseTarget, m *weighing) error {
	m.terms = t.sel.terms(m.terms[:0])
	m.rows, m.docFreqs = sized(m.rows, len(m.terms)), sized(m.docFreqs, len(m.terms))
	err := inParallel(2, 2, func(i int) (err error) {
		if i == 0 {
			return j.stage(StageWeights, t.exact.weights.Rows(j.ctx, m.terms, m.rows))
		}
		t.stats, err = j.cluster.Statistics(j.ctx, j.indices, t.exact.linear.Field, m.terms, m.docFreqs)
		return j.stage(StageStatistics, err)
	})
	if err != nil {
		return err
	}
	t.exact.norm = t.sel.settleExactly(t.exact.weights.Docs(), m.rows, t.stats.DocCount, m.docFreqs)
	return nil
}

// settleExactly sets v of all terms by the weights that rows of docs documents
// are, drops the candidates that the index does not hold, and puts the others
// in their order. rows and docFreqs belong to [selection.terms]. It returns
// ‖Wx‖.
func (sel *selection) settleExactly(docs int64, rows []simmatrix.Row, docCount int64, docFreqs []int64) float64 {
	weight := func(k int) float64 { return idf(int64(rows[k].DocFreq()), docs) }
	square := 0.0
	for i := range sel.origins {
		o := &sel.origins[i]
		o.w, o.idf = weight(i), idf(docFreqs[i], docCount)
		o.v = o.x * o.w
		square += o.v * o.v
	}
	n, slot := len(sel.origins), sel.slots()
	for k := range sel.candidates {
		c := &sel.candidates[k]
		c.docFreq, c.v, c.best, c.place = docFreqs[n+k], 0, 0, k
	}
	for _, e := range sel.entries {
		from := &sel.origins[e.origin]
		v := from.x * from.w * e.s
		if e.candidate < 0 {
			sel.origins[-1-e.candidate].v += v
			continue
		}
		k := slot[e.candidate]
		if k < 0 {
			continue
		}
		c := &sel.candidates[k]
		c.v += v
		if v > c.best {
			c.best, c.origin, c.s = v, e.origin, e.s
		}
	}
	for i := range sel.origins {
		sel.origins[i].v *= sel.origins[i].w
	}
	for k := range sel.candidates {
		c := &sel.candidates[k]
		c.v *= weight(n + k)
		if c.docFreq == 0 {
			c.v = 0
		}
	}
	sel.keepBest(len(sel.candidates))
	return math.Sqrt(square)
}
