package rowstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// unfinishedFor is the expiry of the keys of an unfinished push. Every
	// batch renews it.
	unfinishedFor = 10 * time.Minute
	// batchBytes is the size of one command: large enough to make the round
	// trip cheap, small enough for Redis to answer searches in between.
	batchBytes = 256 << 10
	// discardTimeout bounds the cleanup after a push that failed.
	discardTimeout = time.Second
	// patience is how long a batch is retried while Redis is unavailable: longer
	// than a failover takes, some 35 seconds with Sentinel's defaults, 15 with a
	// cluster.
	patience = time.Minute
	// retryAfter is the pause before a batch is retried.
	retryAfter = 250 * time.Millisecond
	// maxRounds is how often all rows are sent. Some are missing if a replica
	// became the master before it had them.
	maxRounds = 2
)

// Errors of a push.
var (
	// ErrBadMatrix is wrapped by the errors for a matrix that cannot be served.
	ErrBadMatrix = errors.New("the matrix cannot be pushed")
	// ErrNoMemory is wrapped by the errors for a Redis that is full.
	ErrNoMemory = errors.New("Redis has no memory left (maxmemory): prune old versions or give it more")
)

// errIncomplete says that Redis has another number of rows than were sent.
var errIncomplete = errors.New("rows were lost on the way; was Redis flushed, or does it evict?")

// register makes a version complete when it has ARGV[2] rows and chunks: permanent, marked
// and listed at ARGV[3] milliseconds since 1970, all at once. It returns the
// number of rows, or -1 where the header is missing. A version that is complete
// stays so: the answer to the first call may have been lost.
var register = redis.NewScript(`
if redis.call('EXISTS', KEYS[2]) == 0 then
	return -1
end
local rows = redis.call('HLEN', KEYS[1])
if redis.call('HEXISTS', KEYS[1], '') == 1 then
	rows = rows - 1
end
if rows == tonumber(ARGV[2]) then
	redis.call('HSET', KEYS[1], '', ARGV[1])
	redis.call('PERSIST', KEYS[1])
	redis.call('PERSIST', KEYS[2])
	redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
end
return rows
`)

// discard removes what a push has written, unless it was made active.
var discard = redis.NewScript(`
if redis.call('GET', KEYS[5]) ~= ARGV[1] then
	redis.call('ZREM', KEYS[3], ARGV[1])
	redis.call('UNLINK', KEYS[1], KEYS[2])
end
return 1
`)

// PushOptions are the settings of [Admin.Push]. The zero value is valid.
type PushOptions struct {
	// By says who pushes, such as user@host, for [Version.By]: at most 256
	// bytes without control characters.
	By string
	// Progress, if not nil, receives the stages "check", "push" and, where
	// something has to be sent again, "push again", in rows, and of "wait for
	// Redis" while it is unavailable.
	Progress simmatrix.Progress
}

// Push writes m as a new version of the named matrix and returns it, complete
// but not active. Memory is bounded by one batch and
// 24 bytes per term. A matrix that cannot be
// served is refused, before any call to Redis, with an error that wraps
// [ErrBadMatrix].
//
// Once Redis has accepted the header, a batch that fails is sent again for up
// to a minute, as after a failover, and rows lost with a master are sent once
// more at the end. When Push fails or ctx ends, what it has written is removed,
// or expires within ten minutes if Redis cannot be reached; other versions are
// never touched.
func (a *Admin) Push(ctx context.Context, name string, m *simmatrix.Matrix, o PushOptions) (Version, error) {
	if err := errors.Join(checkName("matrix", name), checkBy(o.By)); err != nil {
		return Version{}, err
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	frequent, err := checkMatrix(ctx, m, a.frequent, o.Progress)
	if err != nil {
		return Version{}, fmt.Errorf("push matrix %s: %w", name, err)
	}
	now := time.Now().UTC()
	p := &push{admin: a, matrix: m, progress: o.Progress, name: name, version: Version{
		ID: newID(now), Meta: m.Meta(), Checksum: m.Checksum(), Pushed: now, By: o.By, Format: metaFormat, Frequent: frequent,
	}}
	if err := p.run(ctx); err != nil {
		if redis.HasErrorPrefix(err, "OOM") {
			err = fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		return Version{}, fmt.Errorf("push matrix %s: %w", name, errors.Join(err, p.discard(ctx)))
	}
	return p.version, nil
}

// checkMatrix returns an error for what readers of rows would refuse, else the
// most frequent terms, up to most, as far as they fit into a header.
func checkMatrix(ctx context.Context, m *simmatrix.Matrix, most int, progress simmatrix.Progress) ([]string, error) {
	if m.Len() == 0 {
		return nil, fmt.Errorf("%w: it has no terms", ErrBadMatrix)
	}
	done := 0
	var frequent []simmatrix.TermRow // without neighbors
	for term, row := range m.Rows() {
		if len(row.Packed()) > maxRowBytes-checksumBytes {
			return nil, fmt.Errorf("%w: the row of %.80q has %d bytes, at most %d; build with a smaller --top",
				ErrBadMatrix, term, len(row.Packed()), maxRowBytes-checksumBytes)
		}
		if row.DocFreq() > 0 {
			frequent = append(frequent, simmatrix.TermRow{Term: term, DocFreq: row.DocFreq()})
		}
		if done++; done%10_000 == 0 {
			frequent = mostFrequent(frequent, most)
			progress("check", done, m.Len())
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
		}
	}
	progress("check", done, m.Len())
	var terms []string
	size := 0
	for _, t := range mostFrequent(frequent, most) {
		if size += len(t.Term); size > maxFrequentBytes {
			break
		}
		terms = append(terms, t.Term)
	}
	return terms, nil
}

const (
	// maxFrequent bounds the terms that a header names: few terms make up much of
	// the traffic, and their rows are read in milliseconds. maxFrequentBytes
	// bounds their size in the header.
	maxFrequent, maxFrequentBytes = 256, 16 << 10
)

// mostFrequent returns up to most terms with the highest document frequencies,
// ties in their order.
func mostFrequent(terms []simmatrix.TermRow, most int) []simmatrix.TermRow {
	slices.SortStableFunc(terms, func(a, b simmatrix.TermRow) int { return cmp.Compare(b.DocFreq, a.DocFreq) })
	return terms[:min(most, len(terms))]
}

// A push is one version being written.
type push struct {
	admin    *Admin
	matrix   *simmatrix.Matrix
	progress simmatrix.Progress
	name     string
	version  Version
	terms    termSet
	header   string
}

// run writes the version and registers it, with another round if rows were
// lost.
func (p *push) run(ctx context.Context) (err error) {
	if p.header, err = encodeVersion(p.version); err != nil {
		return err
	}
	p.terms = newTermSet(p.matrix, &p.version)
	// Not retried: an absent Redis is reported at once.
	if err := p.writeHeader(ctx); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	missing := errIncomplete
	for round := range maxRounds {
		stage := "push"
		if round > 0 {
			stage = "push again"
			if err := p.try(ctx, 0, p.writeHeader); err != nil {
				return fmt.Errorf("write the header again: %w", err)
			}
		}
		if err := p.write(ctx, stage); err != nil {
			return err
		}
		if missing = p.register(ctx); !errors.Is(missing, errIncomplete) {
			break
		}
	}
	return missing
}

func (p *push) writeHeader(ctx context.Context) error {
	return p.admin.do(ctx, func(ctx context.Context) error {
		return p.admin.client.Set(ctx, metaKey(p.name, p.version.ID), p.header, unfinishedFor).Err()
	})
}

// write sends all rows.
func (p *push) write(ctx context.Context, stage string) error {
	var batch []any // term, row, term, row, ...
	size, done := 0, 0
	flush := func() error {
		if err := p.try(ctx, done, func(ctx context.Context) error { return p.flush(ctx, batch) }); err != nil {
			return fmt.Errorf("after %d of %d rows: %w", done, p.matrix.Len(), err)
		}
		done += len(batch) / 2
		batch, size = batch[:0], 0
		p.progress(stage, min(done, p.matrix.Len()), p.matrix.Len())
		return nil
	}
	for field, sealed := range p.fields() {
		batch = append(batch, field, sealed)
		if size += len(field) + len(sealed); size >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}

// fields yields the rows and the set of terms, as Redis stores them.
func (p *push) fields() iter.Seq2[string, string] {
	return func(yield func(field, sealed string) bool) {
		for term, row := range p.matrix.Rows() {
			if !yield(term, seal(term, p.admin.codec.Encode(row))) {
				return
			}
		}
		for k := range p.terms {
			if !yield(p.terms.field(p.version.ID, k)) {
				return
			}
		}
	}
}

// flush writes one batch and renews the expiry of the unfinished version in one
// transaction: rows without an expiry could stay forever.
func (p *push) flush(ctx context.Context, batch []any) error {
	rows := rowsKey(p.name, p.version.ID)
	return p.admin.do(ctx, func(ctx context.Context) error {
		pipe := p.admin.client.TxPipeline()
		pipe.HSet(ctx, rows, batch...)
		pipe.PExpire(ctx, rows, unfinishedFor)
		pipe.PExpire(ctx, metaKey(p.name, p.version.ID), unfinishedFor)
		cmds, err := pipe.Exec(ctx)
		for _, cmd := range cmds { // the refusal of a command says more than EXECABORT
			if e := cmd.Err(); e != nil && !redis.HasErrorPrefix(e, "EXECABORT") {
				return e
			}
		}
		return err
	})
}

// try retries op, which is idempotent, after passing errors for as long as the
// admin is patient.
func (p *push) try(ctx context.Context, done int, op func(context.Context) error) error {
	var waiting time.Time
	for {
		err := op(ctx)
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		now := time.Now()
		if waiting.IsZero() {
			waiting = now
		}
		if now.Sub(waiting) > p.admin.patience {
			return fmt.Errorf("tried again for %v: %w", p.admin.patience, err)
		}
		p.progress("wait for Redis", done, p.matrix.Len())
		refresh(ctx, p.admin.client)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryAfter):
		}
	}
}

// passing reports whether a retry may succeed after err: the connection was
// lost, or another Redis is about to take over.
func passing(err error) bool {
	if errors.Is(err, errReply) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	if _, answered := errors.AsType[redis.Error](err); !answered {
		return true
	}
	for _, prefix := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

func (p *push) register(ctx context.Context) error {
	want := p.matrix.Len() + len(p.terms)
	var rows int
	err := p.try(ctx, p.matrix.Len(), func(ctx context.Context) (err error) {
		rows, err = p.admin.run(ctx, register, p.name, p.version.ID, want, p.version.Pushed.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("register the version: %w", err)
	}
	if rows != want {
		return fmt.Errorf("%w: %d rows of %d", errIncomplete, max(rows-len(p.terms), 0), p.matrix.Len())
	}
	return nil
}

// discard may run after ctx has ended, so it has a timeout of its own.
func (p *push) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if _, err := p.admin.run(ctx, discard, p.name, p.version.ID); err != nil {
		return fmt.Errorf("what was written goes away within %v, it could not be cleared away: %w", unfinishedFor, err)
	}
	return nil
}
