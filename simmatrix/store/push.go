package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// unfinishedFor is the expiry of an unfinished push's keys, renewed by
	// batches.
	unfinishedFor = 10 * time.Minute
	// batchBytes is the size of a command: large enough to make the round trip
	// cheap, small enough for Redis to answer searches in between.
	batchBytes = 256 << 10
	// discardTimeout limits the cleanup after a failed push.
	discardTimeout = time.Second
	// retryAfter is the pause between two tries of a batch, see patience.
	retryAfter = 250 * time.Millisecond
	// maxFrequentBytes limits the frequent terms in the header.
	maxFrequentBytes = 16 << 10
)

// Errors of a push: the matrix cannot be served, Redis is full, or it has
// another number of rows than were sent.
var (
	ErrBadMatrix  = errors.New("the matrix cannot be pushed")
	ErrNoMemory   = errors.New("Redis has no memory left (maxmemory): prune old versions or give it more")
	errIncomplete = errors.New("rows were lost on the way; was Redis flushed, or does it evict?")
)

// register completes a version that has ARGV[2] rows, forms and chunks: at once
// it makes the keys permanent, marks the version and lists it at ARGV[3]
// milliseconds since 1970. It returns their number, or -1 if the header is
// missing. A complete version stays complete: the answer to a first call may
// have been lost.
var register = redis.NewScript(`
if redis.call('EXISTS', KEYS[2]) == 0 then
	return -1
end
local fields = redis.call('HLEN', KEYS[1]) + redis.call('HLEN', KEYS[6]) + redis.call('HLEN', KEYS[7])
if redis.call('HEXISTS', KEYS[1], '') == 1 then
	fields = fields - 1
end
if fields == tonumber(ARGV[2]) then
	redis.call('HSET', KEYS[1], '', ARGV[1])
	redis.call('PERSIST', KEYS[1])
	redis.call('PERSIST', KEYS[2])
	redis.call('PERSIST', KEYS[6])
	redis.call('PERSIST', KEYS[7])
	redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
end
return fields
`)

// discard removes what a push has written, unless it was activated.
var discard = redis.NewScript(`
if redis.call('GET', KEYS[5]) ~= ARGV[1] then
	redis.call('ZREM', KEYS[3], ARGV[1])
	redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[6], KEYS[7])
end
return 1
`)

// Push writes m as a new version of the named matrix and returns it, complete
// but not active. by is who pushes, see [Version.By]. progress, which may be
// nil, gets the stages "check", "push" and, if something must be resent, "push
// again", in rows, and "wait for Redis" while it is unavailable. Memory is
// limited to one batch and 24 bytes per term. A matrix that cannot be served is
// refused, before any call to Redis, with an error that wraps [ErrBadMatrix].
//
// Once Redis has accepted the header, a failed batch is retried for up to a
// minute, as after a failover, and rows lost with a master are resent once at
// the end. If Push fails or ctx ends, what it has written is removed, or
// expires within ten minutes if Redis cannot be reached. It never touches other
// versions.
func (a *Admin) Push(ctx context.Context, name string, m *simmatrix.Matrix, by string, progress simmatrix.Progress) (Version, error) {
	return a.push(ctx, name, m, Version{By: by}, progress)
}

// push is Push, and takes By and Changed of the version.
func (a *Admin) push(ctx context.Context, name string, m *simmatrix.Matrix, as Version, progress simmatrix.Progress) (Version, error) {
	if err := errors.Join(checkName("matrix", name), checkBy(as.By)); err != nil {
		return Version{}, err
	}
	frequent, err := checkMatrix(ctx, m, a.frequent, progress)
	if err != nil {
		return Version{}, fmt.Errorf("push matrix %s: %w", name, err)
	}
	now := time.Now().UTC()
	meta := m.Meta()
	p := &push{admin: a, matrix: m, progress: progress, name: name, version: Version{
		ID: newID(now), Meta: meta, Checksum: m.Checksum(), Pushed: now, By: as.By, Changed: as.Changed, Format: formatOf(&meta), Frequent: frequent, Words: wordsOf(m),
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
// most frequent terms: as many as fit into a header, and no more than most.
func checkMatrix(ctx context.Context, m *simmatrix.Matrix, most int, progress simmatrix.Progress) (terms []string, err error) {
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
		if done++; done%10_000 == 0 || done == m.Len() {
			slices.SortStableFunc(frequent, func(a, b simmatrix.TermRow) int { return cmp.Compare(b.DocFreq, a.DocFreq) })
			frequent = frequent[:min(most, len(frequent))]
			progress.Report("check", done, m.Len())
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
		}
	}
	size := 0
	for _, t := range frequent {
		if size += len(t.Term); size > maxFrequentBytes {
			break
		}
		terms = append(terms, t.Term)
	}
	return terms, nil
}

// A push is a version being written.
type push struct {
	admin    *Admin
	matrix   *simmatrix.Matrix
	progress simmatrix.Progress
	name     string
	version  Version
	terms    [][]byte // chunks of the set of terms
	header   string
	done     int // fields sent
}

// run writes the version and registers it. If rows were lost, e.g. because a
// replica became the master before it had them, it tries once more.
func (p *push) run(ctx context.Context) (err error) {
	if p.header, err = encodeVersion(p.version); err != nil {
		return err
	}
	p.terms = termChunks(p.matrix, &p.version)
	for _, stage := range []string{"push", "push again"} {
		if err = p.write(ctx, stage); err == nil {
			err = p.register(ctx)
		}
		if !errors.Is(err, errIncomplete) {
			break
		}
	}
	return err
}

// write sends header and rows, then the set of terms, the forms and the words.
func (p *push) write(ctx context.Context, stage string) error {
	p.done = 0
	if err := p.writeHash(ctx, stage, rowsKey(p.name, p.version.ID), p.rows()); err != nil {
		return err
	}
	if err := p.writeHash(ctx, stage, formsKey(p.name, p.version.ID), p.matrix.Forms()); err != nil {
		return err
	}
	return p.writeHash(ctx, stage, wordsKey(p.name, p.version.ID), chunksOfWords(p.version.ID, p.matrix))
}

func (p *push) rows() iter.Seq2[string, string] {
	return func(yield func(field, value string) bool) {
		for term, row := range p.matrix.Rows() {
			if !yield(term, seal(term, p.admin.codec.Encode(row))) {
				return
			}
		}
		for k, chunk := range p.terms {
			field := chunkField + strconv.Itoa(k)
			if !yield(field, seal(p.version.ID+field, string(chunk))) {
				return
			}
		}
	}
}

func (p *push) writeHash(ctx context.Context, stage, key string, fields iter.Seq2[string, string]) error {
	var batch []any // field, value, field, value, ...
	size, total := 0, p.matrix.Len()
	flush := func() (err error) {
		send := func(ctx context.Context) error { return p.send(ctx, key, batch) }
		if p.done == 0 && stage == "push" { // report an absent Redis at once
			err = send(ctx)
		} else {
			err = p.try(ctx, min(p.done, total), send)
		}
		if err != nil {
			return fmt.Errorf("after %d of %d rows: %w", min(p.done, total), total, err)
		}
		p.done += len(batch) / 2
		batch, size = batch[:0], 0
		p.progress.Report(stage, min(p.done, total), total)
		return nil
	}
	for field, value := range fields {
		batch, size = append(batch, field, value), size+len(field)+len(value)
		if size >= batchBytes {
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

// send writes one batch, with the first one also the header, and renews the
// expiry of the unfinished version, in one transaction: rows without expiry
// could stay forever.
func (p *push) send(ctx context.Context, key string, batch []any) error {
	meta, keys := metaKey(p.name, p.version.ID), []string{rowsKey(p.name, p.version.ID)}
	if key != keys[0] {
		keys = append(keys, key)
	}
	return p.admin.do(ctx, func(ctx context.Context) error {
		pipe := p.admin.client.TxPipeline()
		if p.done == 0 {
			pipe.Set(ctx, meta, p.header, unfinishedFor)
		}
		pipe.HSet(ctx, key, batch...)
		for _, k := range append(keys, meta) {
			pipe.PExpire(ctx, k, unfinishedFor)
		}
		cmds, err := pipe.Exec(ctx)
		for _, cmd := range cmds { // a command's refusal says more than EXECABORT
			if e := cmd.Err(); e != nil && !redis.HasErrorPrefix(e, "EXECABORT") {
				return e
			}
		}
		return err
	})
}

// try retries the idempotent op after transient errors, with admin.patience.
func (p *push) try(ctx context.Context, done int, op func(context.Context) error) error {
	for end := (time.Time{}); ; {
		err := op(ctx)
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		if now := time.Now(); end.IsZero() {
			end = now.Add(p.admin.patience)
		} else if now.After(end) {
			return fmt.Errorf("tried again for %v: %w", p.admin.patience, err)
		}
		p.progress.Report("wait for Redis", done, p.matrix.Len())
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
	_, answered := errors.AsType[redis.Error](err)
	return !answered || slices.ContainsFunc([]string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK"},
		func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

func (p *push) register(ctx context.Context) error {
	total := p.matrix.Len()
	want := total + len(p.terms) + int(min(p.version.Forms, simmatrix.MaxTerms)) + p.version.Words.chunks()
	var fields int
	err := p.try(ctx, total, func(ctx context.Context) (err error) {
		fields, err = p.admin.run(ctx, register, p.name, p.version.ID, want, p.version.Pushed.UnixMilli())
		return err
	})
	if err == nil && fields != want {
		return fmt.Errorf("%w: %d of %d", errIncomplete, max(fields, 0), want)
	}
	if err != nil {
		return fmt.Errorf("register the version: %w", err)
	}
	return nil
}

// discard has its own timeout, because it may run after ctx has ended.
func (p *push) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if _, err := p.admin.run(ctx, discard, p.name, p.version.ID); err != nil {
		return fmt.Errorf("what was written goes away within %v, it could not be cleared away: %w", unfinishedFor, err)
	}
	return nil
}
