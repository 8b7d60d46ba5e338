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

	"github.com/akin-search/akin/simmatrix"
)

const (
	// followEvery leaves three polls for a switch to be seen within a second.
	followEvery = 250 * time.Millisecond
	// breakerFailures in a row open the breaker: one can be a lost packet.
	breakerFailures = 3
	// breakerOpen is the time without calls until one is tried again.
	breakerOpen = 500 * time.Millisecond
)

// Errors of a look-up. The search goes on unexpanded.
var (
	// ErrUnavailable says that Redis did not answer in time, or was not asked
	// because it had not answered before.
	ErrUnavailable = errors.New("the row store is unavailable")
	// ErrBadRow says that Redis holds something else than a row.
	ErrBadRow = errors.New("the row store holds a bad row")
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
	// last is the latest error that counts against Redis, for the reason that
	// an open breaker does not know.
	last     atomic.Pointer[error]
	failures atomic.Int64 // calls that failed or were not made
	badRows  atomic.Int64 // answers with something that is no row

	// current holds what each name follows, nil before the first version.
	// Only the poll touches it.
	names   []string
	current []*version
	polled  bool
}

func newRemote(r Redis, timeout time.Duration, names []string, c *cache) (*remote, error) {
	client, err := newClient(r, timeout)
	if err != nil {
		return nil, err
	}
	return &remote{
		client: client, timeout: timeout, cache: c,
		names: names, current: make([]*version, len(names)),
		breaker: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Name:         "rows",
			Timeout:      breakerOpen,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakerFailures },
			IsSuccessful: func(err error) bool { return err == nil || refusal(err) },
		}),
	}, nil
}

// call runs one round trip through the breaker. Errors wrap [ErrUnavailable],
// but for those that are an answer, see refusal.
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
// the cache fills even where the search could not wait. The rows are shared.
// No caller waits longer than the timeout, whatever the client does meanwhile.
func (r *remote) fetch(ctx context.Context, v *version, terms []string) ([]simmatrix.Row, error) {
	detached := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	flight := r.flights.DoChan(v.label+"\x00"+strings.Join(terms, "\x00"), func() (any, error) {
		rows, err := r.read(detached, v, terms)
		if err == nil {
			r.cache.add(v.label, terms, rows)
		}
		return rows, err
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	case res := <-flight:
		rows, _ := res.Val.([]simmatrix.Row)
		return rows, res.Err
	}
}

// read is one HMGET: the mark of a complete version, then the rows.
func (r *remote) read(ctx context.Context, v *version, terms []string) ([]simmatrix.Row, error) {
	fields := append(make([]string, 0, 1+len(terms)), completeField)
	fields = append(fields, terms...)
	var values []any
	err := r.call(ctx, func(ctx context.Context) (err error) {
		values, err = hmget(ctx, r.client, rowsKey(v.name, v.id), fields)
		return err
	})
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	rows := make([]simmatrix.Row, len(terms))
	if err == nil {
		err = parseRows(&r.codec, values, v.id, rows)
	}
	switch {
	case err == nil:
		return rows, nil
	case errors.Is(err, ErrGone):
		r.failures.Add(1)
		return nil, fmt.Errorf("%w: %s", err, v.label)
	default:
		r.badRows.Add(1)
		err = fmt.Errorf("%w: %s: %w", ErrBadRow, v.label, err)
		if errors.Is(err, simmatrix.ErrRow) { // else it was no answer to this question
			v.bad.CompareAndSwap(nil, &err) // for the poll to tell of
		}
		return nil, err
	}
}

// hmget is HMGET. The method of the library reads a number in any answer, even
// +99999999999, as the length of an array, and allocates that.
func hmget(ctx context.Context, c redis.UniversalClient, key string, fields []string) ([]any, error) {
	args := make([]any, 0, 2+len(fields))
	args = append(args, "hmget", key)
	for _, field := range fields {
		args = append(args, field)
	}
	return c.Do(ctx, args...).Slice()
}

// parseRows fills rows from the answer to an HMGET of the completeField and
// one field for each row. It returns [ErrGone] where the first is missing;
// other errors say what is wrong. They name no term: it is of a user's query.
func parseRows(codec *simmatrix.RowCodec, values []any, id string, rows []simmatrix.Row) error {
	if len(values) != 1+len(rows) {
		return fmt.Errorf("%d values, want %d", len(values), 1+len(rows))
	}
	switch mark := values[0].(type) {
	case nil:
		return ErrGone
	case string:
		if mark != id {
			return fmt.Errorf("marked as version %.80q", mark)
		}
	default:
		return fmt.Errorf("marked with a %T", mark)
	}
	for k, value := range values[1:] {
		switch encoded := value.(type) {
		case nil:
			rows[k] = simmatrix.Row{}
		case string:
			row, err := codec.Decode(encoded, maxRowBytes)
			if err != nil {
				return err
			}
			if row.IsZero() {
				return fmt.Errorf("%w: it is empty", simmatrix.ErrRow)
			}
			rows[k] = row
		default:
			return fmt.Errorf("a row is a %T", value)
		}
	}
	return nil
}
