package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

// The formats of "matrix export", and the --out that stands for standard
// output.
const formatTSV, formatMatrixMarket, toStdout = "tsv", "mtx", "-"

// exportFlags are the flags of "matrix export".
type exportFlags struct {
	redis                   connect.Redis
	format, out, vocabulary string
}

func newMatrixExport() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use: "export MATRIX --out FILE", Short: "Write a matrix in a format that other programs read",
		Long: `export writes a matrix as text: tsv is a line for each pair, TERM, NEIGHBOR and
SIMILARITY parted by tabs; mtx is MatrixMarket, numbers only, as scipy and gensim
read it, with the terms in a second file, --vocabulary, a line for each row. "matrix
build" reads both. A tsv has no place for document frequencies, nor for terms without
neighbors.

` + matrixHelp,
		Example: `  akin matrix export --out docs.tsv docs.akin
  akin matrix export --format mtx --out docs.mtx --vocabulary docs.terms docs.akin
  akin matrix export --redis redis://127.0.0.1:6379 --out - docs@active | grep car`,
		Args: terminal.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args[0]); err != nil {
				return terminal.Usage(err)
			}
			m, err := openMatrix(cmd.Context(), cmd.ErrOrStderr(), args[0], &f.redis)
			if err != nil {
				return err
			}
			if err := f.write(cmd.Context(), cmd.OutOrStdout(), m); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			meta := m.Meta()
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d terms, %d neighbors\n", args[0], meta.Terms, meta.NonZeros)
			return nil
		},
	}
	f.redis.RegisterServer(cmd)
	cmd.Flags().StringVar(&f.format, "format", formatTSV, "tsv or mtx")
	cmd.Flags().StringVar(&f.out, "out", "", "file to write, for tsv also - for standard output (required)")
	cmd.Flags().StringVar(&f.vocabulary, "vocabulary", "", "second file of an mtx: the terms, a line for each row")
	return cmd
}

// check reports all that is wrong with the flags, where ref is what is read.
func (f *exportFlags) check(ref string) error {
	var errs []error
	if f.out != toStdout {
		errs = append(errs, files.CheckOut(f.out))
	}
	if f.vocabulary != "" && f.vocabulary != toStdout {
		errs = append(errs, files.CheckTarget(f.vocabulary))
	}
	switch two := f.format == formatMatrixMarket; {
	case !two && f.format != formatTSV:
		errs = append(errs, fmt.Errorf("--format %s: give %s or %s", f.format, formatTSV, formatMatrixMarket))
	case two != (f.vocabulary != ""):
		errs = append(errs, errors.New("--format mtx and --vocabulary FILE go together"))
	case two && (f.out == toStdout || f.vocabulary == toStdout):
		errs = append(errs, errors.New("--format mtx makes two files: neither can be standard output"))
	case two && files.Same(f.out, f.vocabulary):
		errs = append(errs, errors.New("--out and --vocabulary are the same file"))
	}
	for _, target := range []string{f.out, f.vocabulary} {
		if _, err := os.Stat(ref); err == nil && target != "" && target != toStdout && files.Same(target, ref) {
			errs = append(errs, fmt.Errorf("%s is the matrix to export: name another file to write", target))
		}
	}
	return errors.Join(errs...)
}

func (f *exportFlags) write(ctx context.Context, stdout io.Writer, m *simmatrix.Matrix) error {
	switch {
	case f.format == formatMatrixMarket:
		return files.Write(ctx, f.out, func(matrix io.Writer) error {
			return files.Write(ctx, f.vocabulary, func(vocabulary io.Writer) error {
				return source.WriteMatrixMarket(matrix, vocabulary, m)
			})
		})
	case f.out == toStdout:
		return source.WriteTSV(stdout, m)
	default:
		return files.Write(ctx, f.out, func(w io.Writer) error { return source.WriteTSV(w, m) })
	}
}
