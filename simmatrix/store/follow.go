package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// breakerFailures in a row open the breaker, as one can be a lost packet;
	// breakerOpen is the time without calls before the next try.
	breakerFailures, breakerOpen = 3, 500 * time.Millisecond
	// maxFallbacks bounds the earlier versions that are tried for a damaged one.
	maxFallbacks = 8
	// warmFor bounds how long a version waits for the rows of frequent terms,
	// warmTerms is how many are read in one round trip, to keep within its timeout.
	warmFor, warmTerms = time.Second, 32
)

// Errors of a look-up. The search goes on unexpanded.
var (
	// ErrUnavailable says that Redis did not answer in time, or was not asked
	// because the breaker is open.
	ErrUnavailable = errors.New("the row store is unavailable")
	// ErrBadRow says that Redis has something that is not a row.
	ErrBadRow = errors.New("the row store holds a bad row")
	// ErrMissingRows says that Redis lacks rows that were pushed, or has another
	// number of them, so that a missing row proves nothing.
	ErrMissingRows = errors.New("the row store has lost rows")
	// ErrGone says that the version is no longer in Redis: deleted, evicted or
	// flushed.
	ErrGone = errors.New("the version is gone from the row store")
	// ErrNoVersion says that no version of the matrix is active.
	ErrNoVersion = errors.New("no version is active")
)

// A remote reads rows from Redis and follows the active versions.
type remote struct {
	client   redis.UniversalClient
	codec    simmatrix.RowCodec
	timeout  time.Duration
	breaker  *gobreaker.CircuitBreaker[struct{}]
	cache    *cache
	flights  singleflight.Group
	guard    *recovery.Guard
	last     atomic.Pointer[error] // the latest that counts against Redis: why the breaker is open
	failures atomic.Int64          // calls that failed or were not made
	badRows  atomic.Int64          // answers with something that is not a row

	// What only the poll touches.
	names  []*followed
	polled bool
	loads  int // versions read so far
}

// A followed is the state of a matrix name.
type followed struct {
	name   string
	active string // the active ID when last seen
	// version is the one that is served, nil before the first: not the active
	// one if that is damaged, but a damaged one if there is no sound one.
	version *version
	left    map[string]*remains // by ID
}

// A remains is what is kept of a version also if it is left or cannot be taken
// up: its set of terms, as far as read, and those whose rows were bad or
// missing.
type remains struct {
	terms    termSet
	suspects []string
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
// terms share one round trip and its rows. It outlives them up to the timeout,
// so that the cache fills even if the search could not wait.
func (r *remote) fetch(ctx context.Context, v *version, terms []string) ([]simmatrix.Row, error) {
	detached := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	flight := r.flights.DoChan(fmt.Sprintf("%s %q", v.key, terms), func() (any, error) {
		var rows []simmatrix.Row
		err := r.guard.Do("reading rows", func() (err error) { // singleflight would end the process with a panic
			if rows, err = r.read(detached, v, terms); err == nil {
				r.cache.add(v.key, terms, rows)
			}
			return err
		})
		if errors.Is(err, ErrGone) {
			r.failures.Add(1)
		} else if err != nil && !errors.Is(err, ErrUnavailable) { // which call has counted
			r.badRows.Add(1)
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
	rows, bad, err := a.rows(&r.codec, &v.Version, v.kept.terms, terms)
	if err == nil {
		return rows, nil
	}
	of := about(v.label, err)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrMissingRows) || errors.Is(err, simmatrix.ErrRow) { // else it is not about rows
		v.setDamage(of, bad)
	}
	return nil, of
}

// about adds the version to an error, and wraps [ErrBadRow] if Redis answered
// with something that is not a row.
func about(label string, err error) error {
	if errors.Is(err, ErrGone) || errors.Is(err, ErrMissingRows) {
		return fmt.Errorf("%w: %s", err, label)
	}
	return fmt.Errorf("%w: %s: %w", ErrBadRow, label, err)
}

// poll asks for all active versions in one pipeline and reports what it finds.
func (r *remote) poll(ctx context.Context, report reporter) {
	actives, states := make([]*redis.StringCmd, len(r.names)), make([]answer, len(r.names))
	err := r.call(ctx, func(ctx context.Context) error {
		pipe := r.client.Pipeline()
		for i, f := range r.names {
			actives[i] = pipe.Get(ctx, activeKey(f.name))
			if f.version != nil {
				states[i] = ask(ctx, pipe, rowsKey(f.name, f.version.ID), nil)
			}
		}
		return execute(ctx, pipe)
	})
	if ctx.Err() != nil { // closing
		return
	}
	first := !r.polled && errors.Is(err, ErrUnavailable)
	r.polled = true
	for i, f := range r.names {
		if errors.Is(err, ErrUnavailable) {
			break
		}
		var v *version
		if v, err = r.examine(ctx, f, actives[i], states[i]); !errors.Is(err, ErrUnavailable) {
			report(f.name, v, err)
		}
	}
	if !errors.Is(err, ErrUnavailable) {
		return
	}
	// Where a version is served, a single failure does not matter. Where none is
	// served, each is reported: Redis may always refuse one call of a poll, which
	// the breaker does not notice among those that succeed.
	for _, f := range r.names {
		if first || f.version == nil || r.breaker.State() != gobreaker.StateClosed {
			report(f.name, nil, err)
		}
	}
}

// examine returns the version to serve from now on, nil for no change, and
// what is wrong with Redis or the active version.
func (r *remote) examine(ctx context.Context, f *followed, active *redis.StringCmd, state answer) (*version, error) {
	id, err := active.Result()
	if err == nil {
		err = checkName("version", id)
	}
	switch {
	case errors.Is(err, redis.Nil):
		f.version = nil
		return nil, fmt.Errorf("%w: push and activate one", ErrNoVersion)
	case err != nil:
		return nil, fmt.Errorf("%w: active version: %w", ErrBadVersion, err)
	case f.active != id:
		f.active = id
		clear(f.left)
	}
	if v := f.version; v != nil {
		if _, _, err := state.rows(&r.codec, &v.Version, nil, nil); err != nil {
			v.setDamage(about(v.label, err), nil)
		}
		f.suspect(v)
	}
	sound := f.version != nil && f.version.damage.Load() == nil
	if sound && f.version.ID == id {
		return nil, nil
	}
	v, err := r.load(ctx, f, id)
	if err != nil && !sound && !errors.Is(err, ErrUnavailable) {
		var fallbackErr error
		if v, fallbackErr = r.lastGood(ctx, f); fallbackErr != nil {
			return nil, fallbackErr
		}
	}
	if v != nil {
		f.version = v
	}
	return v, err
}

// suspect keeps what is known of v if it was found damaged.
func (f *followed) suspect(v *version) {
	if d := v.damage.Load(); d != nil {
		f.left[v.ID] = v.kept
		if v.kept.suspects == nil {
			v.kept.suspects = d.terms
		}
	}
}

// lastGood returns the most recent sound version that was active before the
// current one, nil if there is none.
func (r *remote) lastGood(ctx context.Context, f *followed) (*version, error) {
	var ids []string
	err := r.call(ctx, func(ctx context.Context) (err error) {
		ids, err = r.client.LRange(ctx, historyKey(f.name), 0, maxFallbacks-1).Result()
		return err
	})
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	for _, id := range ids {
		if id == f.active || checkName("version", id) != nil {
			continue
		}
		if v, err := r.load(ctx, f, id); err == nil || errors.Is(err, ErrUnavailable) {
			return v, err
		}
	}
	return nil, nil
}

// load reads the header and the terms of a version and checks that its rows
// are there and that those once bad are good. It reads the rows of frequent
// terms, so that the first searches find them in the cache. A load that fails
// goes on next time where it was.
func (r *remote) load(ctx context.Context, f *followed, id string) (*version, error) {
	var meta *redis.StringCmd
	var state answer
	err := r.call(ctx, func(ctx context.Context) (err error) {
		meta, state, err = readHeader(ctx, r.client, f.name, id, nil)
		return err
	})
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	label := f.name + "@" + id
	if meta.Err() != nil {
		return nil, about(label, ErrGone)
	}
	parsed, err := parseVersion(id, meta.Val())
	if err != nil {
		return nil, err
	}
	left := f.left[id]
	if left == nil {
		left = new(remains)
		f.left[id] = left
	}
	if _, _, err = state.rows(&r.codec, &parsed, nil, nil); err == nil {
		err = readTerms(ctx, r.client, f.name, &parsed, &left.terms, r.call)
	}
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, about(label, err)
	}
	r.loads++
	v := &version{Version: parsed, name: f.name, label: label, key: label + "#" + strconv.Itoa(r.loads), kept: left}
	v.fetch = func(ctx context.Context, terms []string) ([]simmatrix.Row, error) { return r.fetch(ctx, v, terms) }
	if len(left.suspects) > 0 {
		_, err = r.read(ctx, v, left.suspects)
	}
	if err == nil {
		err = r.warm(ctx, v)
	}
	f.suspect(v)
	if err != nil {
		return nil, err
	}
	delete(f.left, id)
	left.suspects = nil
	return v, nil
}

// warm puts the rows of the frequent terms into the cache. Its error says that
// v is damaged; a slow Redis is no error, since searches can read the rows.
func (r *remote) warm(ctx context.Context, v *version) error {
	ctx, cancel := context.WithTimeout(ctx, warmFor)
	defer cancel()
	for terms := range slices.Chunk(v.Frequent, warmTerms) {
		rows, err := r.read(ctx, v, terms)
		if errors.Is(err, ErrUnavailable) {
			return nil
		}
		if err == nil && slices.ContainsFunc(rows, simmatrix.Row.IsZero) { // of a version without a set of terms
			err = about(v.label, fmt.Errorf("%w: of terms that the header names", ErrMissingRows))
		}
		if err != nil {
			return err
		}
		r.cache.add(v.key, terms, rows)
	}
	return nil
}
