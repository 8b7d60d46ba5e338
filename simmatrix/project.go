package simmatrix

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// ProjectOptions are the settings of [Project].
type ProjectOptions struct {
	// IndexTerms gives for each word the index terms that the field's
	// analyzer makes of it.
	IndexTerms map[string][]string
	// DocFreqs gives the document frequency of each index term in the field.
	// A term that it lacks keeps its row, for searches that use it, but is no
	// one's neighbor, since no document has it. nil is unknown: all terms
	// are kept, with frequency 0.
	DocFreqs map[string]uint32
	// Docs is N, the number of documents that DocFreqs was counted in.
	Docs uint64
}

// ProjectCounts tell what became of the words of a matrix in [Project].
type ProjectCounts struct {
	// Words is the number of words of the matrix: the sum of the next four.
	Words int
	// Kept is the number of words that became a term of their own.
	Kept int
	// Merged is the number of words that fell on the term of an earlier one.
	Merged int
	// MultiToken is the number of words left out because the analyzer makes
	// more than one term of them.
	MultiToken int
	// NoToken is the number of words left out because the analyzer makes no
	// term of them, as of stop words, or IndexTerms lacks them.
	NoToken int
	// Unused is the number of terms that no document has, 0 without DocFreqs.
	Unused int
}

// Project turns a matrix over surface words into one over index terms:
//
//	s_tu = max s_ij over the words i that give t and j that give u, t ≠ u
//
// with at most as many neighbors in a row as the longest row of m. Similarities
// that words have to others of the same index term go.
func Project(m *Matrix, opts ProjectOptions) (*Matrix, ProjectCounts, error) {
	p, counts := newProjection(m, opts)
	out := &Matrix{
		meta:     Meta{Source: m.meta.Source, Params: maps.Clone(m.meta.Params), Origins: m.meta.Origins, Docs: opts.Docs},
		terms:    p.terms,
		docFreqs: make([]uint32, len(p.terms)),
		entries:  newEntries(len(p.terms), m.origins != nil),
	}
	usable := make([]bool, len(p.terms))
	for t, term := range p.terms {
		out.docFreqs[t] = opts.DocFreqs[term]
		usable[t] = opts.DocFreqs == nil || out.docFreqs[t] > 0
		if !usable[t] {
			counts.Unused++
		}
	}
	best := make([]entry, len(p.terms)) // s_tu of the current t by u
	for t := range p.terms {
		row := p.mergedRow(uint32(t), usable, best)
		slices.SortFunc(row, compareEntries)
		out.appendRow(row[:min(len(row), int(m.meta.MaxNeighbors))])
	}
	if err := out.finish(); err != nil {
		return nil, counts, fmt.Errorf("%w: the analyzer's terms: %w", ErrInvalid, err)
	}
	return out, counts, nil
}

// leftOut is the term of a word that gives none.
const leftOut = math.MaxUint32

// A projection maps the words of a matrix to index terms.
type projection struct {
	from   *Matrix
	terms  []string   // ascending
	termOf []uint32   // by word, leftOut where it gives no term
	words  [][]uint32 // by term
}

func newProjection(m *Matrix, opts ProjectOptions) (*projection, ProjectCounts) {
	counts := ProjectCounts{Words: m.Len()}
	indices := make(map[string]uint32)
	for _, w := range m.terms {
		switch tokens := opts.IndexTerms[w]; len(tokens) {
		case 0:
			counts.NoToken++
		case 1:
			indices[tokens[0]] = leftOut
		default:
			counts.MultiToken++
		}
	}
	p := &projection{from: m, terms: slices.Sorted(maps.Keys(indices)), termOf: make([]uint32, m.Len())}
	for t, term := range p.terms {
		indices[term] = uint32(t)
	}
	p.words = make([][]uint32, len(p.terms))
	for i, w := range m.terms {
		p.termOf[i] = leftOut
		if tokens := opts.IndexTerms[w]; len(tokens) == 1 {
			t := indices[tokens[0]]
			p.termOf[i] = t
			p.words[t] = append(p.words[t], uint32(i))
		}
	}
	counts.Kept = len(p.terms)
	counts.Merged = counts.Words - counts.NoToken - counts.MultiToken - counts.Kept
	return p, counts
}

// mergedRow returns the entries of term t in no order. best is all zero, before
// and after. An entry comes from all that its pairs of words come from.
func (p *projection) mergedRow(t uint32, usable []bool, best []entry) []entry {
	var row []entry
	for _, i := range p.words[t] {
		cols, sims := p.from.row(int(i))
		for k, col := range cols {
			u := p.termOf[col]
			if u == leftOut || u == t || !usable[u] {
				continue
			}
			if best[u].sim == 0 {
				row = append(row, entry{col: u})
			}
			best[u].sim = max(best[u].sim, sims[k])
			best[u].origins |= p.from.originsAt(int(i), k)
		}
	}
	for k := range row {
		u := row[k].col
		row[k].sim, row[k].origins = best[u].sim, best[u].origins
		best[u] = entry{}
	}
	return row
}
