package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/simmatrix/rowstore"
)

func newMatrixPush() *cobra.Command {
	var flags redisFlags
	var activate bool
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Write a matrix file to Redis as a new version",
		Long: `push checks the file, writes it to Redis completely under a new version and prints
that version. Searches use it once it is active. A push that is interrupted leaves
the active version as it was and no version behind.`,
		Example: `  akin matrix push --redis redis://127.0.0.1:6379 --name docs docs.akin
  akin matrix push --name docs --activate docs.akin`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := readMatrix(args[0])
			if err != nil {
				return err
			}
			return flags.with(func(admin *rowstore.Admin) error {
				report := newProgress(cmd.ErrOrStderr())
				defer report.end()
				v, err := admin.Push(cmd.Context(), flags.name, m, report.step)
				if err != nil {
					return err
				}
				report.end()
				fmt.Fprintln(cmd.OutOrStdout(), v.ID)
				if !activate {
					return nil
				}
				return admin.Activate(cmd.Context(), flags.name, v.ID)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&activate, "activate", false, "make the version active when it is complete")
	return cmd
}

// with calls f with the Redis of the flags.
func (f *redisFlags) with(call func(admin *rowstore.Admin) error) (err error) {
	admin, err := f.open()
	if err != nil {
		return err
	}
	defer func() {
		if closing := admin.Close(); err == nil {
			err = closing
		}
	}()
	return call(admin)
}

func newMatrixList() *cobra.Command {
	var flags redisFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the versions of a matrix in Redis",
		Example: `  akin matrix list --redis redis://127.0.0.1:6379 --name docs`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(func(admin *rowstore.Admin) error {
				versions, err := admin.Versions(cmd.Context(), flags.name)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "\tVERSION\tPUSHED\tTERMS\tNEIGHBORS\tDOCS\tSOURCE")
				for _, v := range versions {
					mark := ""
					if v.Active {
						mark = "*"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", mark, v.ID, v.Pushed.UTC().Format(time.RFC3339),
						v.Meta.Terms, v.Meta.NonZeros, v.Meta.Docs, v.Meta.Source)
				}
				return w.Flush()
			})
		},
	}
	flags.register(cmd)
	return cmd
}

func newMatrixActivate() *cobra.Command {
	var flags redisFlags
	cmd := &cobra.Command{
		Use:     "activate VERSION",
		Short:   "Make a version the one that searches use",
		Example: `  akin matrix activate --name docs VERSION`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(func(admin *rowstore.Admin) error {
				return admin.Activate(cmd.Context(), flags.name, args[0])
			})
		},
	}
	flags.register(cmd)
	return cmd
}

func newMatrixRollback() *cobra.Command {
	var flags redisFlags
	cmd := &cobra.Command{
		Use:     "rollback",
		Short:   "Go back to the version that was active before",
		Example: `  akin matrix rollback --redis redis://127.0.0.1:6379 --name docs`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(func(admin *rowstore.Admin) error {
				version, err := admin.Rollback(cmd.Context(), flags.name)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), version)
				return nil
			})
		},
	}
	flags.register(cmd)
	return cmd
}

// exactArgs asks for n arguments; anything else is a mistake of the user.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
