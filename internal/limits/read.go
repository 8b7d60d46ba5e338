package limits

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"sync"
)

var (
	// ErrNoRoom says that the memory limit is reached.
	ErrNoRoom = errors.New("too much is held for other requests")
	// ErrTooLarge says that a body is larger than allowed.
	ErrTooLarge = errors.New("the body is too large")
	// ErrSlow says that a body comes too slowly to wait for.
	ErrSlow = errors.New("the body comes slowly")
)

const (
	// firstRead is the most that is reserved for a body before it arrives.
	firstRead = 16 << 10
	// leastRead is what is reserved if its length is unknown.
	leastRead = 4 << 10
)

// Read reads at most limit bytes of r, whose expected size is size, negative
// for unknown. It takes memory from hold as it reads. It returns [ErrNoRoom] if
// hold takes no more and [ErrTooLarge] if there is more; with an error it also
// returns what it has read.
func Read(r io.Reader, hold *Hold, size, limit int64) (read []byte, err error) {
	for {
		if len(read) == cap(read) {
			if read, err = grow(read, hold, size, limit+1); err != nil {
				return read, err
			}
		}
		n, err := r.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case int64(len(read)) > limit:
			return read, ErrTooLarge
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, err
		}
	}
}

// grow returns read with twice the room, but at most the expected size and one
// byte to see the end.
func grow(read []byte, hold *Hold, size, limit int64) ([]byte, error) {
	had := int64(cap(read))
	room := max(2*had, leastRead)
	if size >= had {
		room = min(max(2*had, firstRead), size+1)
	}
	room = min(room, limit)
	if !hold.Take(room - had) {
		return read, ErrNoRoom
	}
	return append(make([]byte, 0, room), read...), nil
}

// A Prefixed is a body of which the first bytes were read. They come first, and
// their memory is released with the last of them or on Close.
type Prefixed struct {
	io.Closer

	first []byte
	hold  *Hold
	rest  io.Reader
}

// Read reads the first bytes, then the rest.
func (b *Prefixed) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.rest.Read(p)
	}
	n := copy(p, b.first)
	if b.first = b.first[n:]; len(b.first) == 0 {
		b.letGo()
	}
	return n, nil
}

// Close closes the body.
func (b *Prefixed) Close() error {
	b.letGo()
	return b.Closer.Close()
}

// letGo releases the first bytes.
func (b *Prefixed) letGo() {
	b.first = nil
	b.hold.Release()
}

// A Gunzip decompresses. The zero Gunzip is ready for concurrent use.
type Gunzip struct{ readers sync.Pool } // of *gzip.Reader

// Read decompresses gzip, at most limit bytes, in memory of hold. It returns
// [ErrNoRoom], [ErrTooLarge], or another error if the stream is broken.
func (g *Gunzip) Read(packed []byte, hold *Hold, limit int64) (plain []byte, err error) {
	err = g.With(bytes.NewReader(packed), func(r io.Reader) (err error) {
		plain, err = Read(r, hold, -1, limit)
		return err
	})
	return plain, err
}

// emptyGzip is the header of a gzip stream (RFC 1952, section 2.3).
const emptyGzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// With calls f with a reader of the decompressed stream.
func (g *Gunzip) With(packed io.Reader, f func(io.Reader) error) error {
	gz, ok := g.readers.Get().(*gzip.Reader)
	if !ok {
		gz = new(gzip.Reader)
	}
	defer func() {
		// A reset with a good header keeps the reader from holding on to packed.
		if gz.Reset(strings.NewReader(emptyGzip)) == nil {
			g.readers.Put(gz)
		}
	}()
	if err := gz.Reset(packed); err != nil {
		return err
	}
	return f(gz)
}
