package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

func newMatrixShow() *cobra.Command {
	var flags redisFlags
	var file string
	var top int
	cmd := &cobra.Command{
		Use:   "show TERM...",
		Short: "Show the neighbors of terms",
		Long: `show prints the neighbors of index terms, most similar first, with the similarity and
the document frequency, from a file or from the active version in Redis. Terms are
index terms: what the field's analyzer makes of a word ("rental" may be "rental",
"cars" is "car").`,
		Example: `  akin matrix show --file docs.akin car rental
  akin matrix show --redis redis://127.0.0.1:6379 --name docs car`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name at least one term")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				m, err := readMatrix(file)
				if err != nil {
					return err
				}
				rows := make([]simmatrix.Row, len(args))
				for k, term := range args {
					rows[k] = m.Row(term)
				}
				return showRows(cmd.OutOrStdout(), file, args, rows, top)
			}
			return flags.with(func(admin *rowstore.Admin) error {
				version, rows, err := admin.Rows(cmd.Context(), flags.name, "", args)
				if err != nil {
					return err
				}
				return showRows(cmd.OutOrStdout(), flags.name+"@"+version, args, rows, top)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&file, "file", "", "matrix file to look into instead of Redis")
	cmd.Flags().IntVar(&top, "top", 20, "how many neighbors of each term")
	return cmd
}

// showRows prints the first top neighbors of each term.
func showRows(out io.Writer, source string, terms []string, rows []simmatrix.Row, top int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for k, term := range terms {
		if rows[k].IsZero() {
			fmt.Fprintf(w, "%s\tnot in %s\n", term, source)
			continue
		}
		fmt.Fprintf(w, "%s\t%d neighbors in %s\tdf %d\n", term, rows[k].Len(), source, rows[k].DocFreq())
		shown := 0
		for n := range rows[k].All() {
			if shown == top {
				break
			}
			shown++
			fmt.Fprintf(w, "  %s\t%.4f\tdf %d\n", n.Term, n.Similarity, n.DocFreq)
		}
	}
	return w.Flush()
}
