package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/internal/cli"
)

func newMatrixShow() *cobra.Command {
	var redis cli.Redis
	var top int
	asJSON := false
	cmd := &cobra.Command{
		Use: "show MATRIX WORD...", Short: "Show the neighbors of words",
		Long: `show prints the neighbors of words, most similar first, with the similarity and the
document frequency. It looks a word up as people write it, or else as an index term, which
is what the field's analyzer makes of a word. The term follows the written form: gas (ga).
If there is neither, show prints the nearest spelling. If entries have several origins,
such as the matrices of an ensemble, overrides or learning, each line ends with them.

` + cli.MatrixHelp,
		Example: `  akin matrix show docs.akin car rental
  akin matrix show --redis redis://127.0.0.1:6379 docs@active car`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || slices.Contains(args, "") {
				return cli.Usage(errors.New("give a matrix and at least one word, and no empty word"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return cli.Usage(fmt.Errorf("--top: %d is negative", top))
			}
			m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			found := findNeighbors(args[0], m, args[1:], top)
			return cli.Print(cmd.OutOrStdout(), asJSON, found, found.print)
		},
	}
	redis.RegisterServer(cmd)
	cmd.Flags().IntVar(&top, "top", 20, "how many neighbors of each term")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
