package spelling

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// A termTree is a radix tree of sorted terms. A letter is a rune. A node's
// children are sorted by first letter, so a walk visits terms in byte order.
type termTree struct {
	terms   []string
	lengths []uint16   // of the terms, in letters
	hidden  []bool     // by term: it is nobody's neighbor
	nodes   []treeNode // the first is the root
}

// A treeNode adds a label to its parent's prefix; only the root's may be empty.
// The first letter is separate: most walks end there.
type treeNode struct {
	term              int32  // the first term below; it begins with prefix and label
	children, last    uint32 // the children are nodes[children:last]
	first             rune   // the first letter of the label
	from, to          uint16 // the rest of the label is terms[term][from:to]
	shortest, longest uint16 // lengths of the terms below, in letters
	ends              bool   // prefix and label are the term
}

// newTermTree returns the tree of terms, at least one, valid, distinct and in
// ascending byte order, none hidden. It has fewer than two nodes per term.
func newTermTree(terms []string) *termTree {
	t := &termTree{terms: terms, lengths: make([]uint16, len(terms)), hidden: make([]bool, len(terms))}
	for i, term := range terms {
		t.lengths[i] = uint16(utf8.RuneCountInString(term)) //nolint:gosec // at most MaxTermBytes
	}
	t.nodes = make([]treeNode, 1)
	t.grow(0, 0, len(terms), 0)
	return t
}

// grow makes node at and those below it from the terms [lo, hi), at least one.
// All share the first from bytes, the parent's prefix.
func (t *termTree) grow(at, lo, hi, from int) {
	n := treeNode{term: int32(lo), shortest: math.MaxUint16} //nolint:gosec // less than MaxTerms
	to := from + sharedBytes(t.terms[lo][from:], t.terms[hi-1][from:])
	if from < to {
		first, size := firstLetter(t.terms[lo][from:])
		n.first = first
		n.from, n.to = uint16(from+size), uint16(to) //nolint:gosec // at most MaxTermBytes
	}
	if len(t.terms[lo]) == to {
		n.ends = true
		n.shortest = t.lengths[lo]
		n.longest = t.lengths[lo]
		lo++
	}
	first := len(t.nodes)
	var ends []int // of each child's terms
	for at := lo; at < hi; {
		_, size := firstLetter(t.terms[at][to:])
		same := t.terms[at][:to+size]
		at += sort.Search(hi-at, func(i int) bool { return !strings.HasPrefix(t.terms[at+i], same) })
		ends = append(ends, at)
	}
	t.nodes = append(t.nodes, make([]treeNode, len(ends))...)
	n.children, n.last = uint32(first), uint32(len(t.nodes)) //nolint:gosec // less than 2·MaxTerms
	for k, end := range ends {
		t.grow(first+k, lo, end, to)
		lo = end
		n.shortest = min(n.shortest, t.nodes[first+k].shortest)
		n.longest = max(n.longest, t.nodes[first+k].longest)
	}
	t.nodes[at] = n
}

// sharedBytes returns the bytes of whole letters that a and b >= a share.
func sharedBytes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// child returns n's child whose label begins with letter, or nil.
func (t *termTree) child(n *treeNode, letter rune) *treeNode {
	children := t.nodes[n.children:n.last]
	at, found := slices.BinarySearchFunc(children, letter, func(c treeNode, letter rune) int { return cmp.Compare(c.first, letter) })
	if !found {
		return nil
	}
	return &children[at]
}

// firstLetter returns the first letter of a nonempty text, and its size.
func firstLetter(text string) (rune, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text)
}
