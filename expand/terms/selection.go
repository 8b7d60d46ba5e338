// Package terms chooses the terms that are added to a search. It computes on
// values, without I/O.
//
// Let x be the term frequencies of a text, w the diagonal of the weights W, and
// S the similarity matrix. The score mass of term j is
//
//	v_j = Σ_i x_i w_i w_j s_ij
//
// over the terms i of the text, where j is not one of them. A neighbor is worth
// more if it is close to the whole text, not only to one of its words. That is
// its fit
//
//	ctx_j = Σ_i u_i c_ij / √(Σ_i u_i²),  u_i = x_i idf_i,  c_ij = s_ij^(1/p)
//
// where p is the power that S was made with, so that c_ij is a cosine if S was
// learned from documents. The terms with the largest v_j·ctx_j are added, ties
// in byte order; each belongs to the i that contributes most to v_j. Their
// weights are v_j·ctx_j, scaled to the sum of as many of the largest v_j: the
// fit decides which terms are added, but not their total weight.
//
// Without the fit, the terms with the largest v_j are added, with v_j as their
// weights, and a j may be a term of the text, with the sum over the other i.
// Then x_j + v_j/w_j² are the entries of x' = W⁻¹(Wx)ᵀS.
//
// An i that no document has can get the row of the nearest known word k, with k
// itself. Then its w and idf are those of k, and k replaces it: v_k = x_i w_i
// w_k s_ik, without a fit.
package terms

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A Weighting computes a term's entry of W from its idf.
type Weighting uint8

// The weightings.
const (
	// SqrtIDF is w = √idf, for a score that multiplies by idf once, like BM25.
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

// An Origin is a term of the text, once however often it occurs.
type Origin struct {
	Term string
	// X is its term frequency. Terms at the same position share one occurrence.
	X      float64
	Row    simmatrix.Row // its neighbors
	First  int           // the number of its first occurrence among the terms
	Plain  bool          // no neighbors are added, except for alternatives
	Alone  bool          // it occurs somewhere without a variant at its position
	IDF, W float64       // the engine's idf, and the entry in W
	// FieldIDFs are the idfs in the fields of the selection, as of a candidate.
	FieldIDFs []float64
	V         float64 // as of a candidate; set only by [Selection.SettleFrozen]
	// Nearest are the known words whose row it has, or two in a row, as an
	// expression, that stand for it; nil if the row is its own.
	Nearest []string

	// alternatives says that the row has some: exact neighbors or expressions.
	alternatives bool
}

// In returns the idf in field i, or 0 if the field lacks the origin.
func (o *Origin) In(i int) float64 {
	if o.FieldIDFs == nil {
		return o.IDF
	}
	return o.FieldIDFs[i]
}

// A Candidate is a term j that may be added.
type Candidate struct {
	Term    string
	DocFreq int64   // number of documents with it
	V       float64 // v_j or, if the selection uses the fit, v_j·ctx_j, scaled
	Fit     float64 // ctx_j in (0, √n] for n origins; 0 if the selection does not use it
	// Origin is the number of the i that contributes most to V; Similarity is its
	// s_ij.
	Origin     int
	Similarity float64
	// Near says that it is a nearest known word of i and replaces it: V is x_i w_i
	// w_j s_ij alone. Word says that it is a term of the text: V is what the others
	// add to it. It finds nothing and counts as none of them.
	Near, Word bool
	// FieldIDFs are the term's idfs in the fields of the selection, 0 in those
	// that lack it; nil for a single field, see [Selection.SettleFields].
	FieldIDFs []float64

	best   float64 // largest contribution of an origin to V
	id     int     // its number in entries
	place  int     // its place in the document frequencies that settled it
	better int     // how many candidates of its origin are better
}

// CountsAs reports whether the term's occurrences count as those of origin i.
func (c *Candidate) CountsAs(i int) bool { return c.Origin == i && !c.Word }

// In reports whether the term is searched in field i.
func (c *Candidate) In(i int) bool { return c.FieldIDFs == nil || c.FieldIDFs[i] > 0 }

// An entry is an s_ij from an origin to a candidate or, with −1−k as candidate,
// to origin k. c is c_ij, or 0 if the selection does not use the fit.
type entry struct {
	origin    int
	candidate int
	s, c      float64
}

// A Text is the terms of a text, each once, in their order.
type Text []Origin

// Read returns the text of terms at the given positions.
func Read(terms []string, positions []int) Text {
	t := make(Text, 0, len(terms))
	for k, term := range terms {
		x := 1 / float64(stacked(positions, k))
		if i := t.Index(term); i >= 0 {
			t[i].X += x
			t[i].Alone = t[i].Alone || x == 1
			continue
		}
		t = append(t, Origin{Term: term, X: x, First: k, Alone: x == 1})
	}
	return t
}

// A Selection chooses the terms to add for a text. [Selection.Start] reuses its
// memory.
type Selection struct {
	Origins    Text
	Candidates []Candidate
	// Expressions are those of the text, set after Start, and Alternatives what
	// stands for its words and expressions.
	Expressions  []Expression
	Alternatives []Alternative
	// NoAlternatives makes candidates of words that are as good as others.
	// NoExpressions, unless 0, is why expressions are left out.
	NoAlternatives bool
	NoExpressions  Why
	// NoFit has weights be v_j alone, of terms of the text, too.
	NoFit bool
	// PerWord, unless 0, is how many candidates each origin gets at most. The best
	// of each come first, so that none takes the room of another.
	PerWord int
	// Spans has expressions searched as spans. Phrase says that the text is searched
	// as a phrase.
	Spans, Phrase bool
	// Context has f_j of the first hits' terms, see [Feedback], or is nil.
	Context map[string]float64
	// LeftOut are neighbors that are not added, at most [MaxLeftOut]: first
	// alternatives, then those that are too frequent, then by similarity.
	LeftOut []LeftOut

	entries []entry
	byTerm  table
	ranks   []rank
	kept    []Candidate
}

// Start copies a text and drops the previous one.
func (sel *Selection) Start(text Text) {
	sel.Context = nil
	sel.Origins = append(sel.Origins[:0], text...)
	sel.Candidates = sel.Candidates[:0]
	sel.entries = sel.entries[:0]
	sel.LeftOut = sel.LeftOut[:0]
	sel.Expressions, sel.Alternatives = nil, nil
}

// Alike reports whether another selection is for the same text and takes the
// same alternatives, so that with the same rows both propose the same.
func (sel *Selection) Alike(other *Selection) bool {
	same := func(a, b Expression) bool { return a.Term == b.Term && a.Place == b.Place }
	return sel.NoAlternatives == other.NoAlternatives && sel.Spans == other.Spans && sel.Phrase == other.Phrase && sel.PerWord == other.PerWord && sel.NoExpressions == other.NoExpressions &&
		slices.EqualFunc(sel.Expressions, other.Expressions, same) && slices.EqualFunc(sel.Origins, other.Origins, func(a, b Origin) bool {
		return a.Term == b.Term && a.X == b.X && a.Plain == b.Plain && a.Nearest == nil && b.Nearest == nil
	})
}

// Copy copies the proposals of another selection that is alike.
func (sel *Selection) Copy(from *Selection) {
	sel.Origins = append(sel.Origins[:0], from.Origins...)
	sel.Candidates = append(sel.Candidates[:0], from.Candidates...)
	sel.entries = append(sel.entries[:0], from.entries...)
	sel.LeftOut = append(sel.LeftOut[:0], from.LeftOut...)
	sel.Alternatives = slices.Clone(from.Alternatives)
}

// Expanded calls f for each origin whose neighbors may be added.
func (t Text) Expanded(f func(o *Origin)) {
	for i := range t {
		if o := &t[i]; !o.Plain {
			f(o)
		}
	}
}

// Limit adds neighbors only for the n origins with the largest x_i·idf_i, ties
// in text order. docFreqs are those of the origins, among docs documents.
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

// Index returns the number of a term, or -1.
func (t Text) Index(term string) int {
	for i := range t { // few, and most differ in length or first byte
		if t[i].Term == term {
			return i
		}
	}
	return -1
}

// Propose collects candidates from the origins' rows and keeps the best by the
// rows' document frequencies, among docs documents; if these are unknown, w and
// idf count as 1. It skips candidates in more than share of docs. power is the
// p of S.
func (sel *Selection) Propose(w Weighting, docs int64, power, share float64, keep int) {
	most := math.Inf(1)
	if docs > 0 {
		most = mostDocs(share, docs)
	}
	cosine := cosineOf(power)
	if sel.NoFit {
		cosine = noCosine
	}
	sel.collect(w, docs, most, cosine, false)
	sel.collectAlternatives()
	if !sel.NoFit {
		norm := sel.norm()
		for k := range sel.Candidates {
			c := &sel.Candidates[k]
			c.Fit /= norm
			c.V *= c.Fit
		}
	}
	sel.keepEach(keep, keep)
}

func noCosine(float64) float64 { return 0 }

// cosineOf returns the function from s = c^power to c, with s as in a row.
func cosineOf(power float64) func(s float64) float64 {
	if power == 3 { // the default for learned matrices
		return math.Cbrt // a table of all values would not be in the cache when a search comes
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

// Gather collects all neighbors of the origins, including origins, unordered. V
// is as in [Selection.Propose], with [IDF].
func (sel *Selection) Gather(docs int64) {
	sel.collect(IDF, docs, math.Inf(1), noCosine, true)
	if !sel.NoAlternatives {
		sel.NoAlternatives, sel.NoExpressions = true, NotInMode
		sel.collectAlternatives()
	}
}

// collect sets the candidates and the entries to them from the rows' terms in
// no more than most documents, and with among also the entries to origins. It
// sets IDF of the origins by the rows' frequencies, and Fit of the candidates
// to Σ_i u_i c_ij. It notes which rows have alternatives, for
// collectAlternatives.
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
		if o.Plain { // whose row is there for its alternatives
			docFreq = 0
		}
		o.IDF = 1
		if known(docFreq) {
			o.IDF = simmatrix.IDF(docFreq, docs)
		}
		xw, u := o.X*weight(docFreq), o.X*o.IDF
		o.alternatives = false
		for n := range o.Row.All() {
			s := float64(n.Similarity)
			alternative := isAlternative(n)
			o.alternatives = o.alternatives || alternative
			if o.Plain || simmatrix.IsExpression(n.Term) || alternative && !among && !sel.NoAlternatives && o.Nearest == nil {
				continue
			}
			k := sel.Origins.Index(n.Term)
			word := k >= 0
			if word && among {
				sel.entries = append(sel.entries, entry{i, -1 - k, s, 0})
			}
			if word && (among || !sel.NoFit) {
				continue
			}
			near := slices.Contains(o.Nearest, n.Term)
			if float64(n.DocFreq) > most && !near && !word {
				sel.leaveOut(LeftOut{n.Term, o.Term, s, Frequent})
				continue
			}
			slot := sel.byTerm.slot(n.Term, sel.Candidates)
			if *slot == 0 {
				sel.Candidates = append(sel.Candidates, Candidate{Term: n.Term, DocFreq: int64(n.DocFreq), Word: word, id: len(sel.Candidates)})
				*slot = len(sel.Candidates)
			}
			c, e := &sel.Candidates[*slot-1], entry{i, *slot - 1, s, cosine(s)}
			sel.entries = append(sel.entries, e)
			c.V += xw * s
			if v := xw * s; v > c.best {
				c.best = v
				c.Origin = i
			}
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

// mostDocs returns share of docs, rounded up to whole documents.
func mostDocs(share float64, docs int64) float64 { return math.Ceil(share * float64(docs)) }

// Settle weights the candidates by live statistics. It drops those that the
// index lacks or has in more than share of its documents. docFreqs belong to
// [Selection.Terms].
func (sel *Selection) Settle(w Weighting, docs int64, docFreqs []int64, share float64) {
	for i := range sel.Origins {
		o := &sel.Origins[i]
		o.IDF = simmatrix.IDF(sel.docFreq(i, docFreqs), docs)
	}
	most := mostDocs(share, docs)
	sel.settleAlternatives(docs, docFreqs, most)
	for i := range sel.Origins {
		sel.Origins[i].W = w.Of(sel.Origins[i].IDF)
	}
	sel.sum(docFreqs)
	norm := sel.norm()
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		if c.Near {
			c.V, c.Fit = c.best, 0
		}
		c.Fit /= norm
		c.V *= w.Of(simmatrix.IDF(c.DocFreq, docs))
		if c.DocFreq == 0 || float64(c.DocFreq) > most && !c.Near && !c.Word {
			why := Absent
			if c.DocFreq > 0 {
				why = Frequent
			}
			sel.leaveOut(LeftOut{c.Term, sel.Origins[c.Origin].Term, c.Similarity, why})
			c.V = 0
		}
	}
	sel.Candidates = slices.DeleteFunc(sel.Candidates, func(c Candidate) bool { return c.V == 0 })
}

// Choose keeps the n settled candidates with the largest v_j·ctx_j, scales
// their weights, and sorts them; without the fit those with the largest v_j.
// With feedback it then multiplies weights by 1 + f_j, so that of two senses of
// a word that of the first hits wins, but the same documents are found.
func (sel *Selection) Choose(n int) {
	scale := 1.0
	if sel.NoFit {
		sel.keepEach(n, sel.PerWord)
	} else {
		scale = sel.chooseByFit(n)
	}
	for k := range sel.Candidates {
		if c := &sel.Candidates[k]; !c.Near {
			c.V *= scale * (1 + sel.Context[c.Term])
		}
	}
}

// chooseByFit keeps the n candidates with the largest v_j·ctx_j. It returns the
// factor of their weights.
func (sel *Selection) chooseByFit(n int) float64 {
	if sel.PerWord > 0 {
		n = min(n, sel.eachPerWord())
	}
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
	sel.keepEach(n, sel.PerWord)
	return mass / sel.mass(n)
}

// eachPerWord returns how many candidates PerWord leaves.
func (sel *Selection) eachPerWord() (n int) {
	of := make([]int, len(sel.Origins))
	for k := range sel.Candidates {
		of[sel.Candidates[k].Origin]++
	}
	for _, candidates := range of {
		n += min(candidates, sel.PerWord)
	}
	return n
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
// their document frequencies. To V of the origins it adds the entries to them.
func (sel *Selection) sum(docFreqs []int64) {
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		c.DocFreq = docFreqs[len(sel.Origins)+k]
		c.V = 0
		c.Fit = 0
		c.best = 0
		c.place = k
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
				c.best = v
				c.Origin = e.origin
				c.Similarity = e.s
			}
		}
	}
}

// SettleFrozen weights all terms by w = idf of their frozen document
// frequencies among docs documents, of which 0 counts as 1. It drops candidates
// that no live document has. Both frequencies belong to [Selection.Terms]. It
// returns ‖Wx‖.
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
		c.V *= weight(len(sel.Origins) + k)
		if c.DocFreq == 0 {
			c.V = 0
		}
	}
	sel.KeepBest(len(sel.Candidates))
	return math.Sqrt(square)
}

// SoftNorm returns √((Wx)ᵀS(Wx)) = √Σ_i x_i v_i of a text settled by
// [Selection.SettleFrozen].
func (sel *Selection) SoftNorm() float64 {
	square := 0.0
	for i := range sel.Origins {
		square += sel.Origins[i].X * sel.Origins[i].V
	}
	return math.Sqrt(square)
}

// FieldCounts are the number of documents of a field that shares a selection,
// and how many of them have each of [Selection.Terms].
type FieldCounts struct {
	Docs     int64
	DocFreqs []int64
}

// SettleFields is [Selection.Settle] for fields that are searched together. A
// term's document frequency is its largest over the fields, as in the engines,
// and so is the number of documents, which it returns (Lucene's
// BlendedTermQuery and CombinedFieldQuery). Added terms are written separately
// for each field, see [Candidate.FieldIDFs].
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
	for k := range sel.Alternatives {
		a := &sel.Alternatives[k]
		a.FieldIDFs = make([]float64, len(fields))
		for i, f := range fields {
			a.FieldIDFs[i], _ = a.idf(f.Docs, f.DocFreqs)
		}
	}
	sel.Alternatives = slices.DeleteFunc(sel.Alternatives, func(a Alternative) bool {
		nowhere := slices.Max(a.FieldIDFs) == 0
		if nowhere { // no field has all of its words
			sel.leaveOut(LeftOut{a.Term, a.For, a.Similarity, Absent})
		}
		return nowhere
	})
	for i := range sel.Origins {
		o := &sel.Origins[i]
		o.FieldIDFs = make([]float64, len(fields))
		for k, f := range fields {
			if df := f.DocFreqs[i]; df > 0 {
				o.FieldIDFs[k] = simmatrix.IDF(df, f.Docs)
			}
		}
	}
	return docs
}

// slots returns, for each candidate number in entries, the candidate's place in
// candidates, or -1.
func (sel *Selection) slots(candidates []Candidate) []int32 {
	n := 0
	for _, e := range sel.entries {
		n = max(n, e.candidate+1)
	}
	slot := slices.Repeat([]int32{-1}, n)
	for k := range candidates {
		slot[candidates[k].id] = int32(k)
	}
	return slot
}

// Related calls f for each of candidates that is a neighbor of origin i.
func (sel *Selection) Related(i int, candidates []Candidate, f func(c *Candidate)) {
	slot := sel.slots(candidates)
	for _, e := range sel.entries {
		if e.origin == i && e.candidate >= 0 && slot[e.candidate] >= 0 {
			f(&candidates[slot[e.candidate]])
		}
	}
}

// Terms returns the terms.
func (t Text) Terms() []string {
	out := make([]string, len(t))
	for i := range t {
		out[i] = t[i].Term
	}
	return out
}

// Terms returns the origins' terms, then the candidates', and then those of the
// alternatives.
func (sel *Selection) Terms() []string {
	out := make([]string, 0, len(sel.Origins)+len(sel.Candidates))
	for i := range sel.Origins {
		out = append(out, sel.Origins[i].Term)
	}
	for k := range sel.Candidates {
		out = append(out, sel.Candidates[k].Term)
	}
	for k := range sel.Alternatives {
		for _, term := range sel.Alternatives[k].Terms {
			if term != "" {
				out = append(out, term)
			}
		}
	}
	return out
}

// MaxLeftOut limits the recorded neighbors that are left out.
const MaxLeftOut = 10

// A LeftOut is a neighbor that is not added.
type LeftOut struct {
	// Term and From, which it is a neighbor of, are as in the matrix.
	Term, From string
	Similarity float64 // the s_ij
	Why        Why
}

// Why is why a neighbor is not added.
type Why uint8

// The reasons. Those from NoPositions on are of alternatives.
const (
	Absent      Why = iota // no document has it
	Frequent               // too many documents have it
	NoPositions            // the field finds no phrases
	Graph                  // the engine makes phrases of the text itself
	Combined               // the words of an expression may be in several fields
	NotInMode              // the measure of the mode has only words
	Ordered                // the clause finds only what the original finds
	Limited                // the text has too many
)

// before reports whether to record l rather than other: first alternatives,
// which people asked for. Then a limit can be changed, but a term that no
// document has finds nothing.
func (l *LeftOut) before(other *LeftOut) bool {
	if l.Why != other.Why {
		return l.Why > other.Why
	}
	return l.Similarity > other.Similarity
}

// leaveOut records a neighbor, once for all origins, by its largest similarity.
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
