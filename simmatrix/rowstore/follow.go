package rowstore

import (
	"context"
	"errors"
	"fmt"
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
	// drop takes the served version away: there is none.
	drop bool
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

// An activeState is what Redis says of one name.
type activeState struct {
	active *redis.StringCmd // the active ID
	mark   *redis.StringCmd // the mark of the version followed so far, nil without one
}

// poll asks for all active versions in one pipeline and reports what it finds.
func (r *remote) poll(ctx context.Context, tell func(report)) {
	states, err := r.states(ctx)
	if ctx.Err() != nil { // closing
		return
	}
	if err != nil {
		r.tellUnavailable(err, tell)
		return
	}
	r.polled = true
	for i, state := range states {
		rep, err := r.examine(ctx, i, state)
		if errors.Is(err, ErrUnavailable) {
			r.tellUnavailable(err, tell)
			return
		}
		rep.name, rep.err = r.names[i], err
		tell(rep)
	}
}

func (r *remote) states(ctx context.Context) ([]activeState, error) {
	states := make([]activeState, len(r.names))
	err := r.call(ctx, func(ctx context.Context) error {
		pipe := r.client.Pipeline()
		for i, name := range r.names {
			states[i].active = pipe.Get(ctx, activeKey(name))
			if v := r.current[i]; v != nil {
				states[i].mark = pipe.HGet(ctx, rowsKey(name, v.id), completeField)
			}
		}
		return execute(ctx, pipe)
	})
	if refusal(err) {
		err = nil // the commands' own errors say which
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

// tellUnavailable reports that Redis is away, for all names. A single failure
// is not reported, but for the first poll, which has nothing else to say: the
// breaker decides.
func (r *remote) tellUnavailable(err error, tell func(report)) {
	first := !r.polled
	r.polled = true
	if !first && r.breaker.State() == gobreaker.StateClosed {
		return
	}
	for _, name := range r.names {
		tell(report{name: name, err: err})
	}
}

// examine returns what is to be done for the i-th name.
func (r *remote) examine(ctx context.Context, i int, s activeState) (report, error) {
	id, err := s.active.Result()
	if err == nil {
		err = checkName("version", id)
	}
	old := r.current[i]
	switch {
	case errors.Is(err, redis.Nil):
		r.current[i] = nil
		return report{drop: true}, fmt.Errorf("%w: push and activate one", ErrNoVersion)
	case err != nil:
		return report{}, fmt.Errorf("%w: active version: %w", ErrBadVersion, err)
	case old == nil || old.id != id:
		v, err := r.load(ctx, r.names[i], id)
		if err != nil {
			return report{}, err
		}
		r.current[i] = v
		return report{version: v}, nil
	case s.mark == nil || s.mark.Err() != nil || s.mark.Val() != id:
		return report{}, fmt.Errorf("%w: %s", ErrGone, id)
	default:
		// A version does not change, so one bad row is told until another
		// version is active.
		if bad := old.bad.Load(); bad != nil {
			return report{}, *bad
		}
		return report{}, nil
	}
}

// load reads the header of a version and checks that its rows are there.
func (r *remote) load(ctx context.Context, name, id string) (*version, error) {
	var meta, mark *redis.StringCmd
	err := r.call(ctx, func(ctx context.Context) error {
		pipe := r.client.Pipeline()
		meta = pipe.Get(ctx, metaKey(name, id))
		mark = pipe.HGet(ctx, rowsKey(name, id), completeField)
		return execute(ctx, pipe)
	})
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if meta.Err() != nil || mark.Err() != nil || mark.Val() != id {
		return nil, fmt.Errorf("%w: %s", ErrGone, id)
	}
	parsed, err := parseVersion(id, meta.Val())
	if err != nil {
		return nil, err
	}
	v := &version{name: name, id: id, label: name + "@" + id, meta: parsed.Meta, checksum: parsed.Checksum}
	v.fetch = func(ctx context.Context, terms []string) ([]simmatrix.Row, error) {
		return r.fetch(ctx, v, terms)
	}
	return v, nil
}
