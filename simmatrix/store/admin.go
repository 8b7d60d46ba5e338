package store

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
	// adminTimeout limits a round trip: Redis may save or page.
	adminTimeout = 5 * time.Second
	// grace is how long an exchange may continue after its context ended.
	grace = 200 * time.Millisecond
	// maxHistory limits the versions that rollback can reach, maxListed a list.
	maxHistory, maxListed = 32, 1000
	// graceFor is how long a pruned version's keys stay. A proxy uses an inactive
	// version for a request and the second in which it notices a switch.
	graceFor = time.Minute
	// patience is how long a push retries a batch while Redis is unavailable: a
	// failover takes some 35 seconds with Sentinel's defaults.
	patience = time.Minute
	// maxFrequent limits the terms that a header names: few terms make up much of
	// the traffic, and their rows are read in milliseconds.
	maxFrequent = 256
)

// Errors of an [Admin]: there is no such complete version, or no earlier one,
// or a prune was asked to keep none.
var (
	ErrUnknownVersion = errors.New("unknown version")
	ErrNoHistory      = errors.New("no earlier version to go back to")
	errKeep           = errors.New("keep at least one version")
)

// An Admin manages the versions of matrices in Redis and which is active. It is
// safe for concurrent use, even by several programs. Calls end soon after their
// context, even if Redis hangs.
type Admin struct {
	client   redis.UniversalClient
	codec    simmatrix.RowCodec
	patience time.Duration // see patience
	frequent int           // see maxFrequent
	calls    sync.WaitGroup
}

// OpenAdmin returns an Admin for a Redis, connected on first use, or [ErrURL].
func OpenAdmin(r Redis) (*Admin, error) {
	client, err := NewClient(r, adminTimeout)
	if err != nil {
		return nil, err
	}
	return &Admin{client: client, patience: patience, frequent: maxFrequent}, nil
}

// Close closes the connections and waits for exchanges that outlived a call.
func (a *Admin) Close() error {
	err := a.client.Close()
	a.calls.Wait()
	return err
}

// do runs one exchange with Redis. It returns soon after ctx ends, although the
// client, and so op, may wait until its own timeout.
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
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return context.Cause(ctx)
	}
}

// run runs a script on a version of a matrix. All scripts get the version as
// first argument, and these keys:
//
//	KEYS rows, meta, versions, history, active, forms, words
func (a *Admin) run(ctx context.Context, script *redis.Script, name, id string, args ...any) (result int, err error) {
	err = a.do(ctx, func(ctx context.Context) (err error) {
		result, err = script.Run(ctx, a.client, keysOf(name, id), append([]any{id}, args...)...).Int()
		return err
	})
	return result, err
}

func keysOf(name, id string) []string {
	return []string{
		rowsKey(name, id), metaKey(name, id), versionsKey(name), historyKey(name), activeKey(name), formsKey(name, id), wordsKey(name, id),
	}
}

// activate makes a version active and puts the previous one at the front of the
// history, whose length is ARGV[2]. It returns 0, and changes nothing, if the
// version is not complete.
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

// Activate makes a version the one that proxies serve, atomically. If the
// matrix has no such complete version, it changes nothing and the error wraps
// [ErrUnknownVersion].
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

// rollback removes a version, the newest in the history, from there and makes
// it active if it is complete. It returns 1 if so, 0 if the version is not
// complete, and -1, changing nothing, if another version is the newest.
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

// Rollback makes the previously active complete version active again and
// returns its ID. Repeated calls go further back. If there is none, the error
// wraps [ErrNoHistory], and what is served does not change.
func (a *Admin) Rollback(ctx context.Context, name string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	for range 2 * maxHistory {
		newest := func(ctx context.Context) *redis.StringCmd { return a.client.LIndex(ctx, historyKey(name), 0) }
		id, err := a.get(ctx, newest, ErrNoHistory)
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

// get returns a string of Redis, or the error none if there is none.
func (a *Admin) get(ctx context.Context, op func(context.Context) *redis.StringCmd, none error) (value string, err error) {
	err = a.do(ctx, func(ctx context.Context) (err error) {
		value, err = op(ctx).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		err = none
	}
	return value, err
}

// Versions returns the complete versions of a matrix, newest first, at most
// 1000. A version with an unreadable header has only its ID.
func (a *Admin) Versions(ctx context.Context, name string) (versions []Version, err error) {
	if err := checkName("matrix", name); err != nil {
		return nil, err
	}
	ids, err := a.listed(ctx, name, 0)
	var metas []*redis.StringCmd
	var active *redis.StringCmd
	if err == nil {
		err = a.do(ctx, func(ctx context.Context) error {
			pipe := a.client.Pipeline()
			active = pipe.Get(ctx, activeKey(name))
			for _, id := range ids {
				metas = append(metas, pipe.Get(ctx, metaKey(name, id)))
			}
			if err := failure(pipe.Exec(ctx)); !refusal(err) {
				return err
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("versions of matrix %s: %w", name, err)
	}
	for i, id := range ids {
		v, err := parseVersion(id, metas[i].Val())
		if err != nil {
			v = Version{ID: id}
		}
		v.Active = active.Val() == id
		versions = append(versions, v)
	}
	return versions, nil
}

// listed returns IDs of the complete versions, newest first, from skip on.
func (a *Admin) listed(ctx context.Context, name string, skip int) (ids []string, err error) {
	page := redis.ZRangeArgs{Key: versionsKey(name), Start: skip, Stop: skip + maxListed - 1, Rev: true}
	err = a.do(ctx, func(ctx context.Context) (err error) {
		ids, err = a.client.ZRangeArgs(ctx, page).Result()
		return err
	})
	return ids, err
}

// resolve returns version, or for "" the active one.
func (a *Admin) resolve(ctx context.Context, name, version string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	if version == "" {
		var err error
		active := func(ctx context.Context) *redis.StringCmd { return a.client.Get(ctx, activeKey(name)) }
		if version, err = a.get(ctx, active, ErrNoVersion); err != nil {
			return "", fmt.Errorf("active version of matrix %s: %w", name, err)
		}
	}
	return version, checkName("version", version)
}

// read returns a complete version and the rows of terms. The error wraps
// [ErrUnknownVersion] if the version is not complete, [ErrBadVersion] if the
// header is unreadable, [ErrBadRow], or, with the version, [ErrMissingRows] if
// it has not as many rows as were pushed or lacks some.
func (a *Admin) read(ctx context.Context, name, id string, terms []string) (v Version, rows []simmatrix.Row, err error) {
	var meta *redis.StringCmd
	var got answer
	err = a.do(ctx, func(ctx context.Context) error {
		pipe := a.client.Pipeline()
		meta, got = askHeader(ctx, pipe, name, id, terms)
		return failure(pipe.Exec(ctx))
	})
	if refusal(err) {
		err = ErrUnknownVersion
	}
	if err == nil {
		v, err = parseVersion(id, meta.Val())
	}
	if err != nil {
		return v, nil, err
	}
	rows, bad, err := got.rows(&a.codec, &v, terms, func(string) bool { return false })
	if err == nil && slices.ContainsFunc(rows, simmatrix.Row.IsZero) {
		var known termReader
		err = known.read(&v, func(field string) (string, error) {
			chunk := func(ctx context.Context) *redis.StringCmd { return a.client.HGet(ctx, rowsKey(name, id), field) }
			return a.get(ctx, chunk, redis.Nil)
		})
		if err != nil {
			return v, nil, err
		}
		rows, bad, err = got.rows(&a.codec, &v, terms, func(term string) bool { return known.set.has(id, term) })
	}
	switch {
	case errors.Is(err, ErrGone):
		err = ErrUnknownVersion
	case len(bad) > 0 && errors.Is(err, ErrMissingRows):
		err = fmt.Errorf("%w: without a row or with a bad one: %s", err, someOf(bad))
	case len(bad) > 0:
		err = fmt.Errorf("%w: %s: %w", ErrBadRow, someOf(bad), err)
	case err != nil && !errors.Is(err, ErrMissingRows):
		err = fmt.Errorf("%w: %w", ErrBadRow, err)
	}
	return v, rows, err
}

// Rows returns the rows of terms in a complete version, "" for the active one,
// and the version's ID. The zero Row stands for a term that the matrix lacks.
// Errors wrap [ErrNoVersion], [ErrUnknownVersion], [ErrBadVersion],
// [ErrMissingRows] or [ErrBadRow], which names the terms.
func (a *Admin) Rows(ctx context.Context, name, version string, terms []string) (string, []simmatrix.Row, error) {
	id, err := a.resolve(ctx, name, version)
	if err != nil {
		return "", nil, err
	}
	_, rows, err := a.read(ctx, name, id, terms)
	if err != nil {
		return "", nil, fmt.Errorf("rows of %s of matrix %s: %w", id, name, err)
	}
	return id, rows, nil
}

// someOf returns the number of terms and the first of them.
func someOf(terms []string) string {
	const some = 5
	if len(terms) > some {
		return fmt.Sprintf("%d terms, first %.80q", len(terms), terms[:some])
	}
	return fmt.Sprintf("%d terms, %.80q", len(terms), terms)
}

// retire removes a version from the list and the history, and lets its
// permanent keys expire after ARGV[2] milliseconds. It returns 1 if so, and 0
// for the active one.
var retire = redis.NewScript(`
if redis.call('GET', KEYS[5]) == ARGV[1] then
	return 0
end
local function expire(key)
	return redis.call('PTTL', key) == -1 and redis.call('PEXPIRE', key, ARGV[2])
end
expire(KEYS[1])
expire(KEYS[2])
expire(KEYS[6])
expire(KEYS[7])
redis.call('LREM', KEYS[4], 0, ARGV[1])
return redis.call('ZREM', KEYS[3], ARGV[1])
`)

// Prune removes all complete versions of a matrix except the newest keep, at
// least 1, and the active one. It returns their IDs, newest first. A removed
// version can no longer be activated or rolled back to; requests that began
// with it can read it for one more minute. While the active version is damaged,
// it removes nothing and returns an error, because proxies then serve an
// earlier one. With an error it also returns what it removed before.
func (a *Admin) Prune(ctx context.Context, name string, keep int) (pruned []string, err error) {
	if err := checkName("matrix", name); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("prune matrix %s: %w", name, err)
		}
	}()
	if keep < 1 {
		return nil, errKeep
	}
	active, err := a.resolve(ctx, name, "")
	if err == nil {
		_, _, err = a.read(ctx, name, active, nil)
	}
	switch {
	case errors.Is(err, ErrMissingRows), errors.Is(err, ErrBadVersion), errors.Is(err, ErrUnknownVersion):
		return nil, fmt.Errorf("the active version %s is damaged, and an earlier one is served: push or activate a sound one first: %w", active, err)
	case err != nil && !errors.Is(err, ErrNoVersion):
		return nil, err
	}
	ids, err := a.listed(ctx, name, keep)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		done, err := a.run(ctx, retire, name, id, graceFor.Milliseconds())
		if err != nil {
			return pruned, fmt.Errorf("version %s: %w", id, err)
		}
		if done == 1 {
			pruned = append(pruned, id)
		}
	}
	return pruned, nil
}
