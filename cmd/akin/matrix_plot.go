package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix/plots"
)

// allFigures stands for every figure on the command line.
const allFigures = "all"

// plotFlags are the flags of "matrix plot".
type plotFlags struct {
	ref       refFlags
	out, what string
}

func newMatrixPlot() *cobra.Command {
	var f plotFlags
	cmd := &cobra.Command{
		Use:   "plot MATRIX --out FILE",
		Short: "Draw what is in a matrix, as SVG or PNG",
		Long: `plot draws up to three figures: how similar the neighbors are, and how dense the
matrix would be if each term kept only its C most similar neighbors, or if only
similarities above θ were kept. They help to choose --top and --min-similarity of
"matrix build". Density is the share of all pairs of terms that have a similarity,
a term with itself counted, in percent.

` + matrixHelp,
		Example: `  akin matrix plot --out docs.svg docs.akin
  akin matrix plot --redis redis://127.0.0.1:6379 --what similarities --out docs.png docs@active`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, figures, err := f.parse()
			if err != nil {
				return terminal.Usage(err)
			}
			m, err := openMatrix(cmd.Context(), args[0], &f.ref)
			if err != nil {
				return err
			}
			summary := plots.Summarize(m)
			err = files.Write(cmd.Context(), f.out, func(w io.Writer) error {
				return plots.Write(w, format, args[0], summary, figures...)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", f.out, summary)
			return nil
		},
	}
	f.ref.register(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "image to write, FILE.svg or FILE.png (required)")
	cmd.Flags().StringVar(&f.what, "what", allFigures, "figures to draw: "+figureNames())
	return cmd
}

// figureNames lists what --what takes.
func figureNames() string {
	names := make([]string, 0, len(plots.Figures())+1)
	for _, figure := range plots.Figures() {
		names = append(names, string(figure))
	}
	return strings.Join(append(names, allFigures), ", ")
}

// parse returns what the flags ask for, or all that is wrong with them.
func (f *plotFlags) parse() (format plots.Format, figures []plots.Figure, err error) {
	var errs []error
	switch {
	case f.what == allFigures:
		figures = plots.Figures()
	case slices.Contains(plots.Figures(), plots.Figure(f.what)):
		figures = []plots.Figure{plots.Figure(f.what)}
	default:
		errs = append(errs, fmt.Errorf("--what %s: give one of %s", f.what, figureNames()))
	}
	format = plots.Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(f.out), ".")))
	if format != plots.SVG && format != plots.PNG {
		errs = append(errs, errors.New("give --out FILE.svg or --out FILE.png"))
	} else if err := files.CheckTarget(f.out); err != nil {
		errs = append(errs, err)
	}
	return format, figures, errors.Join(errs...)
}
