package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
)

func newMatrix() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "matrix", Short: "Build, push and inspect term-similarity matrices",
		Long: `A matrix has, for each term of a field, the terms most similar to it. You build it
into a file. akin can serve the file, or you push it to Redis as a new version. All
proxies use a version within a second of its activation.`,
		Example: `  akin matrix build --cluster http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs --activate docs.akin
  akin matrix show docs.akin car`,
	}, newMatrixBuild(), newMatrixPush(), newMatrixList(), newMatrixActivate(), newMatrixRollback(),
		newMatrixPrune(), newMatrixShow(), newMatrixCheck(), newMatrixDiff(), newMatrixLearn(), newMatrixSweep(),
		newMatrixExport())
}

func newMatrixExport() *cobra.Command {
	var redis cli.Redis
	var out string
	cmd := &cobra.Command{
		Use: "export MATRIX --out FILE", Short: "Write a matrix as text for other programs, or from Redis into a file",
		Long: `export writes a line for each pair: TERM, NEIGHBOR and SIMILARITY separated by tabs, as
"matrix build --from-tsv" reads them. Expressions have blanks between their words. The
text has no document frequencies and no terms without neighbors. If the name of FILE ends in .akin, export writes a matrix file instead,
byte for byte the one that was pushed.

` + cli.MatrixHelp,
		Example: `  akin matrix export --out docs.tsv docs.akin
  akin matrix export --redis redis://127.0.0.1:6379 --out served.akin docs@active
  akin matrix export --redis redis://127.0.0.1:6379 --out - docs@active | grep car`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != cli.Stdout {
				if _, err := os.Stat(args[0]); err == nil && cli.Same(out, args[0]) {
					return cli.Usage(fmt.Errorf("%s is the matrix to export: choose another --out", out))
				}
				if err := cli.CheckOut(out); err != nil {
					return cli.Usage(err)
				}
			}
			m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			switch {
			case out == cli.Stdout:
				err = source.WriteTSV(cmd.OutOrStdout(), m)
			case filepath.Ext(out) == ".akin":
				err = cli.WriteMatrix(cmd.Context(), out, m)
			default:
				err = cli.Write(cmd.Context(), out, func(w io.Writer) error { return source.WriteTSV(w, m) })
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			meta := m.Meta()
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d terms, %d neighbors\n", args[0], meta.Terms, meta.NonZeros)
			return nil
		},
	}
	redis.RegisterServer(cmd)
	new(cli.Config).Register(cmd, &redis)
	cmd.Flags().StringVar(&out, "out", "", "file to write, - for standard output (required)")
	return cmd
}

func newMatrixCheck() *cobra.Command {
	var redis cli.Redis
	asJSON, definite := false, false
	cmd := &cobra.Command{
		Use: "check MATRIX", Short: "Check that a matrix is intact, and print what it contains",
		Long: `check reads a matrix and prints the settings it was made with, the density, whether it
is symmetric and dominant (then it is positive definite), the distributions of
similarities and of neighbors, hubs (terms that are neighbors of very many), and some
random rows. The exit status is 1 if the file is damaged, if its header is wrong, or if
no term has a neighbor.

With --definite it also says whether the mean of S and its transpose is positive
definite: then lengths are real whatever weights are, and if S is symmetric no text has a
higher soft cosine with another than with itself. If not, it names the term at which
Cholesky's method fails. If it is, it says how many entries the factor has for each of S.
That takes up to ` + strconv.Itoa(definiteGiB) + ` GiB and some ten minutes; what needs more is unknown.

` + cli.MatrixHelp,
		Example: `  akin matrix check docs.akin
  akin matrix check --definite docs.akin
  akin matrix check --redis redis://127.0.0.1:6379 docs@active`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			r := struct {
				*combine.Inspection

				Definite *definiteness `json:"positive_definite,omitempty"`
			}{Inspection: combine.Inspect(m)}
			if definite {
				r.Definite, err = definiteOf(cmd.Context(), m, definiteGiB<<30, definiteProducts)
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			}
			err = cli.Print(cmd.OutOrStdout(), asJSON, r, func(out io.Writer) error {
				if err := printInspection(out, args[0], r.Inspection); err != nil || !definite {
					return err
				}
				return r.Definite.report(out, r.Meta.Terms)
			})
			if warning := crowdingWarning(m); warning != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", warning)
			}
			if err == nil && r.Meta.NonZeros == 0 {
				err = fmt.Errorf("%s: no term has a neighbor: searches would find nothing more with this matrix", args[0])
			}
			return err
		},
	}
	redis.RegisterServer(cmd)
	new(cli.Config).Register(cmd, &redis)
	cmd.Flags().BoolVar(&definite, "definite", false, "say whether the matrix is positive definite, or at which term it is not")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// crowdingWarning is [simmatrix.Meta.CrowdingWarning], also for a matrix of an
// older akin, by its rows: their similarities of about these neighbors are as
// large, or larger where a language model is mixed in.
func crowdingWarning(m *simmatrix.Matrix) string {
	meta := m.Meta()
	_, known := meta.Params[simmatrix.CrowdingParam]
	if _, learned := meta.Params["context_power"]; !learned || known {
		return meta.CrowdingWarning()
	}
	crowd := learn.Crowd(m)
	if crowd <= learn.LargestCrowd {
		return ""
	}
	return fmt.Sprintf("the 30th neighbor of a word has a similarity of %.2f on average, and searches get worse above %v: build it again, "+
		"this akin takes as many dimensions as the documents need", crowd, learn.LargestCrowd)
}

func newMatrixDiff() *cobra.Command {
	var redis cli.Redis
	asJSON := false
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Show the changes from one matrix to another",
		Long: `diff compares two matrices: their settings, their terms, and the neighbors of the terms
of both. The terms whose neighbors changed most come first, by the weighted Jaccard
distance of the two rows: 1 minus the sum of the smaller similarities divided by the sum
of the larger ones. It is 0 for equal rows and 1 for rows without a common neighbor. +
marks a new neighbor, - a removed one, ~ a changed similarity.

A and B: ` + cli.MatrixHelp,
		Example: `  akin matrix diff yesterday.akin today.akin
  akin matrix diff --redis redis://127.0.0.1:6379 docs@active today.akin`,
		Args: cli.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			b, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), args[1])
			if err != nil {
				return err
			}
			const shown = 10 // terms whose neighbors changed most
			d := combine.Diff(a, b, shown)
			return cli.Print(cmd.OutOrStdout(), asJSON, d, func(out io.Writer) error {
				fmt.Fprintf(out, "%s -> %s\n\n", args[0], args[1])
				return printDifference(out, a.Meta(), b.Meta(), d)
			})
		},
	}
	redis.RegisterServer(cmd)
	new(cli.Config).Register(cmd, &redis)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
