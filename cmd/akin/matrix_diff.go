package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/inspect"
)

// The numbers of terms and of neighbors of one kind that diff prints.
const (
	diffTerms     = 20
	diffNeighbors = 10
)

func newMatrixDiff() *cobra.Command {
	var flags refFlags
	var options inspect.DiffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what changed from one matrix to another",
		Long: `diff compares two matrices: their settings, their terms, and the neighbors of the terms
of both. First come the terms whose neighbors changed most, by the weighted Jaccard
distance of the two rows: 0 where they are the same, 1 where they have no neighbor in
common, and in between 1 less the sum of the smaller similarities over the sum of the
larger ones. + is a neighbor that came, - one that went, ~ one whose similarity changed.

A and B: ` + matrixHelp,
		Example: `  akin matrix diff yesterday.akin today.akin
  akin matrix diff --redis redis://127.0.0.1:6379 --top 50 docs@active today.akin`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := options.Validate(); err != nil {
				return terminal.Usage(err)
			}
			a, err := openMatrix(cmd.Context(), args[0], &flags)
			if err != nil {
				return err
			}
			b, err := openMatrix(cmd.Context(), args[1], &flags)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s -> %s\n\n", args[0], args[1])
			return printDifference(cmd.OutOrStdout(), a.Meta(), b.Meta(), inspect.Diff(a, b, options))
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&options.Top, "top", 10, "how many of the terms whose neighbors changed most")
	return cmd
}

// printDifference prints what changed between the matrices with the given
// headers.
func printDifference(out io.Writer, a, b simmatrix.Meta, d *inspect.Difference) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printSettings(w, a, b)
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

// printSettings prints what the headers say differently of the making.
func printSettings(w io.Writer, a, b simmatrix.Meta) {
	changed := func(name, from, to string) {
		if from != to {
			fmt.Fprintf(w, "%s\t%s -> %s\n", name, orNone(from), orNone(to))
		}
	}
	changed("source", a.Source, b.Source)
	names := maps.Clone(a.Params)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, b.Params)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		changed("  "+terminal.Visible(name), a.Params[name], b.Params[name])
	}
	changed("origins", strings.Join(a.Origins, ", "), strings.Join(b.Origins, ", "))
	changed("documents", known(a.Docs), known(b.Docs))
	changed("symmetric", strconv.FormatBool(a.Symmetric), strconv.FormatBool(b.Symmetric))
	changed("dominant", strconv.FormatBool(a.Dominant), strconv.FormatBool(b.Dominant))
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return terminal.Visible(value)
}

func printTerms(out io.Writer, what string, terms []string) {
	if len(terms) == 0 {
		return
	}
	shown := make([]string, 0, diffTerms)
	for _, term := range terms[:min(len(terms), diffTerms)] {
		shown = append(shown, terminal.Visible(term))
	}
	more := ""
	if len(terms) > diffTerms {
		more = fmt.Sprintf(" and %d more", len(terms)-diffTerms)
	}
	fmt.Fprintf(out, "\n%s: %s%s\n", what, strings.Join(shown, ", "), more)
}

func printChange(w io.Writer, c inspect.RowChange) {
	df := fmt.Sprintf("df %d", c.To)
	if c.From != c.To {
		df = fmt.Sprintf("df %d -> %d", c.From, c.To)
	}
	fmt.Fprintf(w, "\n%s\tdistance %.4f\t%s\n", terminal.Visible(c.Term), c.Distance, df)
	some := func(mark string, total int, line func(k int)) {
		for k := range min(total, diffNeighbors) {
			line(k)
		}
		if total > diffNeighbors {
			fmt.Fprintf(w, "  %s and %d more\n", mark, total-diffNeighbors)
		}
	}
	neighbor := func(mark string, n simmatrix.Neighbor) {
		fmt.Fprintf(w, "  %s %s\t%s\t\n", mark, terminal.Visible(n.Term), decimals(float64(n.Similarity)))
	}
	some("+", len(c.Gained), func(k int) { neighbor("+", c.Gained[k]) })
	some("-", len(c.Lost), func(k int) { neighbor("-", c.Lost[k]) })
	some("~", len(c.Changed), func(k int) {
		n := c.Changed[k]
		fmt.Fprintf(w, "  ~ %s\t%s -> %s\t\n", terminal.Visible(n.Term), decimals(float64(n.From)), decimals(float64(n.To)))
	})
}
