package rowstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/akin-search/akin/simmatrix"
)

// A report is what a source has found out about a matrix.
type report struct {
	name string
	// version is served from now on; nil keeps what is served.
	version *version
	// drop ends serving the version: there is none.
	drop bool
	// damaged says that the served version is damaged and there is no other.
	damaged bool
	// err is what is wrong, nil where all is well.
	err error
}

// every calls poll at that interval until ctx ends.
func every(ctx context.Context, interval time.Duration, poll func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			poll(ctx)
		}
	}
}

// A followed is the state of a matrix name.
type followed struct {
	name   string
	active string // the active ID when last seen
	// version is the one that is served, nil before the first: not the active
	// one if that is damaged, but a damaged one if there is no sound one.
	version *version
	// left has the versions that were left or could not be taken up, by ID.
	left map[string]*remains
}

// A remains is what is kept of a version that is not used.
type remains struct {
	// suspects are the terms whose rows were bad or missing when the version was
	// left: it is used again when they are good.
	suspects []string
	terms    termSet // as far as it has been read
}

// An activeState is what Redis says of one name.
type activeState struct {
	active *redis.StringCmd // the active ID
	rows   rowsState        // of the version followed so far
}

// A rowsState is what Redis says of the hash of a version's rows; nil where it
// was not asked.
type rowsState struct {
	mark   *redis.StringCmd
	fields *redis.IntCmd
}

func askState(ctx context.Context, pipe redis.Pipeliner, name, id string) rowsState {
	key := rowsKey(name, id)
	return rowsState{pipe.HGet(ctx, key, completeField), pipe.HLen(ctx, key)}
}

// A header is what Redis says of one version.
type header struct {
	meta *redis.StringCmd
	rows rowsState
}

// readHeader reads one. Its error is that of execute.
func readHeader(ctx context.Context, client redis.UniversalClient, name, id string) (header, error) {
	pipe := client.Pipeline()
	h := header{pipe.Get(ctx, metaKey(name, id)), askState(ctx, pipe, name, id)}
	return h, execute(ctx, pipe)
}

// check returns an error that wraps [ErrGone] or [ErrMissingRows] where the
// rows of v are not all there.
func (s rowsState) check(name string, v *Version) error {
	err := ErrGone
	if s.mark.Err() == nil && s.mark.Val() == v.ID && s.fields.Err() == nil {
		err = v.checkFields(s.fields.Val())
	}
	if err != nil {
		return about(name+"@"+v.ID, err)
	}
	return nil
}

// poll asks for all active versions in one pipeline and reports what it finds.
func (r *remote) poll(ctx context.Context, send func(report)) {
	states, err := r.states(ctx)
	if ctx.Err() != nil { // closing
		return
	}
	if err != nil {
		r.reportUnavailable(err, send)
		return
	}
	r.polled = true
	for i, f := range r.names {
		rep, err := r.examine(ctx, f, states[i])
		if errors.Is(err, ErrUnavailable) {
			r.reportUnavailable(err, send)
			return
		}
		rep.name, rep.err = f.name, err
		send(rep)
	}
}

func (r *remote) states(ctx context.Context) ([]activeState, error) {
	states := make([]activeState, len(r.names))
	err := r.call(ctx, func(ctx context.Context) error {
		pipe := r.client.Pipeline()
		for i, f := range r.names {
			states[i].active = pipe.Get(ctx, activeKey(f.name))
			if f.version != nil {
				states[i].rows = askState(ctx, pipe, f.name, f.version.ID)
			}
		}
		return execute(ctx, pipe)
	})
	if refusal(err) {
		err = nil // the commands' own errors say more
	}
	return states, err
}

// execute runs the pipeline. It returns the first error that counts against
// Redis, else one that is an answer about a key, if any.
func execute(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, err := pipe.Exec(ctx)
	for _, cmd := range cmds {
		if e := cmd.Err(); e != nil && !refusal(e) {
			return e
		}
	}
	return err
}

// reportUnavailable reports that Redis is unavailable, for all names. Where a
// version is served, that is only at the first poll or when the breaker is
// open: a single failure does not matter. Where none is served, it is each
// time: Redis may always refuse one call of a poll, which the breaker does not
// notice among those that succeed.
func (r *remote) reportUnavailable(err error, send func(report)) {
	first := !r.polled
	r.polled = true
	quiet := !first && r.breaker.State() == gobreaker.StateClosed
	for _, f := range r.names {
		if !quiet || f.version == nil {
			send(report{name: f.name, err: err})
		}
	}
}

// examine returns what to do for a name, and what is wrong with Redis or the
// active version.
func (r *remote) examine(ctx context.Context, f *followed, s activeState) (report, error) {
	id, err := s.active.Result()
	if err == nil {
		err = checkName("version", id)
	}
	switch {
	case errors.Is(err, redis.Nil):
		f.version = nil
		return report{drop: true}, fmt.Errorf("%w: push and activate one", ErrNoVersion)
	case err != nil:
		return report{}, fmt.Errorf("%w: active version: %w", ErrBadVersion, err)
	case f.active != id:
		f.active = id
		clear(f.left)
	}
	if v := f.version; v != nil {
		if err := s.rows.check(f.name, &v.Version); err != nil {
			v.setDamage(err, nil)
		}
		f.suspect(v)
	}
	if f.sound() && f.version.ID == id {
		return report{}, nil
	}
	v, err := r.load(ctx, f, id)
	if err == nil {
		f.version = v
		return report{version: v}, nil
	}
	if errors.Is(err, ErrUnavailable) || f.sound() {
		return report{}, err
	}
	switch older, otherErr := r.lastGood(ctx, f); {
	case otherErr != nil:
		return report{}, otherErr
	case older != nil:
		f.version = older
		return report{version: older}, err
	}
	return report{damaged: true}, err
}

// sound reports whether a version is served that is not known to be damaged.
func (f *followed) sound() bool { return f.version != nil && f.version.damage.Load() == nil }

// suspect records the rows that were bad when v was found damaged, if it was.
func (f *followed) suspect(v *version) {
	if d := v.damage.Load(); d != nil {
		if left := f.remains(v.ID, v.terms); left.suspects == nil {
			left.suspects = d.terms
		}
	}
}

// remains returns what is kept of a version, terms if nothing was kept yet.
func (f *followed) remains(id string, terms termSet) *remains {
	if f.left[id] == nil {
		f.left[id] = &remains{terms: terms}
	}
	return f.left[id]
}

// maxFallbacks bounds the earlier versions that are tried in place of a damaged
// one.
const maxFallbacks = 8

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

// load reads the header and the terms of a version and checks that its rows are
// there and that those once bad are good. It reads the rows of frequent terms,
// so that the first searches find them in the cache. A load that fails goes on
// next time where it was.
func (r *remote) load(ctx context.Context, f *followed, id string) (*version, error) {
	var h header
	err := r.call(ctx, func(ctx context.Context) (err error) {
		h, err = readHeader(ctx, r.client, f.name, id)
		return err
	})
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	label := f.name + "@" + id
	if h.meta.Err() != nil {
		return nil, about(label, ErrGone)
	}
	parsed, err := parseVersion(id, h.meta.Val())
	if err == nil {
		err = h.rows.check(f.name, &parsed)
	}
	if err != nil {
		return nil, err
	}
	left := f.remains(id, nil)
	err = readTerms(ctx, r.client, f.name, &parsed, &left.terms, r.call)
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, about(label, err)
	}
	r.loads++
	v := &version{Version: parsed, name: f.name, label: label, key: label + "#" + strconv.Itoa(r.loads), terms: left.terms}
	v.fetch = func(ctx context.Context, terms []string) ([]simmatrix.Row, error) {
		return r.fetch(ctx, v, terms)
	}
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
	return v, nil
}

const (
	// warmFor bounds how long a version waits for the rows of frequent terms.
	warmFor = time.Second
	// warmTerms is how many are read in one round trip, to keep within its
	// timeout.
	warmTerms = 32
)

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
		if err == nil && slices.ContainsFunc(rows, simmatrix.Row.IsZero) {
			err = about(v.label, fmt.Errorf("%w: of terms that the header names", ErrMissingRows))
		}
		if err != nil {
			return err
		}
		r.cache.add(v.key, terms, rows)
	}
	return nil
}
