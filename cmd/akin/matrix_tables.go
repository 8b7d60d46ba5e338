package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/store"
)

const sampleNeighbors = 10

// printInspection prints a report on a matrix.
func printInspection(out io.Writer, name string, r *combine.Inspection) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n\nsource\t%s\n", name, cli.Visible(r.Meta.Source))
	for _, key := range slices.Sorted(maps.Keys(r.Meta.Params)) {
		fmt.Fprintf(w, "  %s\t%s\n", cli.Visible(key), cli.Visible(r.Meta.Params[key]))
	}
	fmt.Fprintf(w, "documents\t%s\n", known(r.Meta.Docs))
	fmt.Fprintf(w, "terms\t%d, of which %d without document frequency\n", r.Meta.Terms, r.Rows.NoDocFreq)
	if r.Meta.Forms > 0 {
		fmt.Fprintf(w, "forms\t%d terms that people write in other forms\n", r.Meta.Forms)
	}
	fmt.Fprintf(w, "neighbors\t%d, %d rows without any\n", r.Meta.NonZeros, r.Rows.Empty)
	for _, o := range r.Entries.Origins {
		fmt.Fprintf(w, "  from %s\t%d\n", cli.Visible(o.Name), o.Entries)
	}
	percent := func(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
	fmt.Fprintf(w, "density\t%s, the diagonal counted\n", percent(r.Density))
	oneWay, largest := percent(float64(r.Pairs.OneWay)/float64(max(r.Pairs.All, 1))), ""
	if r.Rows.LargestSumTerm != "" {
		largest = " of " + cli.Visible(r.Rows.LargestSumTerm)
	}
	fmt.Fprintf(w, "pairs\t%d, %s one way only, %d unequal\n", r.Pairs.All, oneWay, r.Pairs.Unequal)
	fmt.Fprintf(w, "row sums\tat most %.5f%s, %d rows at 1 or above\n", r.Rows.LargestSum, largest, r.Rows.NotDominant)
	fmt.Fprintf(w, "saturated\t%d rows have a neighbor with a similarity of 0.99 or more\n", r.Rows.Saturated)
	fmt.Fprintf(w, "symmetric\t%t\ndominant\t%t\nchecksum\t%s\n", r.Meta.Symmetric, r.Meta.Dominant, r.Checksum)
	fmt.Fprintln(w, "\nDISTRIBUTION\tMIN\t10 %\t25 %\t50 %\t75 %\t90 %\t99 %\tMAX\tMEAN")
	distribution := func(name string, d combine.Distribution, format func(v float64) string) {
		fmt.Fprint(w, name)
		for _, v := range []float64{d.Min, d.P10, d.P25, d.Median, d.P75, d.P90, d.P99, d.Max} {
			fmt.Fprint(w, "\t"+format(v))
		}
		fmt.Fprintf(w, "\t%s\n", decimals(d.Mean))
	}
	whole := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	distribution("similarity", r.Entries.Similarities, decimals)
	distribution("neighbors of a term", r.Rows.Lengths, whole)
	distribution("rows with a term", r.Hubs.NeighborOf, whole)
	fmt.Fprint(w, "\nHUBS\tDF\tROWS\t\n")
	for _, h := range r.Hubs.Top {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s of all\n", cli.Visible(h.Term), h.DocFreq, h.Rows, percent(float64(h.Rows)/float64(r.Meta.Terms)))
	}
	for _, row := range r.Samples {
		fmt.Fprintf(w, "\n%s\t%s\tdf %d\n", cli.Visible(row.Term), counted(len(row.Neighbors), "neighbor"), row.DocFreq)
		for _, n := range row.Neighbors[:min(len(row.Neighbors), sampleNeighbors)] {
			fmt.Fprintf(w, "  %s\t%s\tdf %d%s\n", cli.Visible(n.Term), decimals(float64(n.Similarity)), n.DocFreq, originColumn(originNames(r.Meta.Origins, n)))
		}
		if more := len(row.Neighbors) - sampleNeighbors; more > 0 {
			fmt.Fprintf(w, "  and %d more\n", more)
		}
	}
	return w.Flush()
}

// known returns a number, 0 as unknown.
func known(n uint64) string {
	if n == 0 {
		return "unknown"
	}
	return strconv.FormatUint(n, 10)
}

// How many terms and neighbors of one kind diff prints.
const diffTerms, diffNeighbors = 20, 10

// printDifference prints what changed between two matrices with these headers.
func printDifference(out io.Writer, a, b simmatrix.Meta, d *combine.Difference) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	setting := func(name, from, to string) {
		if from != to {
			fmt.Fprintf(w, "%s\t%s -> %s\n", name, cli.Visible(cmp.Or(from, "none")), cli.Visible(cmp.Or(to, "none")))
		}
	}
	setting("source", a.Source, b.Source)
	names := map[string]string{}
	maps.Copy(names, a.Params)
	maps.Copy(names, b.Params)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		setting("  "+cli.Visible(name), a.Params[name], b.Params[name])
	}
	setting("origins", strings.Join(a.Origins, ", "), strings.Join(b.Origins, ", "))
	setting("documents", known(a.Docs), known(b.Docs))
	setting("symmetric", strconv.FormatBool(a.Symmetric), strconv.FormatBool(b.Symmetric))
	setting("dominant", strconv.FormatBool(a.Dominant), strconv.FormatBool(b.Dominant))
	fmt.Fprintf(w, "terms\t%d -> %d, %d added, %d removed, %d in both\n", a.Terms, b.Terms, len(d.Added), len(d.Removed), d.Common)
	fmt.Fprintf(w, "neighbors\t%d -> %d\n", a.NonZeros, b.NonZeros)
	fmt.Fprintf(w, "rows changed\t%d of %d, mean distance %.4f\n", d.RowsChanged, d.Common, d.MeanDistance)
	fmt.Fprintf(w, "df changed\t%d of %d\n", d.DocFreqsChanged, d.Common)
	if err := w.Flush(); err != nil {
		return err
	}
	printTerms(out, "added", d.Added)
	printTerms(out, "removed", d.Removed)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range d.Top {
		printChange(w, c)
	}
	return w.Flush()
}

func printTerms(out io.Writer, what string, terms []string) {
	if len(terms) == 0 {
		return
	}
	more := ""
	if len(terms) > diffTerms {
		more = fmt.Sprintf(" and %d more", len(terms)-diffTerms)
	}
	fmt.Fprintf(out, "\n%s: %s%s\n", what, visibles(terms[:min(len(terms), diffTerms)]), more)
}

func printChange(w io.Writer, c combine.RowChange) {
	df := fmt.Sprintf("df %d", c.To)
	if c.From != c.To {
		df = fmt.Sprintf("df %d -> %d", c.From, c.To)
	}
	fmt.Fprintf(w, "\n%s\tdistance %.4f\t%s\n", cli.Visible(c.Term), c.Distance, df)
	some := func(mark string, total int, line func(k int)) {
		for k := range min(total, diffNeighbors) {
			line(k)
		}
		if total > diffNeighbors {
			fmt.Fprintf(w, "  %s and %d more\n", mark, total-diffNeighbors)
		}
	}
	neighbor := func(mark string, n simmatrix.Neighbor) {
		fmt.Fprintf(w, "  %s %s\t%s\t\n", mark, cli.Visible(n.Term), decimals(float64(n.Similarity)))
	}
	some("+", len(c.Gained), func(k int) { neighbor("+", c.Gained[k]) })
	some("-", len(c.Lost), func(k int) { neighbor("-", c.Lost[k]) })
	some("~", len(c.Changed), func(k int) {
		n := c.Changed[k]
		fmt.Fprintf(w, "  ~ %s\t%s -> %s\t\n", cli.Visible(n.Term), decimals(float64(n.From)), decimals(float64(n.To)))
	})
}

// decimals returns a number with four decimals, a small one with three digits.
func decimals(v float64) string {
	digits := 4
	if v > 0 && v < 0.01 {
		digits = min(2-int(math.Floor(math.Log10(v))), 8)
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// counted returns a number of things, as in "1 neighbor".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// readable returns a term behind the word for it; "" if that is the same.
func readable(term, word string) string {
	if word == "" {
		return cli.Visible(term)
	}
	return cli.Visible(word) + " (" + cli.Visible(term) + ")"
}

// noteColumn returns a note behind a separator, "" without any.
func noteColumn(separator, note string) string {
	if note == "" {
		return ""
	}
	return separator + cli.Visible(note)
}

// originColumn returns the origins of an entry as a column, "" without any.
func originColumn(names []string) string {
	if names == nil {
		return ""
	}
	return "\t" + visibles(names)
}

func visibles(texts []string) string {
	shown := make([]string, len(texts))
	for k, text := range texts {
		shown[k] = cli.Visible(text)
	}
	return strings.Join(shown, ", ")
}

func originNames(origins []string, n simmatrix.Neighbor) []string {
	var names []string
	for k, name := range origins {
		if n.Origins>>k&1 == 1 {
			names = append(names, name)
		}
	}
	return simmatrix.DescribeOrigins(names)
}

// printVersions prints versions of a matrix in Redis, newest first.
func printVersions(out io.Writer, asJSON bool, versions []store.Version) error {
	type listed struct {
		store.Version

		ID     string `json:"version"`
		Active bool   `json:"active"`
	}
	all := make([]listed, 0, len(versions))
	for _, v := range versions {
		id, active := v.ID, v.Active
		v.Frequent = nil // only for proxies
		all = append(all, listed{v, id, active})
	}
	return cli.Print(out, asJSON, all, func(out io.Writer) error {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\tVERSION\tPUSHED\tBY\tTERMS\tNEIGHBORS\tDOCS\tCHECKSUM\tSOURCE")
		for i := range all {
			v, mark := &all[i], ""
			if v.Active {
				mark = "*"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%.12s\t%s\n", mark, v.ID, v.Pushed.UTC().Format(time.RFC3339), v.By,
				v.Terms, v.NonZeros, v.Docs, v.Checksum, v.Source)
		}
		return w.Flush()
	})
}

// wordNeighbors are the rows of a matrix for some words.
type wordNeighbors struct {
	Matrix  string     `json:"matrix"`            // name of the matrix
	Vectors string     `json:"vectors,omitempty"` // see [simmatrix.Meta.Vectors]
	Rows    []shownRow `json:"terms"`
}

type shownTerm struct {
	Term    string `json:"term"`
	Word    string `json:"word,omitempty"` // as people write it, if different
	Note    string `json:"note,omitempty"` // where an expression comes from
	DocFreq uint32 `json:"doc_freq"`
}

func newShownTerm(m *simmatrix.Matrix, term string, docFreq uint32) shownTerm {
	written, note := simmatrix.SplitForm(m.Form(term))
	return shownTerm{term, written, note, docFreq}
}

type shownNeighbor struct {
	shownTerm

	Similarity float32  `json:"similarity"`
	Origins    []string `json:"origins,omitempty"`
}

type shownRow struct {
	shownTerm

	// Asked is the word that was asked for, if it differs from the term. Nearest
	// is the term spelled most like it, if there is no term.
	Asked     string          `json:"asked,omitempty"`
	Nearest   string          `json:"nearest,omitempty"`
	Neighbors []shownNeighbor `json:"neighbors"` // the first; null if the matrix lacks the term

	all int    // number of all neighbors
	too string // Asked as a term of its own, "" if it is none
}

// findNeighbors returns the first top neighbors of words in the matrix called
// name: of a term that analyzed has for a word, or else of that of
// [simmatrix.LookUp].
func findNeighbors(name string, m *simmatrix.Matrix, words []string, analyzed map[string][]string, top int) *wordNeighbors {
	meta := m.Meta()
	found := &wordNeighbors{Matrix: name, Vectors: meta.Vectors()}
	for _, word := range words {
		var term, nearest string
		if at := slices.IndexFunc(analyzed[word], m.Has); at >= 0 {
			term = analyzed[word][at]
		} else {
			term, nearest = simmatrix.LookUp(word, m.TermsOf(word, strings.ToLower(word)), m.Nearest)
		}
		row := m.Row(term)
		shown := shownRow{shownTerm: newShownTerm(m, term, row.DocFreq()), Nearest: nearest, all: row.Len()}
		if term != word {
			shown.Asked = word
			if analyzed == nil && !m.Row(word).IsZero() {
				written, _ := simmatrix.SplitForm(m.Form(word))
				shown.too = readable(word, written)
			}
		}
		if !row.IsZero() {
			shown.Neighbors = []shownNeighbor{}
		}
		for n := range row.All() {
			if len(shown.Neighbors) == top {
				break
			}
			shown.Neighbors = append(shown.Neighbors, shownNeighbor{
				newShownTerm(m, n.Term, n.DocFreq), n.Similarity, originNames(m.Meta().Origins, n),
			})
		}
		found.Rows = append(found.Rows, shown)
	}
	return found
}

// print prints a table.
func (f *wordNeighbors) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if f.Vectors != "" {
		fmt.Fprintf(w, "%s  %s\n", f.Matrix, f.Vectors)
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		word := cli.Visible(cmp.Or(r.Asked, r.Term))
		if r.Neighbors == nil {
			hint := ""
			if r.Nearest != "" {
				hint = "; did you mean " + cli.Visible(r.Nearest) + "?"
			}
			fmt.Fprintf(w, "%s  not in %s%s\n", word, f.Matrix, hint)
			continue
		}
		other := ""
		if r.too != "" {
			other = fmt.Sprintf("  (%s is a term, too: %s)", word, r.too)
		}
		fmt.Fprintf(w, "%s  %s in %s  df %d%s%s\n", readable(r.Term, r.Word), counted(r.all, "neighbor"), f.Matrix, r.DocFreq, other, noteColumn("  ", r.Note))
		for _, n := range r.Neighbors {
			fmt.Fprintf(w, "  %s\t%s\tdf %d%s\n", cli.Visible(cmp.Or(n.Word, n.Term)), decimals(float64(n.Similarity)), n.DocFreq, originColumn(n.Origins)+noteColumn("\t", n.Note))
		}
	}
	return w.Flush()
}
