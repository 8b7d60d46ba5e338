package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// followEvery leaves three polls to notice a switch within a second.
	followEvery = 250 * time.Millisecond
	// breakerFailures in a row open the breaker; a single one may be a lost
	// packet. breakerOpen is the time without calls before the next try.
	breakerFailures, breakerOpen = 3, 500 * time.Millisecond
	// maxFallbacks limits the earlier versions that are tried for a damaged one.
	maxFallbacks = 8
	// warmFor limits how long a version waits for the rows of frequent terms.
	// warmTerms is the number read per round trip, to keep within its timeout.
	warmFor, warmTerms = time.Second, 32
)

// A remote reads rows from Redis and follows the active versions.
type remote struct {
	client   redis.UniversalClient
	codec    simmatrix.RowCodec
	timeout  time.Duration
	breaker  *gobreaker.CircuitBreaker[struct{}]
	cache    *rowCache
	last     atomic.Pointer[error] // latest that counts against Redis: why the breaker is open
	failures atomic.Int64          // calls that failed or were not made
	badRows  atomic.Int64          // answers with something other than a row

	// mostWords limits the memory of a matrix's known words; 0 if they are unused.
	mostWords uint64

	// Used only by the poll.
	names  []*followed
	polled bool
}

// A followed is the state of a matrix's name.
type followed struct {
	name   string
	active string // the last active ID seen
	// version is the one served; nil before the first. If the active one is
	// damaged, it is another one, or a damaged one if none is sound.
	version *version
	left    map[string]*remains // by ID
	words   wordReader
}

func newRemote(at Redis, timeout time.Duration, names []string, c *rowCache) (*remote, error) {
	client, err := newClient(at, timeout)
	if err != nil {
		return nil, err
	}
	r := &remote{
		client: client, timeout: timeout, cache: c,
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

// fetch reads rows of v, shares reads with other callers, and waits for all. It
// continues up to the timeout after its caller has left, so that the cache
// fills anyway.
func (r *remote) fetch(ctx context.Context, v *version, terms []string) ([]simmatrix.Row, error) {
	questions := make([]question, len(terms))
	for k, term := range terms {
		questions[k] = question{v.number, strings.Clone(term)} // it may be part of a larger text
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var found map[question]simmatrix.Row
	err := r.cache.loader.Run(ctx, "", func(ctx context.Context) (err error) {
		found, err = cache.GetAll(ctx, r.cache.kept, questions, func(ctx context.Context, missing []question) (map[question]simmatrix.Row, error) {
			return r.answer(ctx, v, missing)
		})
		return err
	})
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, cache.ErrClosed)
	switch {
	case ended && !errors.Is(err, ErrUnavailable):
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return nil, err
	}
	rows := make([]simmatrix.Row, len(terms))
	for k, q := range questions {
		rows[k] = found[q]
	}
	return rows, nil
}

// answer reads the rows of some terms of v, and counts failures.
func (r *remote) answer(ctx context.Context, v *version, questions []question) (map[question]simmatrix.Row, error) {
	terms := make([]string, len(questions))
	for k, q := range questions {
		terms[k] = q.term
	}
	rows, err := r.read(ctx, v, terms)
	switch {
	case errors.Is(err, ErrGone):
		r.failures.Add(1)
	case err != nil && !errors.Is(err, ErrUnavailable): // counted by call
		r.badRows.Add(1)
	}
	found := make(map[question]simmatrix.Row, len(rows))
	for k, row := range rows {
		found[questions[k]] = row
	}
	return found, err
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
// with something other than a row.
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
		r.readWords(ctx, f)
	}
	if !errors.Is(err, ErrUnavailable) {
		return
	}
	// If a version is served, a single failure does not matter. If none is, each
	// is reported: Redis may always refuse one call of a poll, which the breaker
	// does not notice among those that succeed.
	for _, f := range r.names {
		if first || f.version == nil || r.breaker.State() != gobreaker.StateClosed {
			report(f.name, nil, err)
		}
	}
}

// examine returns the version to serve from now on, nil for no change, and what
// is wrong with Redis or the active version.
func (r *remote) examine(ctx context.Context, f *followed, active *redis.StringCmd, state answer) (*version, error) {
	id, err := active.Result()
	if err == nil {
		err = checkName("version", id)
	}
	switch {
	case errors.Is(err, redis.Nil):
		f.version, f.words = nil, wordReader{}
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
		f.version, f.words = v, wordReader{}
		if why := r.whyNoWords(&v.Version); why != "" {
			v.noWords.Store(&why)
		} else if r.mostWords > 0 {
			f.words.version = v
		}
		r.boundRows() // without the words of the previous version
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

// lastGood returns the last sound version active before the current one, or
// nil.
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

// load reads the header and the terms of a version. It checks that its rows are
// there and that those once bad are good. It reads the rows of frequent terms,
// so that the first searches find them cached. After a failure it continues
// where it was.
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
	v := r.cache.version(f.name, parsed)
	v.kept = left
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

// warm caches the rows of the frequent terms. An error means that v is damaged;
// a slow Redis is not an error, because searches can read the rows.
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
		r.cache.add(v, terms, rows)
	}
	return nil
}
