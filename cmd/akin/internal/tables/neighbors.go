package tables

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix"
)

// Neighbors are rows of one matrix.
type Neighbors struct {
	Matrix  string // which one
	Origins []string
	Rows    map[string]simmatrix.Row // by term, the zero Row where there is none
	Forms   map[string]string        // in which people write terms, by term, those that differ
	// Terms are the terms that words stand for, by word, those that differ, and
	// Nearest what is spelled most like a word that stands for none.
	Terms, Nearest map[string]string
}

// termOf returns the term that a word stands for.
func (f *Neighbors) termOf(word string) string { return cmp.Or(f.Terms[word], word) }

// Shown returns the terms that have a row, and the first top neighbors of each.
func (f *Neighbors) Shown(top int) []string {
	all := map[string]bool{}
	for term, row := range f.Rows {
		if !row.IsZero() {
			all[term] = true
		}
		for _, n := range nearest(row, top) {
			all[n.Term] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// nearest returns the first top neighbors of a row.
func nearest(row simmatrix.Row, top int) []simmatrix.Neighbor {
	all := slices.Collect(row.All())
	return all[:min(len(all), top)]
}

// Print prints the first top neighbors of the term of each word.
func (f *Neighbors) Print(out io.Writer, words []string, top int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, word := range words {
		term := f.termOf(word)
		row := f.Rows[term]
		if row.IsZero() {
			hint := ""
			if near := f.Nearest[word]; near != "" {
				hint = "; did you mean " + terminal.Visible(near) + "?"
			}
			fmt.Fprintf(w, "%s  not in %s%s\n", terminal.Visible(word), f.Matrix, hint)
			continue
		}
		other := ""
		if term != word && !f.Rows[word].IsZero() {
			other = fmt.Sprintf("  (%s is a term, too: %s)", terminal.Visible(word), readable(word, f.Forms[word]))
		}
		fmt.Fprintf(w, "%s  %d neighbors in %s  df %d%s\n", readable(term, f.Forms[term]), row.Len(), f.Matrix, row.DocFreq(), other)
		for _, n := range nearest(row, top) {
			fmt.Fprintf(w, "  %s\t%s\tdf %d%s\n",
				readable(n.Term, f.Forms[n.Term]), decimals(float64(n.Similarity)), n.DocFreq, originColumn(f.Origins, n))
		}
	}
	return w.Flush()
}

// A shownTerm is a term in the JSON of "matrix show".
type shownTerm struct {
	Term    string `json:"term"`
	Word    string `json:"word,omitempty"` // that people write, where it is another
	DocFreq uint32 `json:"doc_freq"`
}

type shownNeighbor struct {
	shownTerm

	Similarity float32  `json:"similarity"`
	Origins    []string `json:"origins,omitempty"`
}

type shownRow struct {
	shownTerm

	// Asked is the word that was asked for, where the term is another, and Nearest
	// what is spelled most like it, where there is no term.
	Asked     string          `json:"asked,omitempty"`
	Nearest   string          `json:"nearest,omitempty"`
	Neighbors []shownNeighbor `json:"neighbors"` // null for a term that the matrix lacks
}

// PrintJSON prints the same as Print.
func (f *Neighbors) PrintJSON(out io.Writer, words []string, top int) error {
	result := struct {
		Matrix string     `json:"matrix"`
		Terms  []shownRow `json:"terms"`
	}{Matrix: f.Matrix}
	for _, word := range words {
		term := f.termOf(word)
		row := f.Rows[term]
		shown := shownRow{shownTerm: shownTerm{term, f.Forms[term], row.DocFreq()}, Nearest: f.Nearest[word]}
		if term != word {
			shown.Asked = word
		}
		if !row.IsZero() {
			shown.Neighbors = []shownNeighbor{}
		}
		for _, n := range nearest(row, top) {
			shown.Neighbors = append(shown.Neighbors, shownNeighbor{
				shownTerm{n.Term, f.Forms[n.Term], n.DocFreq}, n.Similarity, originNames(f.Origins, n),
			})
		}
		result.Terms = append(result.Terms, shown)
	}
	return json.NewEncoder(out).Encode(result)
}
