package sign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
)

const (
	// inMemory is the largest body that is kept in memory, and what small domains
	// accept.
	inMemory = 10 << 20
	// maxBody is the largest body: what engines accept by default, and the most
	// that domains accept.
	maxBody = 100 << 20
	// maxSpooled limits the files of all bodies together. One client gets half.
	maxSpooled = 1 << 30
	// maxDrained is the most that is read of a body that is refused.
	maxDrained = 2 * maxBody
	// piece is how much of a body is moved to the file at once.
	piece = 64 << 10
	// pattern is that of names of files with bodies.
	pattern = "akin-body-*"
)

// bodies reads the bodies of requests.
type bodies struct {
	memory, spooled *limits.Budget
	folder          string // "" for none
	log             *slog.Logger
	failing         atomic.Bool // the last file could not be written
}

// A body is a request's body that was read whole. It can be sent again as long
// as somebody reads it or has not released it.
type body struct {
	sum  string                        // SHA-256, hexadecimal
	size int64                         // negative if it is sent as the request has it
	open func() (io.ReadCloser, error) // nil for an empty body
	free func()                        // what it takes; may be nil
	uses atomic.Int64
}

// emptySum is the sum of an empty body.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// read reads and hashes the body of req, and closes it. The caller must release
// the result.
func (b *bodies) read(req *http.Request) (*body, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return &body{sum: emptySum}, nil
	}
	defer func() { _ = req.Body.Close() }() // it was read to the end, or is not sent
	if req.GetBody != nil {
		return again(req)
	}
	from := &begun{Reader: req.Body}
	whole, err := b.take(req, from)
	if _, refused := errors.AsType[*nodes.NotSentError](err); refused && (from.read || req.Header.Get("Expect") == "") {
		// Clients that do not ask first, or were told to go on, read the answer only
		// when all is sent.
		_, _ = io.CopyN(io.Discard, req.Body, maxDrained)
	}
	return whole, err
}

// A begun body knows whether somebody has read from it. The first Read tells
// clients that asked to send it.
type begun struct {
	io.Reader

	read bool
}

// Read reads from the body.
func (b *begun) Read(p []byte) (int, error) {
	b.read = true
	return b.Reader.Read(p)
}

// take reads the body of req from a reader into memory or a file.
func (b *bodies) take(req *http.Request, from io.Reader) (*body, error) {
	limit := int64(inMemory)
	if b.folder != "" {
		limit = maxBody
	}
	if req.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	client := limits.Client(req.RemoteAddr)
	hold := b.memory.Hold(limits.Signed, client)
	data, err := limits.Read(from, hold, req.ContentLength, inMemory)
	switch {
	case err == nil:
		sum := sha256.Sum256(data)
		return held(sum[:], bytes.NewReader(data), int64(len(data)), hold.Release), nil
	case !errors.Is(err, limits.ErrTooLarge) && !errors.Is(err, limits.ErrNoRoom):
		hold.Release()
		return nil, err
	}
	defer hold.Release()
	if b.folder != "" {
		whole, err := b.spool(io.MultiReader(bytes.NewReader(data), from), client)
		b.tell(req.Context(), err)
		return whole, err
	}
	if errors.Is(err, limits.ErrNoRoom) {
		return nil, busy(err)
	}
	return nil, tooLarge(inMemory)
}

// tell logs when files cannot be written any more, and when they can again.
func (b *bodies) tell(ctx context.Context, err error) {
	refusal, refused := errors.AsType[*nodes.NotSentError](err)
	switch {
	case err == nil && b.failing.CompareAndSwap(true, false):
		b.log.InfoContext(ctx, "large bodies can be kept again to sign them")
	case refused && refusal.Type == spoolFailed && b.failing.CompareAndSwap(false, true):
		b.log.WarnContext(ctx, "large bodies cannot be kept to sign them", "err", refusal.Err)
	}
}

// again returns the body of a request that has it in memory already.
func again(req *http.Request) (*body, error) {
	whole, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	defer func() { _ = whole.Close() }() // in memory
	hash := sha256.New()
	if _, err := io.Copy(hash, whole); err != nil {
		return nil, err
	}
	return &body{sum: hex.EncodeToString(hash.Sum(nil)), size: -1, open: req.GetBody}, nil
}

// held returns a body of size bytes of data. free is called after its last use.
func held(sum []byte, data io.ReaderAt, size int64, free func()) *body {
	h := &body{sum: hex.EncodeToString(sum), size: size, free: free}
	h.uses.Store(1)
	h.open = func() (io.ReadCloser, error) {
		h.uses.Add(1)
		return &reading{Reader: io.NewSectionReader(data, 0, size), close: sync.OnceFunc(h.release)}, nil
	}
	return h
}

// A reading is one reading of a body.
type reading struct {
	io.Reader

	close func()
}

// Close ends it.
func (r *reading) Close() error {
	r.close()
	return nil
}

// release ends a use of the body.
func (h *body) release() {
	if h.uses.Add(-1) == 0 && h.free != nil {
		h.free()
	}
}

// attach makes h the body of req, with a length in place of chunks unless
// trailers need them.
func (h *body) attach(req *http.Request) {
	if h.open == nil {
		return
	}
	req.Header.Del("Expect") // it is here
	if h.size >= 0 && len(req.Trailer) == 0 {
		req.ContentLength, req.TransferEncoding = h.size, nil
	}
	req.GetBody = h.open
	req.Body, _ = h.open() // it is in memory, or an open file
	if h.size == 0 {
		_ = req.Body.Close() // nothing to learn
		req.Body = http.NoBody
	}
}

// CheckSpool returns why no file can be written in a folder for bodies, or nil.
func CheckSpool(folder string) error {
	file, err := os.CreateTemp(folder, pattern)
	if err != nil {
		return fmt.Errorf("cluster.aws.spool: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// spool writes a body to a file.
func (b *bodies) spool(from io.Reader, client string) (*body, error) {
	file, err := os.CreateTemp(b.folder, pattern)
	if err != nil {
		return nil, unusable(err)
	}
	_ = os.Remove(file.Name()) // at once where open files can be removed, so that none is left behind
	hold := b.spooled.Hold(limits.Signed, client)
	free := func() {
		_ = file.Close()           // it is removed
		_ = os.Remove(file.Name()) // where that was not possible before
		hold.Release()
	}
	hash, size := sha256.New(), int64(0)
	for buf := make([]byte, piece); ; {
		n, err := from.Read(buf)
		size += int64(n)
		_, _ = hash.Write(buf[:n]) // never fails
		var refused error
		switch {
		case size > maxBody:
			refused = tooLarge(maxBody)
		case !hold.Take(int64(n)):
			refused = busy(limits.ErrNoRoom)
		default:
			if _, err := file.Write(buf[:n]); err != nil {
				refused = unusable(err)
			}
		}
		switch {
		case refused != nil:
			free()
			return nil, refused
		case errors.Is(err, io.EOF):
			return held(hash.Sum(nil), file, size, free), nil
		case err != nil:
			free()
			return nil, err
		}
	}
}

func tooLarge(limit int64) error {
	reason := fmt.Sprintf("the body is larger than %d bytes, the most that akin signs", limit)
	if limit == inMemory {
		reason += " without cluster.aws.spool"
	}
	return &nodes.NotSentError{
		Status: http.StatusRequestEntityTooLarge, Type: "akin_too_large_exception", Reason: reason, Err: limits.ErrTooLarge,
	}
}

func busy(err error) error {
	return &nodes.NotSentError{
		Status: http.StatusTooManyRequests, Type: "akin_busy_exception",
		Reason: "akin holds too many bodies that are to be signed: send the request again later", Err: err,
	}
}

// spoolFailed is the type of answers where files cannot be written.
const spoolFailed = "akin_spool_exception"

func unusable(err error) error {
	return &nodes.NotSentError{
		Status: http.StatusServiceUnavailable, Type: spoolFailed,
		Reason: "akin cannot keep the body to sign it", Err: fmt.Errorf("cluster.aws.spool: %w", err),
	}
}
