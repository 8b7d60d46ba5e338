package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

func newMatrix() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use: "matrix", Short: "Build, push and inspect term-similarity matrices",
		Long: `A matrix holds, for each term of a field, the terms most similar to it. It is built
into a file, which akin can serve as it is, or pushed to Redis as a new version,
which all proxies follow within a second of its activation.`,
		Example: `  akin matrix build --from-index http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs --activate docs.akin
  akin matrix show --file docs.akin car`,
	}, newMatrixBuild(), newMatrixPush(), newMatrixPull(), newMatrixList(), newMatrixActivate(), newMatrixRollback(),
		newMatrixPrune(), newMatrixShow(), newMatrixCheck(), newMatrixDiff(), newMatrixLearn(),
		newMatrixExport())
}

// matrixHelp says what MATRIX stands for on the command lines.
const matrixHelp = `MATRIX is a file, or NAME@VERSION or NAME@active in Redis. A file of that name goes
before Redis.`

// activeVersion stands for the version in use in NAME@active.
const activeVersion = "active"

// inRedis matches NAME@VERSION: names have no other characters.
var inRedis = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+$`)

// openMatrix reads the matrix that ref names, from a file or from Redis, with
// the progress on stderr.
func openMatrix(ctx context.Context, stderr io.Writer, ref string, redis *connect.Redis) (*simmatrix.Matrix, error) {
	_, err := os.Stat(ref)
	if !errors.Is(err, fs.ErrNotExist) {
		return files.ReadMatrix(ctx, ref)
	}
	if !inRedis.MatchString(ref) {
		return nil, fmt.Errorf("%w; name a file, or NAME@VERSION or NAME@%s in Redis", err, activeVersion)
	}
	name, version, _ := strings.Cut(ref, "@")
	if version == activeVersion {
		version = ""
	}
	var m *simmatrix.Matrix
	err = redis.With(func(admin *rowstore.Admin) (err error) {
		report := terminal.NewProgress(stderr)
		defer report.End()
		m, _, err = admin.Pull(ctx, name, version, report.Step)
		return err
	})
	switch {
	case errors.As(err, new(terminal.UsageError)):
		return nil, fmt.Errorf("%s is no file, and cannot be looked for in Redis: %w", ref, err)
	case errors.Is(err, rowstore.ErrUnknownVersion), errors.Is(err, rowstore.ErrNoVersion):
		return nil, fmt.Errorf("%s in Redis: %w; akin matrix list --name %s lists the versions", ref, err, name)
	case err != nil:
		return nil, fmt.Errorf("%s in Redis: %w", ref, err)
	}
	return m, nil
}

// writeMatrix writes a matrix file.
func writeMatrix(ctx context.Context, path string, m *simmatrix.Matrix) error {
	return files.Write(ctx, path, func(w io.Writer) error { return simmatrix.Encode(w, m) })
}
