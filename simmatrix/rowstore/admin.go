package rowstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// adminTimeout bounds one round trip of a person's command: a batch of a
	// push may wait for Redis to save or to page.
	adminTimeout = 5 * time.Second
	// parting is how long an exchange that is under way is waited for when its
	// context has ended.
	parting = 200 * time.Millisecond
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

// An Admin changes which versions of matrices there are in Redis and which is
// active. It is safe for concurrent use, also by several programs. Its calls
// end soon after their context does, even where Redis hangs.
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

// Close ends the connections, and with them what calls have left behind.
func (a *Admin) Close() error {
	err := a.client.Close()
	a.calls.Wait()
	return err
}

// do runs one exchange with Redis. It comes back a moment after ctx ends,
// although the client may wait for an answer until its own timeout. What op
// sets may be read only where do returns nil.
func (a *Admin) do(ctx context.Context, op func(ctx context.Context) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	done := make(chan error, 1)
	a.calls.Go(func() { done <- op(ctx) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // most often Redis is well and the answer on its way
	case err := <-done:
		return err
	case <-time.After(parting):
		return context.Cause(ctx)
	}
}

// activate makes ARGV[1] the active version, and the one before it the newest
// of the history. It returns 0, and changes nothing, where the version is not
// complete.
//
//	KEYS active, versions, history, rows of the version
//	ARGV version, length of the history
var activate = redis.NewScript(`
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) or redis.call('HGET', KEYS[4], '') ~= ARGV[1] then
	return 0
end
local before = redis.call('GET', KEYS[1])
if before == ARGV[1] then
	return 1
end
if before then
	redis.call('LPUSH', KEYS[3], before)
	redis.call('LTRIM', KEYS[3], 0, ARGV[2] - 1)
end
redis.call('SET', KEYS[1], ARGV[1])
return 1
`)

// Activate makes a version the one that proxies serve, in one step. It returns
// an error that wraps [ErrUnknownVersion], and changes nothing, where the
// matrix has no such complete version.
func (a *Admin) Activate(ctx context.Context, name, version string) error {
	if err := errors.Join(checkName("matrix", name), checkName("version", version)); err != nil {
		return err
	}
	keys := []string{activeKey(name), versionsKey(name), historyKey(name), rowsKey(name, version)}
	var done int
	err := a.do(ctx, func(ctx context.Context) (err error) {
		done, err = activate.Run(ctx, a.client, keys, version, maxHistory).Int()
		return err
	})
	if err != nil {
		return fmt.Errorf("activate %s of matrix %s: %w", version, name, err)
	}
	if done == 0 {
		return fmt.Errorf("activate %s of matrix %s: %w", version, name, ErrUnknownVersion)
	}
	return nil
}

// rollback takes ARGV[1], which has to be the newest version of the history,
// from there, and makes it the active one where it is complete. It returns 1
// if so, 0 where the version is not complete, and -1, with nothing changed,
// where another version is the newest.
//
//	KEYS active, versions, history, rows of the version
//	ARGV version
var rollback = redis.NewScript(`
if redis.call('LINDEX', KEYS[3], 0) ~= ARGV[1] then
	return -1
end
redis.call('LPOP', KEYS[3])
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) or redis.call('HGET', KEYS[4], '') ~= ARGV[1] then
	return 0
end
redis.call('SET', KEYS[1], ARGV[1])
return 1
`)

// Rollback makes the version that was active before the present one active
// again and returns its ID. Versions that are no longer complete are passed
// over. Called again it goes back further. It returns an error that wraps
// [ErrNoHistory], and changes nothing that is served, where there is none.
func (a *Admin) Rollback(ctx context.Context, name string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	for range 2 * maxHistory {
		id, done, err := a.stepBack(ctx, name)
		switch {
		case errors.Is(err, redis.Nil):
			return "", fmt.Errorf("roll back matrix %s: %w", name, ErrNoHistory)
		case err != nil:
			return "", fmt.Errorf("roll back matrix %s: %w", name, err)
		case done:
			return id, nil
		}
	}
	return "", fmt.Errorf("roll back matrix %s: others change its history; try again", name)
}

// stepBack takes the newest version of the history, if it is still that one,
// and reports whether it could be made active. [redis.Nil] is the error for an
// empty history.
func (a *Admin) stepBack(ctx context.Context, name string) (id string, done bool, err error) {
	var result int
	err = a.do(ctx, func(ctx context.Context) (err error) {
		if id, err = a.client.LIndex(ctx, historyKey(name), 0).Result(); err != nil {
			return err
		}
		keys := []string{activeKey(name), versionsKey(name), historyKey(name), rowsKey(name, id)}
		result, err = rollback.Run(ctx, a.client, keys, id).Int()
		return err
	})
	if err != nil {
		return "", false, err
	}
	return id, result == 1, nil
}

// Versions returns the complete versions of a matrix, the newest first, at
// most 1000. A version whose header cannot be read has only its ID.
func (a *Admin) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName("matrix", name); err != nil {
		return nil, err
	}
	var versions []Version
	err := a.do(ctx, func(ctx context.Context) (err error) {
		versions, err = a.versions(ctx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("versions of matrix %s: %w", name, err)
	}
	return versions, nil
}

func (a *Admin) versions(ctx context.Context, name string) ([]Version, error) {
	ids, err := a.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: versionsKey(name), Start: 0, Stop: maxListed - 1, Rev: true,
	}).Result()
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
		v, err := parseVersion(id, metas[i].Val())
		if err != nil {
			v = Version{ID: id}
		}
		v.Active = active.Val() == id
		versions[i] = v
	}
	return versions, nil
}

// resolve returns version, or for "" the active one.
func (a *Admin) resolve(ctx context.Context, name, version string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	if version == "" {
		err := a.do(ctx, func(ctx context.Context) (err error) {
			version, err = a.client.Get(ctx, activeKey(name)).Result()
			return err
		})
		if errors.Is(err, redis.Nil) {
			err = ErrNoVersion
		}
		if err != nil {
			return "", fmt.Errorf("active version of matrix %s: %w", name, err)
		}
	}
	return version, checkName("version", version)
}

// header returns the version of an ID. Its error wraps [ErrUnknownVersion]
// where that is not complete, [ErrBadVersion] where the header cannot be read,
// and [ErrMissingRows] where it has another number of rows than were pushed;
// then the version is returned all the same.
func (a *Admin) header(ctx context.Context, name, id string) (Version, error) {
	var meta *redis.StringCmd
	var rows rowsState
	err := a.do(ctx, func(ctx context.Context) error {
		pipe := a.client.Pipeline()
		meta, rows = pipe.Get(ctx, metaKey(name, id)), askState(ctx, pipe, name, id)
		return execute(ctx, pipe)
	})
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
}

// Rows returns the rows of terms in a complete version, "" for the active one,
// and which version it is. The zero Row stands for a term that the matrix does
// not hold. Errors wrap [ErrNoVersion], [ErrUnknownVersion], [ErrBadVersion],
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
	var got answer
	if err := a.do(ctx, func(ctx context.Context) (err error) {
		got, err = lookUp(ctx, a.client, rowsKey(name, version), terms)
		return err
	}); err != nil {
		return nil, err
	}
	rows, bad, err := got.rows(&a.codec, &v, terms)
	switch {
	case errors.Is(err, ErrGone):
		return nil, ErrUnknownVersion
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
