package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/diagnose"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
)

// newCheck tries a configuration before, or while, akin serves it.
func newCheck() *cobra.Command {
	var file, index string
	asJSON := false
	cmd := &cobra.Command{
		Use: "check --config FILE", Short: "Try a configuration: cluster, rights, Redis, matrices, fields",
		Long: `check tries what a configuration says, and changes nothing: each node of the cluster,
the rights of akin's own calls, certificates, Redis, and each matrix. For each text
field of the indices that matrices are bound to, or of --index, it expands searches for
a few words of documents as akin serve would, and says by which matrix and in which
form, or why not. Few known terms mean a matrix of another language or analyzer.

The exit status is 0 where there is no error, and 1 otherwise. Warnings are no errors.`,
		Example: `  akin check --config akin.yml
  akin check --config akin.yml --index products --json`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return terminal.Usage(errors.New("give --config FILE"))
			}
			report := diagnose.Run(cmd.Context(), file, index)
			if err := terminal.Print(cmd.OutOrStdout(), asJSON, report, report.Print); err != nil {
				return err
			}
			return report.Err()
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (required)")
	cmd.Flags().StringVar(&index, "index", "", "indices to look at; default those that matrices are bound to")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
