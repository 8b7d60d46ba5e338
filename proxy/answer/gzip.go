package answer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"sync"
)

// writers are used again: a new one allocates more than an answer is long.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that exists
	return w
}}

// Compress has an answer without a coding go out as gzip, as engines send it to
// a client that accepts that.
func Compress(res *http.Response) {
	if len(res.Header["Content-Encoding"]) > 0 {
		return
	}
	res.Header["Content-Encoding"] = []string{"gzip"}
	delete(res.Header, "Content-Length")
	res.ContentLength = -1
	c := &compressing{Closer: res.Body, from: res.Body}
	c.to, _ = writers.Get().(*gzip.Writer)
	c.to.Reset(&c.out)
	res.Body = c
}

// A compressing body reads a plain one.
type compressing struct {
	io.Closer

	from io.Reader
	to   *gzip.Writer
	out  bytes.Buffer
	err  error // of from, after which nothing is written
}

// Read compresses as much as it needs.
func (c *compressing) Read(p []byte) (int, error) {
	const piece = 32 << 10
	for c.out.Len() == 0 && c.err == nil {
		_, c.err = io.CopyN(c.to, c.from, piece)
		if errors.Is(c.err, io.EOF) {
			_ = c.to.Close() // writing to memory does not fail
			writers.Put(c.to)
		}
	}
	if c.out.Len() == 0 {
		return 0, c.err
	}
	return c.out.Read(p)
}
