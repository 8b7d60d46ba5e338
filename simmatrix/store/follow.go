package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

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
	// mostLookUp limits a look-up of rows for a search that has more time than
	// usual, as with cold caches.
	mostLookUp = time.Second
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
	// suspects are the terms whose rows were bad or missing, by version. They must
	// be good before it is served.
	suspects map[string][]string
	terms    termReader // of the version that was loaded last
	words    wordReader
}

func newRemote(at Redis, timeout time.Duration, names []string, c *rowCache) (*remote, error) {
	client, err := NewClient(at, max(timeout, mostLookUp)) // each call has its own limit
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
		r.names = append(r.names, &followed{name: name, suspects: make(map[string][]string)})
	}
	return r, nil
}

// within returns how long a look-up for a caller may take: three fifths of the
// time that the caller has, so that there is time left for the rest, but not
// less than the timeout, which is that part of the usual time.
func (r *remote) within(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return r.timeout
	}
	return max(r.timeout, min(time.Until(deadline)*3/5, mostLookUp))
}

// call sends what queue puts into a pipeline, through the breaker, in one round
// trip within some time. Errors wrap [ErrUnavailable], except those that are
// an answer, see refusal.
func (r *remote) call(ctx context.Context, within time.Duration, queue func(redis.Pipeliner)) error {
	_, err := r.breaker.Execute(func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		pipe := r.client.Pipeline()
		queue(pipe)
		err := failure(pipe.Exec(ctx))
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

// field reads a field of a hash.
func (r *remote) field(ctx context.Context, key, field string) (string, error) {
	var value *redis.StringCmd
	if err := r.call(ctx, r.timeout, func(pipe redis.Pipeliner) { value = pipe.HGet(ctx, key, field) }); err != nil {
		return "", err
	}
	return value.Val(), nil
}

// read asks Redis for rows of v, within some time. must reports whether there
// has to be a row of a term. After the first answer that shows damage, v
// returns no more rows, see [version.damage].
func (r *remote) read(
	ctx context.Context, within time.Duration, v *version, questions []question, must func(term string) bool,
) (map[question]simmatrix.Row, error) {
	terms := make([]string, len(questions))
	for k, q := range questions {
		terms[k] = q.term
	}
	var a answer
	err := r.call(ctx, within, func(pipe redis.Pipeliner) { a = ask(ctx, pipe, rowsKey(v.name, v.ID), terms) })
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	rows, bad, err := a.rows(&r.codec, &v.Version, terms, must)
	if err != nil {
		of := about(v.label, err)
		if errors.Is(err, ErrGone) {
			r.failures.Add(1)
		} else {
			r.badRows.Add(1)
		}
		if errors.Is(err, ErrGone) || errors.Is(err, ErrMissingRows) || errors.Is(err, simmatrix.ErrRow) { // else it is not about rows
			v.setDamage(of, bad)
		}
		return nil, of
	}
	found := make(map[question]simmatrix.Row, len(rows))
	for k, row := range rows {
		found[questions[k]] = row
	}
	return found, nil
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
	err := r.call(ctx, r.timeout, func(pipe redis.Pipeliner) {
		for i, f := range r.names {
			actives[i] = pipe.Get(ctx, activeKey(f.name))
			if f.version != nil {
				states[i] = ask(ctx, pipe, rowsKey(f.name, f.version.ID), nil)
			}
		}
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
		clear(f.suspects)
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

// suspect remembers the bad and missing rows of v.
func (f *followed) suspect(v *version) {
	if d := v.damage.Load(); d != nil {
		f.suspects[v.ID] = d.terms
	}
}

// lastGood returns the last sound version active before the current one, or
// nil.
func (r *remote) lastGood(ctx context.Context, f *followed) (*version, error) {
	var ids *redis.StringSliceCmd
	err := r.call(ctx, r.timeout, func(pipe redis.Pipeliner) { ids = pipe.LRange(ctx, historyKey(f.name), 0, maxFallbacks-1) })
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	for _, id := range ids.Val() {
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
	suspects := f.suspects[id]
	err := r.call(ctx, r.timeout, func(pipe redis.Pipeliner) { meta, state = askHeader(ctx, pipe, f.name, id, suspects) })
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
	v := r.cache.version(f.name, parsed)
	v.remote = r
	if _, _, err = state.rows(&r.codec, &parsed, suspects, always); err == nil {
		err = f.terms.read(&parsed, func(field string) (string, error) { return r.field(ctx, rowsKey(f.name, id), field) })
		v.terms = f.terms.set
	}
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, about(label, err)
	}
	err = r.warm(ctx, v)
	f.suspect(v)
	if err != nil {
		return nil, err
	}
	delete(f.suspects, id)
	return v, nil
}

// always says that there has to be a row of every term.
func always(string) bool { return true }

// warm caches the rows of the frequent terms. An error means that v is damaged;
// a slow Redis is not an error, because searches can read the rows.
func (r *remote) warm(ctx context.Context, v *version) error {
	ctx, cancel := context.WithTimeout(ctx, warmFor)
	defer cancel()
	for terms := range slices.Chunk(v.Frequent, warmTerms) {
		questions := make([]question, len(terms))
		for k, term := range terms {
			questions[k] = question{v.number, term}
		}
		rows, err := r.read(ctx, r.timeout, v, questions, always)
		if errors.Is(err, ErrUnavailable) {
			return nil
		}
		if err != nil {
			return err
		}
		for q, row := range rows {
			r.cache.kept.Put(q, row, nil, 0)
		}
	}
	return nil
}
