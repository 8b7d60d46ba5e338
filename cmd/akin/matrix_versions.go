package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

func newMatrixPush() *cobra.Command {
	var redis cli.Redis
	var config cli.Config
	var field fieldFlags
	var file, overrides string
	activate := false
	cmd := redisCommand(&cobra.Command{
		Use:   "push [FILE]",
		Short: "Write a matrix file to Redis as a new version",
		Long: `push checks the file, writes all of it to Redis under a new version, and prints that
version. Without FILE it is the one that "matrix build" writes for the matrix. Searches use it once it is active. push applies corrections by hand
(--overrides) first, to what the analyzer of the field makes of their words, and keeps the
pairs that people accepted by "akin suggest".

While Redis is down, such as for the seconds of a failover, push waits and retries. A push
that is interrupted or fails keeps the active version and leaves no new version behind.`,
		Example: `  akin matrix push --activate
  akin matrix push --redis redis://127.0.0.1:6379 --name docs docs.akin
  akin matrix push --redis redis+sentinel://10.0.0.1,10.0.0.2/mymaster --name docs docs.akin
  akin matrix push --name docs --overrides overrides.txt --activate docs.akin`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.Usage(cobra.MaximumNArgs(1)(cmd, args)) },
		PreRunE: func(_ *cobra.Command, args []string) error {
			entry, err := config.Matrix(redis.Name)
			switch {
			case len(args) > 0:
				file = args[0]
			case entry == nil:
				return cmp.Or(err, cli.Usage(errors.New("give FILE, or a configuration with the matrix")))
			default:
				file, redis.Name = entry.File, entry.Name
			}
			if overrides == "" {
				return nil
			}
			return cli.Usage(field.configure(entry))
		},
	}, &redis, &config, func(cmd *cobra.Command, admin *store.Admin, _ []string) error {
		report := cli.NewProgress(cmd.ErrOrStderr())
		defer report.End()
		m, err := cli.ReadMatrix(cmd.Context(), file)
		if err != nil {
			return err
		}
		if overrides != "" {
			rules, err := readOverrides(cmd.Context(), overrides)
			if err != nil {
				return err
			}
			indexTerms, err := field.indexTerms(cmd.Context(), rules.Words(), report)
			if err != nil {
				return err
			}
			if m, _, err = applyOverrides(m, rules, indexTerms, report); err != nil {
				return err
			}
		}
		accepted, err := admin.Overrides(cmd.Context(), redis.Name)
		if err == nil {
			m, err = withAccepted(accepted, m)
		}
		if err != nil {
			return err
		}
		v, err := admin.Push(cmd.Context(), redis.Name, m, userAtHost(), report.Step)
		if err != nil {
			return err
		}
		if v.Expressions > 0 {
			report.Tell("note: it has %d expressions of several words. A proxy of an akin that does not know them keeps its last version", v.Expressions)
		}
		report.End()
		fmt.Fprintln(cmd.OutOrStdout(), v.ID)
		if !activate {
			return nil
		}
		if err := admin.Activate(cmd.Context(), redis.Name, v.ID); err != nil {
			return err
		}
		return keepAccepted(cmd.Context(), admin, redis.Name, accepted)
	}, &field.Cluster)
	field.register(cmd.Flags(), "URL of the cluster that analyzes the words of --overrides; needs --index and --field")
	cmd.Flags().StringVar(&overrides, "overrides", "", "file of corrections by hand (see docs/matrices.md)")
	cmd.Flags().BoolVar(&activate, "activate", false, "make the version active when it is complete")
	return cmd
}

// keepAccepted makes a version of the active one with the pairs that people
// accepted, if they are not those that it was pushed with.
func keepAccepted(ctx context.Context, admin *store.Admin, name, pushed string) error {
	now, err := admin.Overrides(ctx, name)
	if err != nil || now == pushed {
		return err
	}
	_, err = admin.Change(ctx, name, userAtHost(), func(text string, m *simmatrix.Matrix) (string, *simmatrix.Matrix, error) {
		m, err := withAccepted(text, m)
		return text, m, err
	}, nil)
	return err
}

// userAtHost returns the user and the host, as far as the system knows them.
func userAtHost() string {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

func redisCommand(
	cmd *cobra.Command, flags *cli.Redis, config *cli.Config, run func(cmd *cobra.Command, admin *store.Admin, args []string) error, more ...cli.Configured,
) *cobra.Command {
	flags.Register(cmd)
	config.Register(cmd, append(more, flags)...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.With(func(admin *store.Admin) error { return run(cmd, admin, args) })
	}
	return cmd
}

func newMatrixList() *cobra.Command {
	var flags cli.Redis
	asJSON := false
	cmd := redisCommand(&cobra.Command{
		Use:   "list",
		Short: "List the versions of a matrix in Redis",
		Long:  `list prints the versions of a matrix, the newest first; * marks the active one.`,
		Example: `  akin matrix list --redis redis://127.0.0.1:6379 --name docs
  akin matrix list --redis redis://127.0.0.1:6379 --name docs --json`,
		Args: cli.NoArgs,
	}, &flags, &cli.Config{}, func(cmd *cobra.Command, admin *store.Admin, _ []string) error {
		versions, err := admin.Versions(cmd.Context(), flags.Name)
		if err != nil {
			return err
		}
		return printVersions(cmd.OutOrStdout(), asJSON, versions)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newMatrixActivate() *cobra.Command {
	var flags cli.Redis
	return redisCommand(&cobra.Command{
		Use:     "activate VERSION",
		Short:   "Make searches use a version",
		Long:    `activate makes searches use a version, with the pairs that people accepted by "akin suggest".`,
		Example: `  akin matrix activate --name docs VERSION`,
		Args:    cli.ExactArgs(1),
	}, &flags, &cli.Config{}, func(cmd *cobra.Command, admin *store.Admin, args []string) error {
		if err := admin.Activate(cmd.Context(), flags.Name, args[0]); err != nil {
			return err
		}
		return keepAccepted(cmd.Context(), admin, flags.Name, "")
	})
}

func newMatrixRollback() *cobra.Command {
	var flags cli.Redis
	return redisCommand(&cobra.Command{
		Use:     "rollback",
		Short:   "Go back to the version that was active before",
		Example: `  akin matrix rollback --redis redis://127.0.0.1:6379 --name docs`,
		Args:    cli.NoArgs,
	}, &flags, &cli.Config{}, func(cmd *cobra.Command, admin *store.Admin, _ []string) error {
		version, err := admin.Rollback(cmd.Context(), flags.Name)
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), version)
		}
		return err
	})
}

func newMatrixPrune() *cobra.Command {
	var flags cli.Redis
	var keep int
	cmd := redisCommand(&cobra.Command{
		Use:   "prune --keep N",
		Short: "Remove old versions of a matrix from Redis",
		Long: `prune removes all versions but the newest N and the active one, and prints them. You
can no longer activate them or roll back to them. Requests that began with one can read it
for another minute.`,
		Example: `  akin matrix prune --redis redis://127.0.0.1:6379 --name docs --keep 3`,
		Args:    cli.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if keep < 1 {
				return cli.Usage(errors.New("say how many versions to keep: --keep N, at least 1"))
			}
			return nil
		},
	}, &flags, &cli.Config{}, func(cmd *cobra.Command, admin *store.Admin, _ []string) error {
		pruned, err := admin.Prune(cmd.Context(), flags.Name, keep)
		for _, id := range pruned { // also after an error
			fmt.Fprintln(cmd.OutOrStdout(), id)
		}
		return err
	})
	cmd.Flags().IntVar(&keep, "keep", 0, "how many of the newest versions to keep (required)")
	return cmd
}
