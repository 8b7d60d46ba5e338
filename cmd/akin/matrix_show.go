package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/internal/cli"
)

func newMatrixShow() *cobra.Command {
	var redis cli.Redis
	var config cli.Config
	var field fieldFlags
	var name string
	var top int
	asJSON := false
	cmd := &cobra.Command{
		Use: "show [MATRIX] WORD...", Short: "Show the neighbors of words",
		Long: `show prints the neighbors of words, most similar first, with the similarity and the
document frequency. It looks up what the field's analyzer makes of a word, by --cluster,
--index and --field or by the configuration; without them, the form that people write most,
or an index term. The term follows the written form: gas (ga). If there is neither, show
prints the nearest spelling. If entries have several origins,
such as the matrices of an ensemble, overrides or learning, each line ends with them.

` + cli.MatrixHelp + ` Without one it is that of the configuration.`,
		Example: `  akin matrix show car rental
  akin matrix show docs.akin car rental
  akin matrix show --redis redis://127.0.0.1:6379 docs@active car`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return cli.Usage(errors.New("give at least one word, and no empty word"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return cli.Usage(fmt.Errorf("--top: %d is negative", top))
			}
			ref, words := args[0], args[1:]
			if !cli.IsMatrix(ref) {
				configured, err := config.Ref(name)
				if err != nil {
					return err
				}
				if configured != "" {
					ref, words = configured, args
				}
			}
			if len(words) == 0 {
				return cli.Usage(errors.New("give a matrix and at least one word, or a configuration with a matrix"))
			}
			m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), ref)
			if err != nil {
				return err
			}
			found := findNeighbors(ref, m, words, field.readings(cmd, config, name, words), top)
			return cli.Print(cmd.OutOrStdout(), asJSON, found, found.print)
		},
	}
	redis.RegisterServer(cmd)
	field.register(cmd.Flags(), "URL of the cluster that analyzes the words; needs --index and --field")
	config.Register(cmd, &redis, &field.Cluster)
	cmd.Flags().StringVar(&name, "name", "", "entry of matrices in the configuration; default the only one")
	cmd.Flags().IntVar(&top, "top", 20, "how many neighbors of each term")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readings returns what the field's analyzer makes of words, nil if the cluster
// does not say.
func (f *fieldFlags) readings(cmd *cobra.Command, config cli.Config, name string, words []string) map[string][]string {
	entry, err := config.Matrix(name)
	if err == nil {
		err = f.configure(entry)
	}
	var readings map[string][]string
	if err == nil {
		readings, err = f.indexTerms(cmd.Context(), words, cli.NewProgress(io.Discard))
	}
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "words are looked up as they are, without the field's analyzer: %v\n", err)
		return nil
	}
	return readings
}
