package terms

import "slices"

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
