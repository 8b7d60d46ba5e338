// Package spelling finds terms that are spelled alike: the matrix of all terms
// a few edits apart ([FromTerms]), and the known word nearest to another one
// ([Words]).
package spelling

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// FromTerms returns the matrix of the terms by the Levenshtein distance of
// their spellings: s_ij by the [Formula], and 0 if the distance is above
// MaxDistance or the lengths differ by more than LengthRatio. Each row has the
// Neighbors largest among the candidates, ties in ascending byte order of the
// term.
//
// It misses no pair: for each term it walks a radix tree of the terms, as far
// as a prefix is within MaxDistance of one of the term's, and terms below can
// get into the row. It takes under 150 bytes per term, and the terms and the
// matrix.
//
// Errors are [simmatrix.ErrNoVocabulary] if there is no term, one that wraps
// [simmatrix.ErrInvalid] for a term that cannot have a row or is repeated, one
// for all options out of range, and that of ctx.
func FromTerms(ctx context.Context, terms []simmatrix.Term, opts Options, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	switch n := len(terms); {
	case n == 0:
		return nil, fmt.Errorf("%w: the list of terms is empty", simmatrix.ErrNoVocabulary)
	case n > simmatrix.MaxTerms:
		return nil, fmt.Errorf("%w: %d terms, at most %d", simmatrix.ErrInvalid, n, simmatrix.MaxTerms)
	}
	sorted := slices.Clone(terms)
	slices.SortFunc(sorted, func(a, b simmatrix.Term) int { return cmp.Compare(a.Text, b.Text) })
	m := &simmatrix.Table{Meta: simmatrix.Meta{Source: opts.Source, Params: opts.params()}}
	for i, t := range sorted {
		if err := simmatrix.CheckTerm(t.Text); err != nil {
			return nil, fmt.Errorf("%w: %w", simmatrix.ErrInvalid, err)
		}
		if i > 0 && sorted[i-1].Text == t.Text {
			return nil, fmt.Errorf("%w: term %q occurs twice", simmatrix.ErrInvalid, t.Text)
		}
		m.Terms = append(m.Terms, t.Text)
		m.DocFreqs = append(m.DocFreqs, t.DocFreq)
	}
	tree := newTermTree(m.Terms)
	for i, t := range m.Terms {
		tree.hidden[i] = opts.Candidate != nil && !opts.Candidate(t)
	}
	var err error
	stage := simmatrix.NewStage(progress, "neighbors", len(m.Terms))
	m.Entries, err = parallel.Rows(ctx, len(m.Terms), 16, false, func() func(i int) []simmatrix.Entry {
		return newEditSearcher(tree, &opts).find
	}, stage)
	if err != nil {
		return nil, err
	}
	return m.Matrix()
}

// A band is the state of comparing a query with a text letter by letter: the
// automaton of Wu and Manber (1992, "Fast text searching allowing errors") for
// whole texts, with only the diagonals within a distance of k. After t letters
// of the text, bit b of lane e says that the first t-k+b letters of the query
// are within distance e of them. Lane e is the 2k+1 bits from laneBits·e on; it
// never has bits outside [k-e, k+e]. A band of 0 says that no continuation of
// the text is within distance k.
type band uint64

const (
	// laneBits are at least 2·MaxDistance+2, so that a bit shifted out of its lane
	// does not get into another.
	laneBits = 12
	// everyLane times a lane is a band with that lane everywhere.
	everyLane band = 1 | 1<<laneBits | 1<<(2*laneBits) | 1<<(3*laneBits) | 1<<(4*laneBits)
	noLetter       = -1
	noTerm         = -1
)

// An editSearcher finds the neighbors of one term, the query, at a time.
type editSearcher struct {
	tree *termTree
	opts *Options
	k    int // MaxDistance

	// The query. Lengths are in letters.
	self              int32
	letters           []rune // with k of noLetter before and 2k+1 after
	length            int
	shortest, longest int // of possible neighbors
	// similarity[d][x] is for distance d to a term of length+x letters, or for x =
	// 0 fewer.
	similarity [MaxDistance + 1][MaxDistance + 1]uint16

	row   []simmatrix.Entry // so far, in ascending column since the last cut
	room  int               // length of row at which cut is called
	floor uint16            // only similarities above it get into the row
	best  bool              // only the largest similarity gets into the row
	// reach[x] is the largest distance at which a term of at most length+x letters
	// is above the floor, or 0; lanes[x] has all bits of the lanes up to it.
	reach [MaxDistance + 1]int
	lanes [MaxDistance + 1]band
}

func newEditSearcher(t *termTree, opts *Options) *editSearcher {
	return &editSearcher{tree: t, opts: opts, k: opts.MaxDistance}
}

// find returns the row of term i, valid until the next call.
func (s *editSearcher) find(i int) []simmatrix.Entry {
	s.self = int32(i) //nolint:gosec // less than MaxTerms
	s.prepare(s.tree.terms[i], 0)
	s.walkAll(false)
	return s.row
}

// near returns the nearest terms of text, above a similarity, for another text
// that is before edits away from it. sameFirst skips terms that begin with
// another letter, which is ten times as fast at two edits.
func (s *editSearcher) near(text string, before int, sameFirst bool, above uint16) []simmatrix.Entry {
	s.self, s.best = noTerm, true
	s.prepare(text, before)
	s.raise(above)
	s.walkAll(sameFirst)
	return s.row
}

func (s *editSearcher) walkAll(sameFirst bool) {
	var start band
	for e := range s.k + 1 {
		start |= (1<<(e+1) - 1) << (s.k + laneBits*e) // 0 to e letters of the query are deleted
	}
	root := &s.tree.nodes[0]
	switch shared := root.to > 0; { // the common beginning of all terms
	case shared && (!sameFirst || root.first == s.letters[s.k]):
		s.enter(root, start, 0)
	case shared: // all begin with another letter
	case sameFirst:
		if child := s.tree.child(root, s.letters[s.k]); child != nil {
			s.enter(child, start, 0)
		}
	default:
		s.walk(root, start, 0)
	}
	s.cut()
}

func (s *editSearcher) prepare(text string, before int) {
	s.letters = append(s.letters[:0], slices.Repeat([]rune{noLetter}, s.k)...)
	for text != "" {
		letter, size := firstLetter(text)
		s.letters, text = append(s.letters, letter), text[size:]
	}
	s.length = len(s.letters) - s.k
	s.letters = append(s.letters, slices.Repeat([]rune{noLetter}, 2*s.k+1)...)
	s.shortest, s.longest = s.length, s.length
	for s.longest < s.length+s.k && s.opts.near(s.longest+1, s.length) {
		s.longest++
	}
	for s.shortest > max(s.length-s.k, 1) && s.opts.near(s.length, s.shortest-1) {
		s.shortest--
	}
	for d := range s.k + 1 {
		for x := range s.k + 1 {
			s.similarity[d][x] = s.opts.units(max(before+max(d, x), 1), s.length+x)
		}
	}
	s.row, s.room = s.row[:0], s.opts.Neighbors
	s.raise(0)
}

// raise sets the floor and what depends on it.
func (s *editSearcher) raise(floor uint16) {
	s.floor = floor
	s.reach, s.lanes = [MaxDistance + 1]int{}, [MaxDistance + 1]band{}
	for x := range s.k + 1 {
		if x > 0 {
			s.reach[x], s.lanes[x] = s.reach[x-1], s.lanes[x-1]
		}
		for d := range s.k + 1 {
			if s.similarity[d][x] > floor {
				s.reach[x] = max(s.reach[x], d)
				s.lanes[x] |= (1<<(2*s.k+1) - 1) << (laneBits * d)
			}
		}
	}
}

// further returns the x of the longest term below a node.
func (s *editSearcher) further(n *treeNode) int { return min(max(int(n.longest)-s.length, 0), s.k) }

// enter offers the terms below a node, given the state before its label.
func (s *editSearcher) enter(n *treeNode, state band, depth int) {
	if int(n.longest) < s.shortest || int(n.shortest) > s.longest {
		return
	}
	if state = s.step(state, depth, n.first) & s.lanes[s.further(n)]; state != 0 {
		s.walk(n, state, depth+1)
	}
}

// walk is enter after the first letter of the label.
func (s *editSearcher) walk(n *treeNode, state band, depth int) {
	x := s.further(n)
	if n.from < n.to {
		for text := s.tree.terms[n.term][n.from:n.to]; text != ""; depth++ {
			letter, size := firstLetter(text)
			if state = s.step(state, depth, letter) & s.lanes[x]; state == 0 {
				return
			}
			text = text[size:]
		}
	}
	if n.ends {
		s.offer(n.term, state, depth)
	}
	for at := n.children; at < n.last && state&s.lanes[x] != 0; at++ {
		s.enter(&s.tree.nodes[at], state, depth)
	}
}

// step returns the state after one more letter of a text of depth letters.
func (s *editSearcher) step(state band, depth int, letter rune) band {
	var same band // bit b: letter equals letter depth-k+b of the query
	for b, r := range s.letters[depth : depth+2*s.k+1] {
		if r == letter {
			same |= 1 << b
		}
	}
	next := state&(same*everyLane) | // the letters are equal,
		state<<laneBits | // or one replaces the other,
		state<<(laneBits-1) // or the text's is inserted,
	for range s.k {
		next |= next << (laneBits + 1) // or the query's are deleted
	}
	return next
}

// offer adds a term to the row, given the state after its depth letters. Terms
// come in ascending order, so one that equals the floor loses.
func (s *editSearcher) offer(term int32, state band, depth int) {
	if term == s.self || s.tree.hidden[term] || depth < s.shortest || depth > s.longest {
		return
	}
	d, whole := 0, s.length-depth+s.k // the bit of the whole query
	for d <= s.k && state&(1<<(laneBits*d+whole)) == 0 {
		d++
	}
	if d > s.k {
		return
	}
	if sim := s.similarity[d][max(depth-s.length, 0)]; sim > s.floor {
		s.row = append(s.row, simmatrix.Entry{Col: uint32(term), Units: sim}) //nolint:gosec // not negative
		if s.best && sim > s.floor+1 {
			s.raise(sim - 1) // others that are equally near still get in
		}
		if len(s.row) == s.room {
			s.cut()
		}
	}
}

// cut sorts the row and keeps its Neighbors largest.
func (s *editSearcher) cut() {
	slices.SortFunc(s.row, simmatrix.CompareEntries)
	if len(s.row) >= s.opts.Neighbors {
		s.row = s.row[:s.opts.Neighbors]
		s.room = 2 * s.opts.Neighbors
		s.raise(s.row[len(s.row)-1].Units)
	}
}
