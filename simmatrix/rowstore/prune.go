package rowstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// graceFor is how long the keys of a pruned version stay. A proxy uses an
	// inactive version for the length of a request and the second in which it
	// follows a switch.
	graceFor = time.Minute
	// maxScans bounds the calls that look for orphans, each of about scanCount
	// keys of the whole Redis.
	maxScans, scanCount = 10_000, 1000
)

var errKeep = errors.New("keep at least one version")

// Pruned has the IDs that an [Admin.Prune] has removed: of complete versions,
// the newest first, and, in order, those with rows or a header but no complete
// version, which would have stayed forever. Partly reports that Redis has more
// keys than are searched for these, some ten million.
type Pruned struct {
	Versions, Orphans []string
	Partly            bool
}

// retire removes a version from the list and the history and lets its
// permanent keys expire after ARGV[2] milliseconds. It returns 1 if so, else
// 0: for one that is active, for one that is not listed although ARGV[3] is 1,
// or the other way round, and for one that is being pushed, whose keys expire
// anyway.
var retire = redis.NewScript(`
local listed = redis.call('ZSCORE', KEYS[3], ARGV[1]) and '1' or '0'
if redis.call('GET', KEYS[5]) == ARGV[1] or listed ~= ARGV[3] then
	return 0
end
local function expire(key)
	return redis.call('PTTL', key) == -1 and redis.call('PEXPIRE', key, ARGV[2]) or 0
end
redis.call('LREM', KEYS[4], 0, ARGV[1])
return math.max(redis.call('ZREM', KEYS[3], ARGV[1]), expire(KEYS[1]), expire(KEYS[2]))
`)

// Prune removes all complete versions of a matrix but the newest keep, which
// is at least 1, and never the active one. What is removed can no longer be
// activated or rolled back to, and is read for one more minute by requests
// that began with it. It removes nothing, and returns an error, while the
// active version is damaged: proxies then serve an earlier one. Prune also
// removes orphans: rows or headers without a version that no push is writing.
// With an error it also returns what was removed before.
func (a *Admin) Prune(ctx context.Context, name string, keep int) (p Pruned, err error) {
	if err := checkName("matrix", name); err != nil {
		return p, err
	}
	if err = a.prune(ctx, name, keep, &p); err != nil {
		err = fmt.Errorf("prune matrix %s: %w", name, err)
	}
	return p, err
}

func (a *Admin) prune(ctx context.Context, name string, keep int, p *Pruned) error {
	if keep < 1 {
		return errKeep
	}
	active, err := a.resolve(ctx, name, "")
	if err == nil {
		_, _, err = a.read(ctx, name, active, nil)
	}
	switch {
	case errors.Is(err, ErrMissingRows), errors.Is(err, ErrBadVersion), errors.Is(err, ErrUnknownVersion):
		return fmt.Errorf("the active version %s is damaged, and an earlier one is served: push or activate a sound one first: %w", active, err)
	case err != nil && !errors.Is(err, ErrNoVersion):
		return err
	}
	ids, err := a.listed(ctx, name, keep)
	if err == nil {
		p.Versions, err = a.retire(ctx, name, ids, 1)
	}
	if err == nil {
		ids, p.Partly, err = a.unlisted(ctx, name)
	}
	if err == nil {
		p.Orphans, err = a.retire(ctx, name, ids, 0)
	}
	return err
}

// retire runs the script for each ID and returns those that it removed.
func (a *Admin) retire(ctx context.Context, name string, ids []string, listed int) (retired []string, _ error) {
	for _, id := range ids {
		done, err := a.run(ctx, retire, name, id, graceFor.Milliseconds(), listed)
		if err != nil {
			return retired, fmt.Errorf("version %s: %w", id, err)
		}
		if done == 1 {
			retired = append(retired, id)
		}
	}
	return retired, nil
}

// unlisted returns the sorted IDs with rows or headers that are not complete
// versions, and whether there were too many keys to see all.
func (a *Admin) unlisted(ctx context.Context, name string) (ids []string, partly bool, err error) {
	found := make(map[string]bool)
	whole, err := a.scan(ctx, maxScans, func(ctx context.Context, cursor uint64) *redis.ScanCmd {
		node := redis.Cmdable(a.client) // the one that has the keys of the matrix
		if c, ok := a.client.(*redis.ClusterClient); ok {
			master, err := c.MasterForKey(ctx, versionsKey(name))
			if err != nil {
				return redis.NewScanCmdResult(nil, 0, err)
			}
			node = master
		}
		return node.Scan(ctx, cursor, "akin:{"+name+"}:*:*", scanCount) // the name has no wildcards
	}, func(keys []string) error {
		for _, key := range keys {
			for _, prefix := range []string{rowsKey(name, ""), metaKey(name, "")} {
				if id, ok := strings.CutPrefix(key, prefix); ok {
					found[id] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("look for orphans: %w", err)
	}
	if whole {
		var listed []Version
		listed, err = a.Versions(ctx, name)
		for _, v := range listed {
			delete(found, v.ID)
		}
	}
	return slices.Sorted(maps.Keys(found)), !whole, err
}

// scan calls use with each page that next returns, up to most of them. It
// reports whether these were all.
func (a *Admin) scan(
	ctx context.Context, most int, next func(ctx context.Context, cursor uint64) *redis.ScanCmd, use func(page []string) error,
) (whole bool, err error) {
	var cursor uint64
	for range most {
		var page []string
		if err := a.do(ctx, func(ctx context.Context) (err error) {
			page, cursor, err = next(ctx, cursor).Result()
			return err
		}); err != nil {
			return false, err
		}
		if err := use(page); err != nil || cursor == 0 {
			return err == nil, err
		}
	}
	return false, nil
}
