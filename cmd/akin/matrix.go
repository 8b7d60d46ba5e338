package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

func newMatrix() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "Build, push and inspect term-similarity matrices",
		Long: `A matrix holds, for each term of a field, the terms most similar to it. It is built
into a file, which akin can serve as it is, or pushed to Redis as a new version,
which all proxies follow within a second of its activation.`,
		Example: `  akin matrix build --from-index http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs --activate docs.akin
  akin matrix show --file docs.akin car`,
		Args: noSuchCommand,
		RunE: showHelp,
	}
	cmd.AddCommand(newMatrixBuild(), newMatrixPush(), newMatrixList(), newMatrixActivate(), newMatrixRollback(), newMatrixShow())
	return cmd
}

// redisFlags say which matrix in which Redis is meant.
type redisFlags struct{ url, name string }

func (f *redisFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "redis", "", "Redis URL; default $"+configs.EnvRedisURL+", which keeps a password out of the process list")
	cmd.Flags().StringVar(&f.name, "name", "main", "name of the matrix, as in the configuration")
}

// open returns the Redis of the flags.
func (f *redisFlags) open() (*rowstore.Admin, error) {
	if f.url == "" {
		f.url = os.Getenv(configs.EnvRedisURL)
	}
	if f.url == "" {
		return nil, usageError{errors.New("no Redis: give --redis URL or set " + configs.EnvRedisURL)}
	}
	admin, err := rowstore.OpenAdmin(f.url)
	if err != nil {
		return nil, usageError{err}
	}
	return admin, nil
}
