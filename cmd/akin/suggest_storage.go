package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
	"github.com/akin-search/akin/tools/suggest"
)

// A storage is where a matrix is kept, with its file of overrides.
type storage interface {
	// read returns both.
	read(ctx context.Context) (overrides string, m *simmatrix.Matrix, err error)
	// overrides returns only the file of overrides, "" for none.
	overrides(ctx context.Context) (string, error)
	// change changes both, so that proxies serve the matrix soon and nobody loses
	// what another changes meanwhile.
	change(ctx context.Context, by string, do store.Change) error
}

// storageOf returns the storage of a matrix of a configuration.
func storageOf(cfg *configs.Config, m *configs.Matrix) storage {
	if m.File != "" {
		return fileStorage{m.File}
	}
	return redisStorage{cli.Redis{URL: cfg.Redis.URL.Reveal(), Name: m.Name, TLS: cfg.Redis.TLS}}
}

// overridesFile returns the file of overrides that belongs to a matrix file:
// docs.overrides to docs.akin.
func overridesFile(matrix string) string {
	return strings.TrimSuffix(matrix, filepath.Ext(matrix)) + ".overrides"
}

// fileStorage is the storage of a matrix file.
type fileStorage struct{ path string }

func (s fileStorage) overrides(context.Context) (string, error) {
	text, err := os.ReadFile(overridesFile(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

func (s fileStorage) read(ctx context.Context) (overrides string, m *simmatrix.Matrix, err error) {
	if overrides, err = s.overrides(ctx); err == nil {
		m, err = cli.ReadMatrix(ctx, s.path)
	}
	return overrides, m, err
}

// lockPatience is how long a change waits for the one before it.
const lockPatience = time.Minute

// locked calls f while no other process changes the files.
func (s fileStorage) locked(ctx context.Context, f func(ctx context.Context) error) (err error) {
	const again = 20 * time.Millisecond
	waiting, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	lock := flock.New(overridesFile(s.path) + ".lock")
	if _, err := lock.TryLockContext(waiting, again); err != nil {
		return fmt.Errorf("%s, which others hold while they change %s: %w", lock.Path(), s.path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return f(ctx)
}

func (s fileStorage) change(ctx context.Context, _ string, do store.Change) error {
	return s.locked(ctx, func(ctx context.Context) error {
		before, m, err := s.read(ctx)
		if err != nil {
			return err
		}
		after, changed, err := do(before, m)
		if err != nil {
			return err
		}
		if changed != m {
			err = cli.WriteMatrix(ctx, s.path, changed)
		}
		if err == nil && after != before {
			err = s.write(ctx, after)
		}
		return err
	})
}

// write replaces the file of overrides. Others than its owner may not read it:
// it has texts of searches.
func (s fileStorage) write(ctx context.Context, overrides string) error {
	return cli.Replace(ctx, overridesFile(s.path), 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, overrides)
		return err
	})
}

// publish writes a matrix that was built, with the pairs that people accepted,
// also while it was built.
func (s fileStorage) publish(ctx context.Context, out string, m *simmatrix.Matrix) (*simmatrix.Matrix, error) {
	text, err := s.overrides(ctx)
	if err != nil {
		return nil, err
	}
	if text == "" && !cli.Same(s.path, out) { // nothing to wait for
		return m, cli.WriteMatrix(ctx, out, m)
	}
	return m, s.locked(ctx, func(ctx context.Context) error {
		text, err := s.overrides(ctx)
		if err == nil {
			m, err = withAccepted(text, m)
		}
		if err != nil {
			return err
		}
		return cli.WriteMatrix(ctx, out, m)
	})
}

// withAccepted returns the matrix with the pairs that people accepted, as a
// file of overrides has them.
func withAccepted(overrides string, m *simmatrix.Matrix) (*simmatrix.Matrix, error) {
	record, err := suggest.ReadRecord(overrides)
	if err != nil {
		return nil, err
	}
	return record.Apply(m)
}

// redisStorage is the storage of a matrix in Redis.
type redisStorage struct{ redis cli.Redis }

func (s redisStorage) overrides(ctx context.Context) (text string, err error) {
	err = s.redis.With(func(admin *store.Admin) (err error) {
		text, err = admin.Overrides(ctx, s.redis.Name)
		return err
	})
	return text, err
}

func (s redisStorage) read(ctx context.Context) (overrides string, m *simmatrix.Matrix, err error) {
	err = s.redis.With(func(admin *store.Admin) (err error) {
		if overrides, err = admin.Overrides(ctx, s.redis.Name); err == nil {
			m, _, err = admin.Pull(ctx, s.redis.Name, "", nil)
		}
		return err
	})
	return overrides, m, err
}

func (s redisStorage) change(ctx context.Context, by string, do store.Change) error {
	return s.redis.With(func(admin *store.Admin) error {
		_, err := admin.Change(ctx, s.redis.Name, by, do, nil)
		return err
	})
}
