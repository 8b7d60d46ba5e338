package rowstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// adminTimeout bounds one round trip of a person's command: a batch of a
	// push may wait for Redis to save or to page.
	adminTimeout = 5 * time.Second
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
// active. It is safe for concurrent use, also by several programs.
type Admin struct{ client *redis.Client }

// OpenAdmin returns an Admin for the Redis at url, which it connects to when
// first used.
func OpenAdmin(url string) (*Admin, error) {
	client, err := newClient(url, adminTimeout)
	if err != nil {
		return nil, err
	}
	return &Admin{client: client}, nil
}

// Close ends the connections.
func (a *Admin) Close() error { return a.client.Close() }

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
	done, err := activate.Run(ctx, a.client, keys, version, maxHistory).Int()
	if err != nil {
		return fmt.Errorf("activate %s of matrix %s: %w", version, name, err)
	}
	if done == 0 {
		return fmt.Errorf("activate %s of matrix %s: %w", version, name, ErrUnknownVersion)
	}
	return nil
}

// rollback makes the newest version of the history that is still complete the
// active one and returns it.
//
//	KEYS active, versions, history
//	ARGV what the key of a version's rows begins with
var rollback = redis.NewScript(`
local before = redis.call('LPOP', KEYS[3])
while before do
	if redis.call('ZSCORE', KEYS[2], before) and redis.call('HGET', ARGV[1] .. before, '') == before then
		redis.call('SET', KEYS[1], before)
		return before
	end
	before = redis.call('LPOP', KEYS[3])
end
return false
`)

// Rollback makes the version that was active before the present one active
// again and returns its ID. Called again it goes back further. It returns an
// error that wraps [ErrNoHistory], and changes nothing that is served, where
// there is none.
func (a *Admin) Rollback(ctx context.Context, name string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	keys := []string{activeKey(name), versionsKey(name), historyKey(name)}
	id, err := rollback.Run(ctx, a.client, keys, rowsKey(name, "")).Text()
	if errors.Is(err, redis.Nil) {
		err = ErrNoHistory
	}
	if err != nil {
		return "", fmt.Errorf("roll back matrix %s: %w", name, err)
	}
	return id, nil
}

// Versions returns the complete versions of a matrix, the newest first, at
// most 1000. A version whose header cannot be read has only its ID.
func (a *Admin) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName("matrix", name); err != nil {
		return nil, err
	}
	ids, err := a.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: versionsKey(name), Start: 0, Stop: maxListed - 1, Rev: true,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("versions of matrix %s: %w", name, err)
	}
	pipe := a.client.Pipeline()
	active := pipe.Get(ctx, activeKey(name))
	metas := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		metas[i] = pipe.Get(ctx, metaKey(name, id))
	}
	if err := execute(ctx, pipe); err != nil && !refusal(err) {
		return nil, fmt.Errorf("versions of matrix %s: %w", name, err)
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

// Rows returns the rows of terms in a complete version, "" for the active one,
// and which version it is. The zero Row stands for a term that the matrix does
// not hold. Errors wrap [ErrNoVersion], [ErrUnknownVersion] or [ErrBadRow].
func (a *Admin) Rows(ctx context.Context, name, version string, terms []string) (string, []simmatrix.Row, error) {
	if err := checkName("matrix", name); err != nil {
		return "", nil, err
	}
	if version == "" {
		active, err := a.client.Get(ctx, activeKey(name)).Result()
		if errors.Is(err, redis.Nil) {
			err = ErrNoVersion
		}
		if err != nil {
			return "", nil, fmt.Errorf("active version of matrix %s: %w", name, err)
		}
		version = active
	}
	if err := checkName("version", version); err != nil {
		return "", nil, err
	}
	rows := make([]simmatrix.Row, len(terms))
	fields := append([]string{completeField}, terms...)
	values, err := a.client.HMGet(ctx, rowsKey(name, version), fields...).Result()
	if err == nil {
		err = parseRows(values, version, rows)
		if errors.Is(err, ErrGone) {
			err = ErrUnknownVersion
		} else if err != nil {
			err = fmt.Errorf("%w: %w", ErrBadRow, err)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("rows of %s of matrix %s: %w", version, name, err)
	}
	return version, rows, nil
}
