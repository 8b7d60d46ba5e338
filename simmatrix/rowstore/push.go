package rowstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// unfinishedFor is the life of what a push has written when it dies. Every
	// batch renews it.
	unfinishedFor = 10 * time.Minute
	// batchBytes is what one command carries: enough to make the round trip
	// cheap, little enough for Redis to answer searches in between.
	batchBytes = 256 << 10
	// discardTimeout bounds the clearing away after a push that failed.
	discardTimeout = 5 * time.Second
)

// ErrBadMatrix is wrapped by the errors for a matrix that is not pushed.
var ErrBadMatrix = errors.New("the matrix cannot be pushed")

// errIncomplete says that Redis holds another number of rows than were sent.
var errIncomplete = errors.New("rows were lost on the way; was Redis flushed, or does it evict?")

// register makes a version complete when it has the right number of rows:
// permanent, marked and listed, all at once. It returns the number of rows, or
// -1 where the header is missing.
//
//	KEYS rows, meta, versions
//	ARGV version, number of rows, milliseconds since 1970
var register = redis.NewScript(`
if redis.call('EXISTS', KEYS[2]) == 0 then
	return -1
end
local rows = redis.call('HLEN', KEYS[1])
if rows == tonumber(ARGV[2]) then
	redis.call('HSET', KEYS[1], '', ARGV[1])
	redis.call('PERSIST', KEYS[1])
	redis.call('PERSIST', KEYS[2])
	redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
end
return rows
`)

// discard takes away what a push has written, unless it was made active.
//
//	KEYS rows, meta, versions, active
//	ARGV version
var discard = redis.NewScript(`
if redis.call('GET', KEYS[4]) ~= ARGV[1] then
	redis.call('ZREM', KEYS[3], ARGV[1])
	redis.call('UNLINK', KEYS[1], KEYS[2])
end
return 1
`)

// Push writes m as a new version of the named matrix and returns it, complete
// but not active. Memory is bounded by one batch. A matrix that cannot be
// served is refused with an error that wraps [ErrBadMatrix] before Redis is
// asked anything. When Push fails or ctx ends, what it has written is taken
// away again, or goes away by itself within ten minutes where Redis cannot be
// reached; other versions are never touched. The stages of progress are
// "check" and "push", their units rows.
func (a *Admin) Push(ctx context.Context, name string, m *simmatrix.Matrix, progress simmatrix.Progress) (Version, error) {
	if err := checkName("matrix", name); err != nil {
		return Version{}, err
	}
	if progress == nil {
		progress = func(string, int, int) {}
	}
	if err := checkMatrix(ctx, m, progress); err != nil {
		return Version{}, fmt.Errorf("push matrix %s: %w", name, err)
	}
	now := time.Now().UTC()
	p := &push{client: a.client, name: name, version: Version{ID: newID(now), Meta: m.Meta(), Checksum: m.Checksum(), Pushed: now}}
	err := p.write(ctx, m, progress)
	if err == nil {
		err = p.register(ctx, m.Len())
	}
	if err != nil {
		return Version{}, fmt.Errorf("push matrix %s: %w", name, errors.Join(err, p.discard(ctx)))
	}
	return p.version, nil
}

// checkMatrix returns an error for what the readers of rows would refuse.
func checkMatrix(ctx context.Context, m *simmatrix.Matrix, progress simmatrix.Progress) error {
	if m.Len() == 0 {
		return fmt.Errorf("%w: it has no terms", ErrBadMatrix)
	}
	done := 0
	for term, row := range m.Rows() {
		if len(row.Packed()) > maxRowBytes {
			return fmt.Errorf("%w: the row of %.80q has %d bytes, at most %d; build with a smaller --top",
				ErrBadMatrix, term, len(row.Packed()), maxRowBytes)
		}
		if done++; done%10_000 == 0 {
			progress("check", done, m.Len())
			if err := context.Cause(ctx); err != nil {
				return err
			}
		}
	}
	progress("check", done, m.Len())
	return nil
}

// A push is one version being written.
type push struct {
	client  *redis.Client
	name    string
	version Version
}

func (p *push) rows() string { return rowsKey(p.name, p.version.ID) }
func (p *push) meta() string { return metaKey(p.name, p.version.ID) }

func (p *push) write(ctx context.Context, m *simmatrix.Matrix, progress simmatrix.Progress) error {
	header, err := encodeVersion(p.version)
	if err != nil {
		return err
	}
	if err := p.client.Set(ctx, p.meta(), header, unfinishedFor).Err(); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	var batch []any // term, row, term, row, ...
	size, done := 0, 0
	flush := func() error {
		if err := p.flush(ctx, batch); err != nil {
			return fmt.Errorf("after %d of %d rows: %w", done, m.Len(), err)
		}
		done += len(batch) / 2
		batch, size = batch[:0], 0
		progress("push", done, m.Len())
		return nil
	}
	for term, row := range m.Rows() {
		packed := row.Packed()
		batch = append(batch, term, packed)
		if size += len(term) + len(packed); size >= batchBytes {
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

// flush writes one batch and renews the life of the unfinished version.
func (p *push) flush(ctx context.Context, batch []any) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	pipe := p.client.Pipeline()
	pipe.HSet(ctx, p.rows(), batch...)
	pipe.PExpire(ctx, p.rows(), unfinishedFor)
	pipe.PExpire(ctx, p.meta(), unfinishedFor)
	_, err := pipe.Exec(ctx)
	return err
}

func (p *push) register(ctx context.Context, want int) error {
	keys := []string{p.rows(), p.meta(), versionsKey(p.name)}
	rows, err := register.Run(ctx, p.client, keys, p.version.ID, want, p.version.Pushed.UnixMilli()).Int()
	if err != nil {
		return fmt.Errorf("register the version: %w", err)
	}
	if rows != want {
		return fmt.Errorf("%w: %d rows of %d", errIncomplete, max(rows, 0), want)
	}
	return nil
}

// discard runs after ctx may have ended, so it has a time of its own.
func (p *push) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	keys := []string{p.rows(), p.meta(), versionsKey(p.name), activeKey(p.name)}
	if err := discard.Run(ctx, p.client, keys, p.version.ID).Err(); err != nil {
		return fmt.Errorf("what was written goes away within %v, it could not be cleared away: %w", unfinishedFor, err)
	}
	return nil
}
