package rowstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/singleflight"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// followEvery leaves three polls to notice a switch within a second.
	followEvery = 250 * time.Millisecond
	// breakerFailures in a row open the breaker: one can be a lost packet.
	breakerFailures = 3
	// breakerOpen is the time without calls before the next try.
	breakerOpen = 500 * time.Millisecond
)

// Errors of a look-up. The search goes on unexpanded.
var (
	// ErrUnavailable says that Redis did not answer in time, or was not asked
	// because the breaker is open.
	ErrUnavailable = errors.New("the row store is unavailable")
	// ErrBadRow says that Redis has something that is not a row.
	ErrBadRow = errors.New("the row store holds a bad row")
	// ErrMissingRows says that Redis has another number of rows than were
	// pushed, so that a missing row proves nothing.
	ErrMissingRows = errors.New("the row store has lost rows")
	// ErrGone says that the version is no longer in Redis: deleted, evicted or
	// flushed.
	ErrGone = errors.New("the version is gone from the row store")
	// ErrNoVersion says that no version of the matrix is active.
	ErrNoVersion = errors.New("no version is active")
)

// A remote reads rows from Redis and follows the active versions.
type remote struct {
	client  redis.UniversalClient
	codec   simmatrix.RowCodec
	timeout time.Duration
	breaker *gobreaker.CircuitBreaker[struct{}]
	cache   *cache
	flights singleflight.Group
	guard   *recovery.Guard
	// last is the latest error that counts against Redis: the reason of an open
	// breaker.
	last     atomic.Pointer[error]
	failures atomic.Int64 // calls that failed or were not made
	badRows  atomic.Int64 // answers with something that is not a row

	// Only the poll touches these.
	names  []*followed
	polled bool
	loads  int // versions read so far
}

func newRemote(at Redis, timeout time.Duration, names []string, c *cache, guard *recovery.Guard) (*remote, error) {
	client, err := newClient(at, timeout)
	if err != nil {
		return nil, err
	}
	r := &remote{
		client: client, timeout: timeout, cache: c, guard: guard,
		breaker: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Name:         "rows",
			Timeout:      breakerOpen,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakerFailures },
			IsSuccessful: func(err error) bool { return err == nil || refusal(err) },
		}),
	}
	for _, name := range names {
		r.names = append(r.names, &followed{name: name, left: make(map[string]*remains)})
	}
	return r, nil
}

// call runs one round trip through the breaker. Errors wrap [ErrUnavailable],
// except those that are an answer, see refusal.
func (r *remote) call(ctx context.Context, op func(context.Context) error) error {
	_, err := r.breaker.Execute(func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		err := op(ctx)
		if err != nil && !refusal(err) {
			r.last.Store(&err)
		}
		return struct{}{}, err
	})
	if err == nil || refusal(err) {
		return err
	}
	r.failures.Add(1)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return fmt.Errorf("%w: not asked again yet after: %w", ErrUnavailable, *r.last.Load())
	}
	refresh(ctx, r.client)
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// fetch reads the rows of v and adds them to the cache. Callers with the same
// terms share one round trip, which outlives them up to the timeout, so that
// the cache fills even if the search could not wait. The rows are shared. No
// caller waits longer than the timeout, whatever the client does.
func (r *remote) fetch(ctx context.Context, v *version, terms []string) ([]simmatrix.Row, error) {
	detached := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	flight := r.flights.DoChan(v.key+"\x00"+strings.Join(terms, "\x00"), func() (any, error) {
		var rows []simmatrix.Row
		err := r.guard.Do("reading rows", func() (err error) { // singleflight would end the process with a panic
			if rows, err = r.read(detached, v, terms); err == nil {
				r.cache.add(v.key, terms, rows)
			}
			return err
		})
		return rows, r.count(err)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	case res := <-flight:
		rows, _ := res.Val.([]simmatrix.Row)
		return rows, res.Err
	}
}

// count counts the error of a look-up, if it is one, and returns it.
func (r *remote) count(err error) error {
	switch {
	case errors.Is(err, ErrGone):
		r.failures.Add(1)
	case err != nil && !errors.Is(err, ErrUnavailable): // already counted by call
		r.badRows.Add(1)
	}
	return err
}

// read asks Redis for the rows of terms. After the first answer that shows
// damage, v returns no more rows, see [version.damage].
func (r *remote) read(ctx context.Context, v *version, terms []string) ([]simmatrix.Row, error) {
	var a answer
	err := r.call(ctx, func(ctx context.Context) (err error) {
		a, err = lookUp(ctx, r.client, rowsKey(v.name, v.ID), terms)
		return err
	})
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	var rows []simmatrix.Row
	var bad []string
	if err == nil {
		rows, bad, err = a.rows(&r.codec, &v.Version, v.terms, terms)
	}
	if err == nil {
		return rows, nil
	}
	damaged := isDamage(err) // else it says nothing about the rows
	err = about(v.label, err)
	if damaged {
		v.setDamage(err, bad)
	}
	return nil, err
}

// about adds the version to an error, and wraps [ErrBadRow] if Redis answered
// with something that is not a row.
func about(label string, err error) error {
	if errors.Is(err, ErrGone) || errors.Is(err, ErrMissingRows) {
		return fmt.Errorf("%w: %s", err, label)
	}
	return fmt.Errorf("%w: %s: %w", ErrBadRow, label, err)
}
