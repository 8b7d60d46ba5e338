// Package terms chooses the terms that are added to a search. It is
// mathematics over values and asks nobody anything.
//
// With x the term frequencies of a text, w the diagonal of the weights W and
// S the similarity matrix, the score mass that term j brings is
//
//	v_j = Σ_i x_i w_i w_j s_ij
//
// over the terms i of the text, j not one of them. A neighbor is worth more
// when it is close to the whole text and not to one of its words, which is
// its fit
//
//	ctx_j = Σ_i u_i c_ij / √(Σ_i u_i²),  u_i = x_i idf_i,  c_ij = s_ij^(1/p)
//
// where p is the power that S was made with, so that c_ij is a cosine where
// S was learned from documents. The terms with the largest v_j·ctx_j are
// added, ties in byte order, and each belongs to the i that gives most of
// v_j. Their weights are v_j·ctx_j, scaled such that their sum is that of as
// many of the largest v_j: the fit decides which terms are added, but not
// what all of them count for.
//
// An i that no document has may have the row of the nearest known word k, with
// k itself. Then its w and idf are those of k, and k stands in its place: v_k =
// x_i w_i w_k s_ik, without a fit.
package terms

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A Weighting makes a term's entry of W of its idf.
type Weighting uint8

// The weightings.
const (
	// SqrtIDF is w = √idf, for a score that multiplies idf in once, as BM25.
	SqrtIDF Weighting = iota
	// IDF is w = idf.
	IDF
	// One is w = 1, for a score without idf.
	One
)

// Of returns w for an idf.
func (w Weighting) Of(idf float64) float64 {
	switch w {
	case IDF:
		return idf
	case One:
		return 1
	default:
		return math.Sqrt(idf)
	}
}

// An Origin is a term of the text, once however often it stands there.
type Origin struct {
	Term string
	// X is its term frequency in the text. Terms that share a position share
	// its one occurrence.
	X      float64
	Row    simmatrix.Row // its neighbors
	Plain  bool          // none are looked for
	Alone  bool          // it stands somewhere without a variant at its position
	IDF, W float64       // the engine's idf, and the entry of W
	V      float64       // as of a candidate; only [Selection.SettleFrozen] sets it
	// Nearest are the known words whose row it has, nil where that is its own.
	Nearest []string
}

// A Candidate is a term j that may be added.
type Candidate struct {
	Term    string
	DocFreq int64   // how many documents have it
	V       float64 // v_j, or v_j·ctx_j, scaled, where the selection goes by the fit
	Fit     float64 // ctx_j in (0, √n] of n origins; 0 where the selection does not go by it
	// Origin is the number of the i that gives most of V, and Similarity its
	// s_ij.
	Origin     int
	Similarity float64
	// Near says that it is a nearest known word of i, which is in its place: V is
	// x_i w_i w_j s_ij alone.
	Near bool
	// FieldIDFs are the idfs of the term in each field that the selection is
	// for, 0 in those that do not have it; nil where it is for one, see
	// [Selection.SettleFields].
	FieldIDFs []float64

	best  float64 // the most of V that an origin gives
	id    int     // its number in the entries
	place int     // its place in the document frequencies that it was settled by
}

// In reports whether the term is to be looked for in field i.
func (c *Candidate) In(i int) bool { return c.FieldIDFs == nil || c.FieldIDFs[i] > 0 }

// An entry is one s_ij that leads from an origin to a candidate or, with the
// number −1−k for a candidate, to origin k. Its c is c_ij, 0 where the
// selection does not go by the fit.
type entry struct {
	origin    int
	candidate int
	s, c      float64
}

// A Text is the terms of a text, each once, in their order.
type Text []Origin

// Read returns the text of terms that have the positions given.
func Read(terms []string, positions []int) Text {
	t := make(Text, 0, len(terms))
	for k, term := range terms {
		x := 1 / float64(stacked(positions, k))
		if i := t.Index(term); i >= 0 {
			t[i].X += x
			t[i].Alone = t[i].Alone || x == 1
			continue
		}
		t = append(t, Origin{Term: term, X: x, Alone: x == 1})
	}
	return t
}

// A Selection chooses the terms to add for one text. Its memory is used
// again by [Selection.Start].
type Selection struct {
	Origins    Text
	Candidates []Candidate
	// Context has f_j of the terms that the first hits speak of, see [Feedback];
	// nil without feedback.
	Context map[string]float64
	// LeftOut are neighbors that are no candidates because of how many documents
	// have them, at most [MaxLeftOut]: first the too frequent ones, then by
	// similarity.
	LeftOut []LeftOut

	entries []entry
	byTerm  table
	ranks   []rank
	kept    []Candidate
}

// Start takes a copy of a text, and forgets what was there before.
func (sel *Selection) Start(text Text) {
	sel.Context = nil
	sel.Origins = append(sel.Origins[:0], text...)
	sel.Candidates, sel.entries, sel.LeftOut = sel.Candidates[:0], sel.entries[:0], sel.LeftOut[:0]
}

// Alike reports whether another selection is of the same text, so that with the
// same rows both propose the same.
func (sel *Selection) Alike(other *Selection) bool {
	return slices.EqualFunc(sel.Origins, other.Origins, func(a, b Origin) bool {
		return a.Term == b.Term && a.X == b.X && a.Plain == b.Plain && a.Nearest == nil && b.Nearest == nil
	})
}

// Copy takes what another selection, which is alike, has proposed.
func (sel *Selection) Copy(from *Selection) {
	sel.Origins = append(sel.Origins[:0], from.Origins...)
	sel.Candidates = append(sel.Candidates[:0], from.Candidates...)
	sel.entries = append(sel.entries[:0], from.entries...)
	sel.LeftOut = append(sel.LeftOut[:0], from.LeftOut...)
}

// Expanded calls f for each origin whose neighbors are looked for.
func (t Text) Expanded(f func(o *Origin)) {
	for i := range t {
		if o := &t[i]; !o.Plain {
			f(o)
		}
	}
}

// Limit looks for the neighbors of the n origins with the largest x_i·idf_i
// only, ties in the order of the text. docFreqs are those of the origins, of
// docs documents.
func (t Text) Limit(docFreqs []int64, docs int64, n int) {
	order := make([]int, len(t))
	mass := make([]float64, len(t))
	for i := range order {
		order[i], mass[i] = i, t[i].X*simmatrix.IDF(docFreqs[i], docs)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(mass[b], mass[a]) })
	for _, i := range order[min(n, len(order)):] {
		t[i].Plain = true
	}
}

func stacked(positions []int, k int) int {
	first, last := k, k
	for first > 0 && positions[first-1] == positions[k] {
		first--
	}
	for last+1 < len(positions) && positions[last+1] == positions[k] {
		last++
	}
	return last - first + 1
}

// Index returns the number of a term, -1 for one that is not there.
func (t Text) Index(term string) int {
	for i := range t { // few, and most differ in length or first byte
		if t[i].Term == term {
			return i
		}
	}
	return -1
}

// Propose collects the candidates from the origins' rows and keeps the best
// by the document frequencies in the rows, which refer to docs documents;
// where these are unknown, w and idf count as 1. Candidates in more than
// share of docs are passed over. Power is the p of S.
func (sel *Selection) Propose(w Weighting, docs int64, power, share float64, keep int) {
	most := math.Inf(1)
	if docs > 0 {
		most = mostDocs(share, docs)
	}
	sel.collect(w, docs, most, cosineOf(power), false)
	norm := sel.norm()
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		c.Fit /= norm
		c.V *= c.Fit
	}
	sel.KeepBest(keep)
}

// cosineOf returns what makes c of s = c^power, where s is as in a row.
func cosineOf(power float64) func(s float64) float64 {
	if power == 3 { // as matrices are learned by default
		return math.Cbrt // a table of all would not be in the processor's cache when a search comes
	}
	return func(s float64) float64 { return math.Pow(s, 1/power) }
}

// norm returns √(Σ_i u_i²).
func (sel *Selection) norm() float64 {
	square := 0.0
	for i := range sel.Origins {
		u := sel.Origins[i].X * sel.Origins[i].IDF
		square += u * u
	}
	return math.Sqrt(square)
}

// Gather collects all neighbors of the origins, also those that are origins
// themselves, in no order. V is as in [Selection.Propose], with [IDF].
func (sel *Selection) Gather(docs int64) {
	sel.collect(IDF, docs, math.Inf(1), func(float64) float64 { return 0 }, true)
}

// collect sets the candidates and the entries that lead to them, and with
// among those that lead to origins, of the rows' terms in at most so many
// documents. It sets IDF of the origins by the frequencies in the rows, and
// Fit of the candidates to Σ_i u_i c_ij.
func (sel *Selection) collect(w Weighting, docs int64, most float64, cosine func(s float64) float64, among bool) {
	sel.byTerm.reset(sel.neighbors())
	known := func(docFreq int64) bool { return docs > 0 && docFreq > 0 }
	weight := func(docFreq int64) float64 {
		if !known(docFreq) {
			return 1
		}
		return w.Of(simmatrix.IDF(docFreq, docs))
	}
	for i := range sel.Origins {
		o := &sel.Origins[i]
		docFreq := int64(o.Row.DocFreq())
		if o.IDF = 1; known(docFreq) {
			o.IDF = simmatrix.IDF(docFreq, docs)
		}
		xw, u := o.X*weight(docFreq), o.X*o.IDF
		for n := range o.Row.All() {
			s := float64(n.Similarity)
			if k := sel.Origins.Index(n.Term); k >= 0 {
				if among {
					sel.entries = append(sel.entries, entry{i, -1 - k, s, 0})
				}
				continue
			}
			near := slices.Contains(o.Nearest, n.Term)
			if float64(n.DocFreq) > most && !near {
				sel.leaveOut(LeftOut{n.Term, i, s, true})
				continue
			}
			slot := sel.byTerm.slot(n.Term, sel.Candidates)
			if *slot == 0 {
				sel.Candidates = append(sel.Candidates, Candidate{Term: n.Term, DocFreq: int64(n.DocFreq), id: len(sel.Candidates)})
				*slot = len(sel.Candidates)
			}
			c, e := &sel.Candidates[*slot-1], entry{i, *slot - 1, s, cosine(s)}
			sel.entries = append(sel.entries, e)
			c.V += xw * s
			c.Fit += u * e.c
			c.Near = c.Near || near
		}
	}
	for k := range sel.Candidates {
		sel.Candidates[k].V *= weight(sel.Candidates[k].DocFreq)
	}
}

func (sel *Selection) neighbors() (n int) {
	for i := range sel.Origins {
		n += sel.Origins[i].Row.Len()
	}
	return n
}

// mostDocs returns the share of docs, rounded up to whole documents.
func mostDocs(share float64, docs int64) float64 { return math.Ceil(share * float64(docs)) }

// Settle weighs the proposed candidates by live statistics and drops those
// that the index does not have or has in more than share of its documents.
// docFreqs belong to [Selection.Terms].
func (sel *Selection) Settle(w Weighting, docs int64, docFreqs []int64, share float64) {
	for i := range sel.Origins {
		o := &sel.Origins[i]
		o.IDF = simmatrix.IDF(sel.docFreq(i, docFreqs), docs)
		o.W = w.Of(o.IDF)
	}
	sel.sum(docFreqs)
	most, norm := mostDocs(share, docs), sel.norm()
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		if c.Near {
			c.V, c.Fit = c.best, 0
		}
		c.Fit /= norm
		if c.V *= w.Of(simmatrix.IDF(c.DocFreq, docs)); c.DocFreq == 0 || float64(c.DocFreq) > most && !c.Near {
			sel.leaveOut(LeftOut{c.Term, c.Origin, c.Similarity, c.DocFreq > 0})
			c.V = 0
		}
	}
	sel.Candidates = slices.DeleteFunc(sel.Candidates, func(c Candidate) bool { return c.V == 0 })
}

// Choose keeps the n settled candidates with the largest v_j·ctx_j, scales
// their weights, and puts them in their order. With feedback it then weighs
// them by 1 + f_j, so that of two senses of a word that of the first hits
// wins, but the same documents are found.
func (sel *Selection) Choose(n int) {
	neighbors := n
	for k := range sel.Candidates {
		if sel.Candidates[k].Near {
			neighbors--
		}
	}
	mass := sel.mass(max(neighbors, 0))
	for k := range sel.Candidates {
		if c := &sel.Candidates[k]; !c.Near {
			c.V *= c.Fit
		}
	}
	sel.KeepBest(n)
	scale := mass / sel.mass(n)
	for k := range sel.Candidates {
		if c := &sel.Candidates[k]; !c.Near {
			c.V *= scale * (1 + sel.Context[c.Term])
		}
	}
}

// mass returns the sum of the n largest V of neighbors.
func (sel *Selection) mass(n int) (sum float64) {
	all := sel.ranks[:0]
	for k := range sel.Candidates {
		if !sel.Candidates[k].Near {
			all = append(all, rank{sel.Candidates[k].V, k})
		}
	}
	sel.ranks = all
	if n < len(all) {
		sel.partition(all, n)
		all = all[:n]
	}
	for _, r := range all {
		sum += r.v
	}
	return sum
}

// sum sets V of the candidates to Σ_i x_i w_i s_ij, Fit to Σ_i u_i c_ij, and
// their document frequencies. It adds to V of the origins what leads to
// them.
func (sel *Selection) sum(docFreqs []int64) {
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		c.DocFreq, c.V, c.Fit, c.best, c.place = docFreqs[len(sel.Origins)+k], 0, 0, 0, k
	}
	slot := sel.slots(sel.Candidates)
	for _, e := range sel.entries {
		from := &sel.Origins[e.origin]
		v := from.X * from.W * e.s
		if e.candidate < 0 {
			sel.Origins[-1-e.candidate].V += v
		} else if k := slot[e.candidate]; k >= 0 {
			c := &sel.Candidates[k]
			c.Fit += from.X * from.IDF * e.c
			c.V += v
			if near := slices.Contains(from.Nearest, c.Term); near == c.Near && v > c.best {
				c.best, c.Origin, c.Similarity = v, e.origin, e.s
			}
		}
	}
}

// SettleFrozen weighs all terms by w = idf of their frozen document
// frequencies among docs documents, 0 of which stand for 1, and drops the
// candidates that no live document has. Both frequencies belong to
// [Selection.Terms]. It returns ‖Wx‖.
func (sel *Selection) SettleFrozen(docs int64, frozen func(k int) int64, liveDocs int64, live []int64) float64 {
	weight := func(k int) float64 { return simmatrix.IDF(frozen(k), docs) }
	square := 0.0
	for i := range sel.Origins {
		o := &sel.Origins[i]
		o.W, o.IDF = weight(i), simmatrix.IDF(live[i], liveDocs)
		o.V = o.X * o.W
		square += o.V * o.V
	}
	sel.sum(live)
	for i := range sel.Origins {
		sel.Origins[i].V *= sel.Origins[i].W
	}
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		if c.V *= weight(len(sel.Origins) + k); c.DocFreq == 0 {
			c.V = 0
		}
	}
	sel.KeepBest(len(sel.Candidates))
	return math.Sqrt(square)
}

// FieldCounts is what is known of one of several fields that share a
// selection: its documents, and how many of them have each of
// [Selection.Terms].
type FieldCounts struct {
	Docs     int64
	DocFreqs []int64
}

// SettleFields is [Selection.Settle] for fields that are searched together.
// As in the engines a term's document frequency is the largest over the
// fields, and so is the number of documents, which it returns (Lucene's
// BlendedTermQuery and CombinedFieldQuery). The added terms are written one
// by one for each field, see [Candidate.FieldIDFs].
func (sel *Selection) SettleFields(w Weighting, fields []FieldCounts, share float64) (docs int64) {
	docFreqs := slices.Clone(fields[0].DocFreqs)
	for _, f := range fields {
		docs = max(docs, f.Docs)
		for k, df := range f.DocFreqs {
			docFreqs[k] = max(docFreqs[k], df)
		}
	}
	sel.Settle(w, docs, docFreqs, share)
	all := make([]float64, len(sel.Candidates)*len(fields))
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		c.FieldIDFs, all = all[:len(fields):len(fields)], all[len(fields):]
		for i, f := range fields {
			if df := f.DocFreqs[len(sel.Origins)+c.place]; df > 0 {
				c.FieldIDFs[i] = simmatrix.IDF(df, f.Docs)
			}
		}
	}
	return docs
}

// slots returns, for each candidate number in the entries, where among those
// given the candidate stands, or -1.
func (sel *Selection) slots(candidates []Candidate) []int {
	n := 0
	for _, e := range sel.entries {
		n = max(n, e.candidate+1)
	}
	slot := slices.Repeat([]int{-1}, n)
	for k := range candidates {
		slot[candidates[k].id] = k
	}
	return slot
}

// Related calls f for those of the candidates given that are neighbors of
// origin i.
func (sel *Selection) Related(i int, candidates []Candidate, f func(c *Candidate)) {
	slot := sel.slots(candidates)
	for _, e := range sel.entries {
		if e.origin == i && e.candidate >= 0 && slot[e.candidate] >= 0 {
			f(&candidates[slot[e.candidate]])
		}
	}
}

// Terms appends the terms to dst.
func (t Text) Terms(dst []string) []string {
	for i := range t {
		dst = append(dst, t[i].Term)
	}
	return dst
}

// Terms appends the origins' and the candidates' terms to dst, in this
// order.
func (sel *Selection) Terms(dst []string) []string {
	dst = sel.Origins.Terms(dst)
	for k := range sel.Candidates {
		dst = append(dst, sel.Candidates[k].Term)
	}
	return dst
}

// MaxLeftOut bounds the neighbors of a text that are noted as left out.
const MaxLeftOut = 10

// A LeftOut is a neighbor that is not added.
type LeftOut struct {
	Term string
	// Origin is the number of the origin that it is a neighbor of, and Similarity
	// the s_ij.
	Origin     int
	Similarity float64
	// Frequent says that more documents have it than are let in; else none has it.
	Frequent bool
}

// before reports whether l is noted rather than other: a limit can be changed,
// and what no document has would find nothing.
func (l *LeftOut) before(other *LeftOut) bool {
	if l.Frequent != other.Frequent {
		return l.Frequent
	}
	return l.Similarity > other.Similarity
}

// leaveOut notes a neighbor, once for all origins, by its largest similarity.
func (sel *Selection) leaveOut(l LeftOut) {
	if len(sel.LeftOut) == MaxLeftOut && !l.before(&sel.LeftOut[MaxLeftOut-1]) {
		return
	}
	if at := slices.IndexFunc(sel.LeftOut, func(o LeftOut) bool { return o.Term == l.Term }); at >= 0 {
		if !l.before(&sel.LeftOut[at]) {
			return
		}
		sel.LeftOut = slices.Delete(sel.LeftOut, at, at+1)
	}
	at, _ := slices.BinarySearchFunc(sel.LeftOut, l, func(o, l LeftOut) int {
		if o.before(&l) || !l.before(&o) {
			return -1
		}
		return 1
	})
	sel.LeftOut = slices.Insert(sel.LeftOut, at, l)
	sel.LeftOut = sel.LeftOut[:min(len(sel.LeftOut), MaxLeftOut)]
}
