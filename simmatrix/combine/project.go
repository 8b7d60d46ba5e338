package combine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// ProjectOptions are the settings of [Project].
type ProjectOptions struct {
	// IndexTerms has what the field's analyzer makes of each word or expression:
	// the terms of a matrix that stand for it, see [simmatrix.Tokens.Readings].
	IndexTerms map[string][]string
	// DocFreqs has the document frequency of each index term. A term not in it
	// keeps its row and is nobody's neighbor. nil keeps all.
	DocFreqs map[string]uint32
	Docs     uint64 // N, the number of documents that DocFreqs was counted in
	// MinExpression is the least similarity of expressions as neighbors. They do not
	// compete for places with other neighbors in a search.
	MinExpression float64
}

// ProjectCounts are what became of a matrix's words in [Project].
type ProjectCounts struct {
	Words       int // in the matrix
	LeftOut     int // words without a term
	Terms       int // of the words, without expressions
	Expressions int // of the words
	Unused      int // terms and expressions that no document has; 0 without DocFreqs
}

// Project turns a matrix over surface words, and expressions of them, into one
// over index terms:
//
//	s_tu = max s_ij over words i with the term t and j with the term u, but not t
//
// The terms of expressions that documents have get rows, too, so that words
// can be near them. A row has at most as many neighbors as the longest row of
// m, or as many more as a word has terms. The form of a term is its word in
// most documents, with its other words.
func Project(matrix *simmatrix.Matrix, opts ProjectOptions) (*simmatrix.Matrix, ProjectCounts, error) {
	m := matrix.Table()
	p, counts := newProjection(m, opts)
	out := &simmatrix.Table{
		Meta:     simmatrix.Meta{Source: m.Meta.Source, Params: maps.Clone(m.Meta.Params), Origins: m.Meta.Origins, Docs: opts.Docs},
		Terms:    p.terms,
		DocFreqs: make([]uint32, len(p.terms)),
		Entries:  simmatrix.NewEntries(len(p.terms), 0, m.Origins != nil),
	}
	usable := make([]bool, len(p.terms))
	for t, term := range p.terms {
		out.DocFreqs[t] = opts.DocFreqs[term]
		usable[t] = opts.DocFreqs == nil || opts.InDocuments(term)
		if !usable[t] {
			counts.Unused++
		}
	}
	best := make([]simmatrix.Entry, len(p.terms)) // s_tu of the current t, by u
	for t := range p.terms {
		row := p.mergedRow(uint32(t), usable, best)
		slices.SortFunc(row, simmatrix.CompareEntries)
		out.AppendRow(row[:min(len(row), int(m.Meta.MaxNeighbors)*p.most, simmatrix.MaxNeighbors)])
	}
	out.TakeForms(func(t int) string {
		words := slices.Clone(p.words[t])
		if len(words) == 0 { // of an expression
			return ""
		}
		slices.SortStableFunc(words, func(a, b uint32) int { return cmp.Compare(m.DocFreqs[b], m.DocFreqs[a]) })
		var forms []string
		for _, w := range words {
			forms = append(forms, m.Written(m.Terms[w]))
		}
		_, note := simmatrix.SplitForm(m.Form(m.Terms[words[0]]))
		switch written := forms[0]; {
		case simmatrix.IsExpression(p.terms[t]):
			return simmatrix.WithNote(written, note)
		case m.DocFreqs[words[0]] == 0: // unknown which one people write
			return simmatrix.WithForms(p.terms[t], "", forms...)
		default:
			return simmatrix.WithForms(p.terms[t], written, forms...)
		}
	})
	projected, err := out.Matrix()
	if err != nil {
		return nil, counts, fmt.Errorf("the analyzer's terms: %w", err)
	}
	return projected, counts, nil
}

// InDocuments reports whether documents have a term, of an expression all of
// its terms.
func (o *ProjectOptions) InDocuments(term string) bool {
	if !simmatrix.IsExpression(term) {
		return o.DocFreqs[term] > 0
	}
	return !slices.ContainsFunc(simmatrix.ExpressionTerms(term), func(t string) bool { return t != "" && o.DocFreqs[t] == 0 })
}

type projection struct {
	from    *simmatrix.Table
	terms   []string   // ascending
	termsOf [][]uint32 // by word
	words   [][]uint32 // by term
	most    int        // terms of a word
	least   uint16     // similarity of an expression
}

func newProjection(m *simmatrix.Table, opts ProjectOptions) (*projection, ProjectCounts) {
	counts := ProjectCounts{Words: len(m.Terms)}
	indices := make(map[string]uint32)
	for _, w := range m.Terms {
		if len(opts.IndexTerms[w]) == 0 {
			counts.LeftOut++
		}
		for _, term := range opts.IndexTerms[w] {
			indices[term] = 0
		}
	}
	for _, term := range slices.Collect(maps.Keys(indices)) {
		if !simmatrix.IsExpression(term) {
			counts.Terms++
			continue
		}
		counts.Expressions++
		for part := range simmatrix.WordsOf(term) {
			if opts.DocFreqs[part] > 0 {
				indices[part] = 0
			}
		}
	}
	p := &projection{from: m, terms: slices.Sorted(maps.Keys(indices)), termsOf: make([][]uint32, len(m.Terms)), most: 1, least: simmatrix.ToUnits(opts.MinExpression)}
	for t, term := range p.terms {
		indices[term] = uint32(t)
	}
	p.words = make([][]uint32, len(p.terms))
	for i, w := range m.Terms {
		for _, term := range opts.IndexTerms[w] {
			t := indices[term]
			p.termsOf[i] = append(p.termsOf[i], t)
			p.words[t] = append(p.words[t], uint32(i))
		}
		p.most = max(p.most, len(p.termsOf[i]))
	}
	return p, counts
}

// mergedRow returns the entries of term t, unordered. best is all zero, before
// and after. An entry has all origins of its pairs of words.
func (p *projection) mergedRow(t uint32, usable []bool, best []simmatrix.Entry) []simmatrix.Entry {
	var row []simmatrix.Entry
	for _, i := range p.words[t] {
		cols, sims := p.from.Row(int(i))
		for k, col := range cols {
			if slices.Contains(p.termsOf[col], t) {
				continue
			}
			for _, u := range p.termsOf[col] {
				if !usable[u] || sims[k] < p.least && simmatrix.IsExpression(p.terms[u]) {
					continue
				}
				if best[u].Units == 0 {
					row = append(row, simmatrix.Entry{Col: u})
				}
				best[u].Units = max(best[u].Units, sims[k])
				best[u].Origins |= p.from.OriginsAt(int(i), k)
			}
		}
	}
	for k := range row {
		u := row[k].Col
		row[k].Units, row[k].Origins = best[u].Units, best[u].Origins
		best[u] = simmatrix.Entry{}
	}
	return row
}
