package rowstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// adminTimeout bounds one round trip of an operator's command: a batch of a
	// push may wait for Redis to save or to page.
	adminTimeout = 5 * time.Second
	// grace is how much longer an exchange may take after its context has
	// ended: most often Redis is healthy and the answer on its way.
	grace = 200 * time.Millisecond
	// maxHistory is the number of earlier versions that rollback can reach.
	maxHistory = 32
	// maxListed bounds the versions that are listed.
	maxListed = 1000
)

// Errors of an [Admin].
var (
	// ErrUnknownVersion says that the matrix has no such complete version.
	ErrUnknownVersion = errors.New("unknown version")
	// ErrNoHistory says that there is no earlier version to go back to.
	ErrNoHistory = errors.New("no earlier version to go back to")
)

// An Admin manages the versions of matrices in Redis and which is active. It is
// safe for concurrent use, also by several programs. Its calls end soon after
// their context does, even if Redis hangs.
type Admin struct {
	client   redis.UniversalClient
	codec    simmatrix.RowCodec
	patience time.Duration // see patience
	frequent int           // see maxFrequent
	calls    sync.WaitGroup
}

// OpenAdmin returns an Admin for a Redis, which it connects to when first
// used. The error wraps [ErrURL].
func OpenAdmin(r Redis) (*Admin, error) {
	client, err := newClient(r, adminTimeout)
	if err != nil {
		return nil, err
	}
	return &Admin{client: client, patience: patience, frequent: maxFrequent}, nil
}

// Close ends the connections and waits for exchanges that outlived their calls.
func (a *Admin) Close() error {
	err := a.client.Close()
	a.calls.Wait()
	return err
}

// ask runs one exchange with Redis and returns the answer. It returns soon
// after ctx ends, although the client may wait until its own timeout.
func ask[T any](ctx context.Context, a *Admin, op func(ctx context.Context) (T, error)) (none T, _ error) {
	if err := context.Cause(ctx); err != nil {
		return none, err
	}
	var value T
	var err error
	done := make(chan struct{})
	a.calls.Go(func() {
		defer close(done)
		value, err = op(ctx)
	})
	select {
	case <-done:
		return value, err
	case <-ctx.Done():
	}
	select {
	case <-done:
		return value, err
	case <-time.After(grace):
		return none, context.Cause(ctx)
	}
}

// do is [ask] for an exchange without an answer.
func (a *Admin) do(ctx context.Context, op func(ctx context.Context) error) error {
	_, err := ask(ctx, a, func(ctx context.Context) (struct{}, error) { return struct{}{}, op(ctx) })
	return err
}

// run runs a script on a version of a matrix. All scripts have the version as
// first argument and the same keys:
//
//	KEYS rows, meta, versions, history, active
func (a *Admin) run(ctx context.Context, script *redis.Script, name, id string, args ...any) (int, error) {
	keys := []string{rowsKey(name, id), metaKey(name, id), versionsKey(name), historyKey(name), activeKey(name)}
	args = append([]any{id}, args...)
	return ask(ctx, a, func(ctx context.Context) (int, error) { return script.Run(ctx, a.client, keys, args...).Int() })
}

// activate makes a version the active one, and the one before it the newest of
// the history, whose length is ARGV[2]. It returns 0, and changes nothing,
// where the version is not complete.
var activate = redis.NewScript(`
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) or redis.call('HGET', KEYS[1], '') ~= ARGV[1] then
	return 0
end
local before = redis.call('GET', KEYS[5])
if before == ARGV[1] then
	return 1
end
if before then
	redis.call('LPUSH', KEYS[4], before)
	redis.call('LTRIM', KEYS[4], 0, ARGV[2] - 1)
end
redis.call('SET', KEYS[5], ARGV[1])
return 1
`)

// Activate makes a version the one that proxies serve, atomically. It returns
// an error that wraps [ErrUnknownVersion], and changes nothing, where the
// matrix has no such complete version.
func (a *Admin) Activate(ctx context.Context, name, version string) error {
	if err := errors.Join(checkName("matrix", name), checkName("version", version)); err != nil {
		return err
	}
	done, err := a.run(ctx, activate, name, version, maxHistory)
	if err == nil && done == 0 {
		err = ErrUnknownVersion
	}
	if err != nil {
		return fmt.Errorf("activate %s of matrix %s: %w", version, name, err)
	}
	return nil
}

// rollback removes a version, the newest of the history, from there and makes
// it active if it is complete. It returns 1 if so, 0 if the version is not
// complete, and -1, with nothing changed, if another version is the newest.
var rollback = redis.NewScript(`
if redis.call('LINDEX', KEYS[4], 0) ~= ARGV[1] then
	return -1
end
redis.call('LPOP', KEYS[4])
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) or redis.call('HGET', KEYS[1], '') ~= ARGV[1] then
	return 0
end
redis.call('SET', KEYS[5], ARGV[1])
return 1
`)

// Rollback makes the version that was active before the current one active
// again and returns its ID. It skips versions that are no longer complete.
// Called again it goes back further. If there is none it returns an error that
// wraps [ErrNoHistory], and what is served does not change.
func (a *Admin) Rollback(ctx context.Context, name string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	for range 2 * maxHistory {
		id, err := ask(ctx, a, func(ctx context.Context) (string, error) { return a.client.LIndex(ctx, historyKey(name), 0).Result() })
		if errors.Is(err, redis.Nil) {
			err = ErrNoHistory
		}
		var done int
		if err == nil {
			done, err = a.run(ctx, rollback, name, id)
		}
		if err != nil {
			return "", fmt.Errorf("roll back matrix %s: %w", name, err)
		}
		if done == 1 {
			return id, nil
		}
	}
	return "", fmt.Errorf("roll back matrix %s: others change its history; try again", name)
}

// Versions returns the complete versions of a matrix, the newest first, at
// most 1000. A version whose header cannot be read has only its ID.
func (a *Admin) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName("matrix", name); err != nil {
		return nil, err
	}
	versions, err := ask(ctx, a, func(ctx context.Context) ([]Version, error) {
		ids, err := a.listed(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		pipe := a.client.Pipeline()
		active := pipe.Get(ctx, activeKey(name))
		metas := make([]*redis.StringCmd, len(ids))
		for i, id := range ids {
			metas[i] = pipe.Get(ctx, metaKey(name, id))
		}
		if err := execute(ctx, pipe); err != nil && !refusal(err) {
			return nil, err
		}
		versions := make([]Version, len(ids))
		for i, id := range ids {
			if versions[i], err = parseVersion(id, metas[i].Val()); err != nil {
				versions[i].ID = id
			}
			versions[i].Active = active.Val() == id
		}
		return versions, nil
	})
	if err != nil {
		return nil, fmt.Errorf("versions of matrix %s: %w", name, err)
	}
	return versions, nil
}

// listed returns the IDs of the complete versions, newest first, without the
// first skip.
func (a *Admin) listed(ctx context.Context, name string, skip int) ([]string, error) {
	return a.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: versionsKey(name), Start: skip, Stop: skip + maxListed - 1, Rev: true,
	}).Result()
}

// resolve returns version, or for "" the active one.
func (a *Admin) resolve(ctx context.Context, name, version string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	if version == "" {
		var err error
		version, err = ask(ctx, a, func(ctx context.Context) (string, error) { return a.client.Get(ctx, activeKey(name)).Result() })
		if errors.Is(err, redis.Nil) {
			err = ErrNoVersion
		}
		if err != nil {
			return "", fmt.Errorf("active version of matrix %s: %w", name, err)
		}
	}
	return version, checkName("version", version)
}

// header returns the version of an ID. Its error wraps [ErrUnknownVersion] if
// that is not complete, [ErrBadVersion] if the header cannot be read, and
// [ErrMissingRows], with the version, if it has another number of rows than
// were pushed.
func (a *Admin) header(ctx context.Context, name, id string) (Version, error) {
	return ask(ctx, a, func(ctx context.Context) (Version, error) {
		meta, rows, err := readHeader(ctx, a.client, name, id)
		if err != nil && !refusal(err) {
			return Version{}, err
		}
		if err != nil || rows.mark.Val() != id {
			return Version{}, ErrUnknownVersion
		}
		v, err := parseVersion(id, meta.Val())
		if err == nil {
			err = v.checkFields(rows.fields.Val())
		}
		return v, err
	})
}

// Rows returns the rows of terms in a complete version, "" for the active one,
// and the version's ID. The zero Row stands for a term that the matrix lacks.
// Errors wrap [ErrNoVersion], [ErrUnknownVersion], [ErrBadVersion],
// [ErrMissingRows] or [ErrBadRow], which names the terms.
func (a *Admin) Rows(ctx context.Context, name, version string, terms []string) (string, []simmatrix.Row, error) {
	version, err := a.resolve(ctx, name, version)
	if err != nil {
		return "", nil, err
	}
	rows, err := a.rows(ctx, name, version, terms)
	if err != nil {
		return "", nil, fmt.Errorf("rows of %s of matrix %s: %w", version, name, err)
	}
	return version, rows, nil
}

func (a *Admin) rows(ctx context.Context, name, version string, terms []string) ([]simmatrix.Row, error) {
	v, err := a.header(ctx, name, version)
	if err != nil {
		return nil, err
	}
	got, err := ask(ctx, a, func(ctx context.Context) (answer, error) { return lookUp(ctx, a.client, rowsKey(name, version), terms) })
	if err != nil {
		return nil, err
	}
	rows, bad, err := got.rows(&a.codec, &v, nil, terms)
	if err == nil && slices.ContainsFunc(rows, simmatrix.Row.IsZero) {
		var set termSet
		if err := readTerms(ctx, a.client, name, &v, &set, a.do); err != nil {
			return nil, err
		}
		rows, bad, err = got.rows(&a.codec, &v, set, terms)
	}
	switch {
	case errors.Is(err, ErrGone):
		return nil, ErrUnknownVersion
	case len(bad) > 0 && errors.Is(err, ErrMissingRows):
		return nil, fmt.Errorf("%w: without a row or with a bad one: %s", err, someOf(bad))
	case len(bad) > 0:
		return nil, fmt.Errorf("%w: %s: %w", ErrBadRow, someOf(bad), err)
	case err != nil && !errors.Is(err, ErrMissingRows):
		return nil, fmt.Errorf("%w: %w", ErrBadRow, err)
	}
	return rows, err
}

// someOf returns the number of terms and the first of them.
func someOf(terms []string) string {
	const some = 5
	if len(terms) > some {
		return fmt.Sprintf("%d terms, first %.80q", len(terms), terms[:some])
	}
	return fmt.Sprintf("%d terms, %.80q", len(terms), terms)
}
