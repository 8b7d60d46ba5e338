package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/tables"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix/inspect"
)

func newMatrixCheck() *cobra.Command {
	var redis connect.Redis
	asJSON := false
	options := inspect.DefaultOptions()
	cmd := &cobra.Command{
		Use: "check MATRIX", Short: "Check what a matrix says of itself, and print what is in it",
		Long: `check reads a matrix, counts afresh all that its header says of it, and prints both:
whether it is symmetric and dominant (then it is positive definite), the longest row,
the range of the similarities, and the settings it was cut by; what overrides have
changed about those is said and is no fault. Then come the density, the distributions of
similarities and of neighbors, hubs, which are the terms that are neighbors of very
many, and some rows drawn at random. The exit status is 1 where the header says what
does not hold, where no term has a neighbor, and where the file is damaged.

` + matrixHelp,
		Example: `  akin matrix check docs.akin
  akin matrix check --redis redis://127.0.0.1:6379 --samples 20 --seed 7 docs@active`,
		Args: terminal.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := options.Validate(); err != nil {
				return terminal.Usage(err)
			}
			m, err := openMatrix(cmd.Context(), cmd.ErrOrStderr(), args[0], &redis)
			if err != nil {
				return err
			}
			return tables.Report(cmd.OutOrStdout(), asJSON, args[0], inspect.Matrix(m, options))
		},
	}
	redis.RegisterServer(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&options.Hubs, "top-hubs", options.Hubs, "how many hubs: the terms that are neighbors of the most others")
	cmd.Flags().IntVar(&options.Samples, "samples", options.Samples, "how many random rows")
	cmd.Flags().Uint64Var(&options.Seed, "seed", options.Seed, "seed of the random choice; another number gives other rows")
	return cmd
}

func newMatrixDiff() *cobra.Command {
	var redis connect.Redis
	var top int
	asJSON := false
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Show what changed from one matrix to another",
		Long: `diff compares two matrices: their settings, their terms, and the neighbors of the terms
of both. First come the terms whose neighbors changed most, by the weighted Jaccard
distance of the two rows: 0 where they are the same, 1 where they have no neighbor in
common, and in between 1 less the sum of the smaller similarities over the sum of the
larger ones. + is a neighbor that came, - one that went, ~ one whose similarity changed.

A and B: ` + matrixHelp,
		Example: `  akin matrix diff yesterday.akin today.akin
  akin matrix diff --redis redis://127.0.0.1:6379 --top 50 docs@active today.akin`,
		Args: terminal.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return terminal.Usage(fmt.Errorf("top: %d is negative", top))
			}
			a, err := openMatrix(cmd.Context(), cmd.ErrOrStderr(), args[0], &redis)
			if err != nil {
				return err
			}
			b, err := openMatrix(cmd.Context(), cmd.ErrOrStderr(), args[1], &redis)
			if err != nil {
				return err
			}
			d := inspect.Diff(a, b, top)
			return terminal.Print(cmd.OutOrStdout(), asJSON, d, func(out io.Writer) error {
				fmt.Fprintf(out, "%s -> %s\n\n", args[0], args[1])
				return tables.Difference(out, a.Meta(), b.Meta(), d)
			})
		},
	}
	redis.RegisterServer(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&top, "top", 10, "how many of the terms whose neighbors changed most")
	return cmd
}
