package expand

import (
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// candidatesPerTerm is how many candidates are looked up in the live
// statistics for every term that may be added: some drop out because the
// index does not hold them or they are too frequent there.
const candidatesPerTerm = 2

// An origin is a term of the text, once however often it stands there.
type origin struct {
	term string
	// x is its term frequency in the text. Terms that share a position share
	// its one occurrence.
	x   float64
	row simmatrix.Row
	// idf and w are the engine's, see [idf] and [Weighting.of].
	idf, w float64
	// v is that of a candidate, where the form needs it; then w is frozen.
	v float64
}

// A candidate is a term j that may be added.
type candidate struct {
	term    string
	docFreq int64
	// v is Σ_i x_i w_i w_j s_ij.
	v float64
	// origin is the index of the i that gives most of v, s its s_ij.
	origin int
	s      float64
	best   float64
	// id is the candidate's number in the entries.
	id int
	// place is the candidate's place in the document frequencies that it was
	// settled by.
	place int
	// fieldIDFs are the idfs of the term in each field of a termwise clause, 0
	// in those that do not hold it; nil in others.
	fieldIDFs []float64
}

// An entry is one s_ij that leads from an origin to a candidate.
type entry struct {
	origin    int
	candidate int
	s         float64
}

// A selection chooses the terms to add for one text in one field. All scoring
// forms share it; they differ in how they write it.
//
// Its mathematics: with x the term frequencies of the text, w the diagonal of
// W and S the matrix, the score mass that term j brings is
//
//	v_j = Σ_i x_i w_i w_j s_ij
//
// over the terms i of the text, j not one of them. The terms with the largest
// v_j are added, ties in byte order, and each belongs to the i that gives most.
type selection struct {
	origins    []origin
	candidates []candidate
	entries    []entry
	byTerm     termTable
	// ranks and kept are memory that is used again.
	ranks []rank
	kept  []candidate
}

// idf returns the engines' inverse document frequency, see [simmatrix.IDF].
func idf(docFreq, docCount int64) float64 { return simmatrix.IDF(docFreq, docCount) }

// mostDocs returns how many of docCount documents an added term may occur in:
// the share of them, rounded up to whole documents.
func mostDocs(share float64, docCount int64) float64 { return math.Ceil(share * float64(docCount)) }

// of returns the term's diagonal entry of W for its idf.
func (w Weighting) of(idf float64) float64 {
	switch w {
	case WeightIDF:
		return idf
	case WeightOne:
		return 1
	default:
		return math.Sqrt(idf)
	}
}

// start sets the origins from the analysis of the text and forgets what the
// memory held before.
func (sel *selection) start(a *Analysis) {
	sel.origins, sel.candidates, sel.entries = sel.origins[:0], sel.candidates[:0], sel.entries[:0]
	for k, term := range a.Terms {
		x := 1 / float64(a.stacked(k))
		if i := slices.IndexFunc(sel.origins, func(o origin) bool { return o.term == term }); i >= 0 {
			sel.origins[i].x += x
			continue
		}
		sel.origins = append(sel.origins, origin{term: term, x: x})
	}
}

// stacked returns how many terms share the position of term k.
func (a *Analysis) stacked(k int) int {
	n := 1
	for i := k - 1; i >= 0 && a.Positions[i] == a.Positions[k]; i-- {
		n++
	}
	for i := k + 1; i < len(a.Positions) && a.Positions[i] == a.Positions[k]; i++ {
		n++
	}
	return n
}

// single reports whether no two terms share a position.
func (a *Analysis) single() bool {
	for i := 1; i < len(a.Positions); i++ {
		if a.Positions[i] == a.Positions[i-1] {
			return false
		}
	}
	return true
}

// propose collects the candidates from the origins' rows and keeps the keep
// best of them by the document frequencies that the rows carry. docs is the
// number of documents those refer to; where it or a frequency is unknown, idf
// counts as 1. Candidates in more than share of docs are passed over.
func (sel *selection) propose(weighting Weighting, docs int64, share float64, keep int) {
	size := len(sel.origins)
	for i := range sel.origins {
		size += sel.origins[i].row.Len()
	}
	sel.byTerm.reset(size)
	weight := func(docFreq int64) float64 {
		if docs == 0 || docFreq == 0 {
			return 1
		}
		return weighting.of(idf(docFreq, docs))
	}
	limit := math.Inf(1)
	if docs > 0 {
		limit = mostDocs(share, docs)
	}
	for i := range sel.origins {
		o := &sel.origins[i]
		xw := o.x * weight(int64(o.row.DocFreq()))
		for n := range o.row.All() {
			if float64(n.DocFreq) > limit {
				continue
			}
			if sel.originOf(n.Term) >= 0 {
				continue
			}
			slot := sel.byTerm.slot(n.Term, sel.candidates)
			if *slot == 0 {
				sel.candidates = append(sel.candidates, candidate{term: n.Term, docFreq: int64(n.DocFreq), id: len(sel.candidates)})
				*slot = len(sel.candidates)
			}
			c := *slot - 1
			sel.entries = append(sel.entries, entry{i, c, float64(n.Similarity)})
			sel.candidates[c].v += xw * float64(n.Similarity)
		}
	}
	for k := range sel.candidates {
		sel.candidates[k].v *= weight(sel.candidates[k].docFreq)
	}
	sel.keepBest(keep)
}

// originOf returns the number of the origin that has the term, -1 for none.
// There are few, and most differ in length or first byte.
func (sel *selection) originOf(term string) int {
	for i := range sel.origins {
		if sel.origins[i].term == term {
			return i
		}
	}
	return -1
}

// A termTable finds candidates by their term: an open hash table that is filled
// once and then reset, at half the cost of a map.
type termTable struct {
	slots []int // 0 is free, k+1 stands for candidate k
	seed  maphash.Seed
}

// reset empties the table and makes room for n terms.
func (t *termTable) reset(n int) {
	size := 1
	for size < 2*n {
		size *= 2
	}
	if cap(t.slots) >= size {
		t.slots = t.slots[:size]
		clear(t.slots)
		return
	}
	t.slots, t.seed = make([]int, size), maphash.MakeSeed()
}

// slot returns the place of term, which is free where candidates lacks it.
func (t *termTable) slot(term string, candidates []candidate) *int {
	mask := uint64(max(len(t.slots)-1, 0))
	for at := maphash.String(t.seed, term) & mask; ; at = (at + 1) & mask {
		if k := t.slots[at]; k == 0 || candidates[k-1].term == term {
			return &t.slots[at]
		}
	}
}

// settle weighs the proposed candidates anew by the live statistics, drops
// those that the index does not hold or holds too often, and keeps the keep
// best in their final order. docFreqs belong to [selection.terms].
func (sel *selection) settle(weighting Weighting, docCount int64, docFreqs []int64, share float64, keep int) {
	for i := range sel.origins {
		o := &sel.origins[i]
		o.idf = idf(docFreqs[i], docCount)
		o.w = weighting.of(o.idf)
	}
	live := docFreqs[len(sel.origins):]
	limit := mostDocs(share, docCount)
	slot := sel.slots()
	for k := range sel.candidates {
		c := &sel.candidates[k]
		c.docFreq, c.v, c.best, c.place = live[k], 0, 0, k
	}
	for _, e := range sel.entries {
		k := slot[e.candidate]
		if k < 0 {
			continue
		}
		c, o := &sel.candidates[k], &sel.origins[e.origin]
		v := o.x * o.w * e.s
		c.v += v
		if v > c.best {
			c.best, c.origin, c.s = v, e.origin, e.s
		}
	}
	for k := range sel.candidates {
		c := &sel.candidates[k]
		c.v *= weighting.of(idf(c.docFreq, docCount))
		if c.docFreq == 0 || float64(c.docFreq) > limit {
			c.v = 0
		}
	}
	sel.keepBest(keep)
}

// settleTermwise settles the selection that the targets of a termwise clause
// share, by what the live statistics say of each of them: as in the engines, a
// term's document frequency is the largest over the fields, and so is the
// number of documents, which it sets for the first target. Sources: Lucene's
// BlendedTermQuery and CombinedFieldQuery.
//
// The added terms are written one by one for each field, where the engine
// multiplies by the idf of that field, so that is noted as well.
func (c *clause) settleTermwise(share float64, keep int) {
	first := &c.targets[0]
	docFreqs, docCount := slices.Clone(first.docFreqs), first.stats.DocCount
	for _, t := range c.targets[1:] {
		docCount = max(docCount, t.stats.DocCount)
		for k, df := range t.docFreqs {
			docFreqs[k] = max(docFreqs[k], df)
		}
	}
	sel := &first.sel
	sel.settle(first.analysis.Weighting, docCount, docFreqs, share, keep)
	all := make([]float64, len(sel.candidates)*len(c.targets))
	for k := range sel.candidates {
		cand := &sel.candidates[k]
		cand.fieldIDFs, all = all[:len(c.targets):len(c.targets)], all[len(c.targets):]
		for i := range c.targets {
			t := &c.targets[i]
			if df := t.docFreqs[len(sel.origins)+cand.place]; df > 0 {
				cand.fieldIDFs[i] = idf(df, t.stats.DocCount)
			}
		}
	}
	first.stats.DocCount = docCount
}

// slots returns, for each candidate number in the entries, where the candidate
// stands now, or -1 where it was dropped.
func (sel *selection) slots() []int {
	n := 0
	for _, e := range sel.entries {
		n = max(n, e.candidate+1)
	}
	slot := make([]int, n)
	for i := range slot {
		slot[i] = -1
	}
	for k := range sel.candidates {
		slot[sel.candidates[k].id] = k
	}
	return slot
}

// terms appends the origins' and the candidates' terms to dst, in this order.
func (sel *selection) terms(dst []string) []string {
	for i := range sel.origins {
		dst = append(dst, sel.origins[i].term)
	}
	for k := range sel.candidates {
		dst = append(dst, sel.candidates[k].term)
	}
	return dst
}

// keepBest keeps the n candidates with the largest v > 0, ordered by
// descending v, ties by term.
func (sel *selection) keepBest(n int) {
	ranks := sel.ranks[:0]
	for k := range sel.candidates {
		if v := sel.candidates[k].v; v > 0 {
			ranks = append(ranks, rank{v, k})
		}
	}
	sel.ranks = ranks
	if n < len(ranks) {
		sel.partition(ranks, n)
		ranks = ranks[:n]
	}
	slices.SortFunc(ranks, sel.compare)
	kept := sel.kept[:0]
	for _, r := range ranks {
		kept = append(kept, sel.candidates[r.candidate])
	}
	sel.candidates, sel.kept = kept, sel.candidates
}

// A rank is a candidate's place in the order, small enough to sort by.
type rank struct {
	v         float64
	candidate int
}

func (sel *selection) compare(a, b rank) int {
	switch {
	case a.v > b.v:
		return -1
	case a.v < b.v:
		return 1
	}
	return strings.Compare(sel.candidates[a.candidate].term, sel.candidates[b.candidate].term)
}

// partition reorders r so that its n first come before all others (quickselect;
// the order is total, so the set is unique).
func (sel *selection) partition(r []rank, n int) {
	for lo, hi := 0, len(r)-1; lo < hi; {
		pivot := r[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for sel.compare(r[i], pivot) < 0 {
				i++
			}
			for sel.compare(r[j], pivot) > 0 {
				j--
			}
			if i <= j {
				r[i], r[j] = r[j], r[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return
		}
	}
}
