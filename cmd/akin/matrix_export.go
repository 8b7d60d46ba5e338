package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix/source"
)

// toStdout is the --out that stands for standard output.
const toStdout = "-"

func newMatrixExport() *cobra.Command {
	var redis connect.Redis
	var out string
	cmd := &cobra.Command{
		Use: "export MATRIX --out FILE", Short: "Write a matrix as text that other programs read",
		Long: `export writes a line for each pair, TERM, NEIGHBOR and SIMILARITY parted by tabs, as
"matrix build --from-tsv" reads them. There is no place in it for document frequencies,
nor for terms without neighbors.

` + matrixHelp,
		Example: `  akin matrix export --out docs.tsv docs.akin
  akin matrix export --redis redis://127.0.0.1:6379 --out - docs@active | grep car`,
		Args: terminal.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExport(out, args[0]); err != nil {
				return terminal.Usage(err)
			}
			m, err := openMatrix(cmd.Context(), cmd.ErrOrStderr(), args[0], &redis)
			if err != nil {
				return err
			}
			if out == toStdout {
				err = source.WriteTSV(cmd.OutOrStdout(), m)
			} else {
				err = files.Write(cmd.Context(), out, func(w io.Writer) error { return source.WriteTSV(w, m) })
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
	cmd.Flags().StringVar(&out, "out", "", "file to write, - for standard output (required)")
	return cmd
}

// checkExport reports what is wrong with the file to write, where ref is read.
func checkExport(out, ref string) error {
	if out == toStdout {
		return nil
	}
	if _, err := os.Stat(ref); err == nil && files.Same(out, ref) {
		return fmt.Errorf("%s is the matrix to export: name another file to write", out)
	}
	return files.CheckOut(out)
}
