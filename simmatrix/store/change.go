package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

func overridesKey(name string) string { return "akin:{" + name + "}:overrides" }

const (
	// maxChanges is how often a change begins again because others were faster.
	maxChanges = 50
	// changePause is the pause before it does.
	changePause = 50 * time.Millisecond
)

// ErrBusy says that others change a matrix all the time.
var ErrBusy = errors.New("others change the matrix: try again")

// Overrides returns the file of overrides that is kept beside a matrix, "" if
// there is none.
func (a *Admin) Overrides(ctx context.Context, name string) (string, error) {
	if err := checkName("matrix", name); err != nil {
		return "", err
	}
	text, err := a.get(ctx, func(ctx context.Context) *redis.StringCmd { return a.client.Get(ctx, overridesKey(name)) }, redis.Nil)
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("overrides of matrix %s: %w", name, err)
	}
	return text, nil
}

// A Change returns the file of overrides and the matrix that take the place of
// others, or these. It may be called several times.
type Change func(overrides string, m *simmatrix.Matrix) (string, *simmatrix.Matrix, error)

// change makes version ARGV[1] active and ARGV[4] the overrides, if ARGV[2] and
// ARGV[3] still are: nobody loses what another changed meanwhile. It returns 1
// if so, 0 if others were faster, and -1 if the version is not complete. The
// length of the history is ARGV[5].
var change = redis.NewScript(`
if (redis.call('GET', KEYS[5]) or '') ~= ARGV[2] or (redis.call('GET', KEYS[8]) or '') ~= ARGV[3] then
	return 0
end
if ARGV[1] ~= ARGV[2] then
	if not redis.call('ZSCORE', KEYS[3], ARGV[1]) or redis.call('HGET', KEYS[1], '') ~= ARGV[1] then
		return -1
	end
	redis.call('LPUSH', KEYS[4], ARGV[2])
	redis.call('LTRIM', KEYS[4], 0, ARGV[5] - 1)
	redis.call('SET', KEYS[5], ARGV[1])
end
if ARGV[4] == '' then
	redis.call('UNLINK', KEYS[8])
else
	redis.call('SET', KEYS[8], ARGV[4])
end
return 1
`)

// Change makes a new version from the active one and activates it, together
// with the overrides, if change returns others. If anybody else changes the
// active version or the overrides meanwhile, it begins again with theirs, and
// returns an error that wraps [ErrBusy] after 50 times. A version that another
// Change made expires once this one has replaced it, so that many changes take
// the memory of two versions. Errors are also those of [Admin.Pull],
// [Admin.Push] and change.
func (a *Admin) Change(ctx context.Context, name, by string, do Change, progress simmatrix.Progress) (Version, error) {
	if err := checkBy(by); err != nil {
		return Version{}, err
	}
	for range maxChanges {
		before, err := a.Overrides(ctx, name)
		if err != nil {
			return Version{}, err
		}
		m, active, err := a.Pull(ctx, name, "", progress)
		if errors.Is(err, ErrUnknownVersion) { // replaced and gone meanwhile
			continue
		}
		if err != nil {
			return Version{}, err
		}
		after, changed, err := do(before, m)
		if err != nil {
			return active, err
		}
		v := active
		switch {
		case changed.Checksum() != active.Checksum:
			if v, err = a.push(ctx, name, changed, Version{By: by, Changed: true}, progress); err != nil {
				return active, err
			}
		case after == before:
			return active, nil
		}
		done, err := a.runChange(ctx, name, v.ID, active.ID, before, after)
		switch {
		case err != nil:
			return active, fmt.Errorf("change matrix %s: %w", name, err)
		case done == 1:
			if active.Changed && v.ID != active.ID {
				_, err = a.run(ctx, retire, name, active.ID, graceFor.Milliseconds())
			}
			return v, err
		case v.ID != active.ID:
			if _, err := a.run(ctx, discard, name, v.ID); err != nil {
				return active, fmt.Errorf("change matrix %s: %w", name, err)
			}
		}
		select {
		case <-ctx.Done():
			return active, context.Cause(ctx)
		case <-time.After(changePause):
		}
	}
	return Version{}, fmt.Errorf("change matrix %s: %w", name, ErrBusy)
}

func (a *Admin) runChange(ctx context.Context, name, id, active, before, after string) (done int, err error) {
	keys := append(keysOf(name, id), overridesKey(name))
	err = a.do(ctx, func(ctx context.Context) (err error) {
		done, err = change.Run(ctx, a.client, keys, id, active, before, after, maxHistory).Int()
		return err
	})
	return done, err
}
