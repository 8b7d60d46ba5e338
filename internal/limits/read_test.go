package limits

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func TestPooledGzipReaderKeepsNoBody(t *testing.T) {
	var pool Gunzip
	hold := New(128<<20).Hold(SearchBody, "")
	freed := make(chan struct{})
	func() {
		raw := new([1 << 20]byte)
		n := copy(raw[:], gzipped(t, "{}"))
		runtime.AddCleanup(raw, func(c chan struct{}) { close(c) }, freed)
		body, err := pool.Read(raw[:n], hold, 100)
		check.Must(t, string(body) == "{}" && err == nil, "got %q, %v", body, err)
	}()
	gz, _ := pool.readers.Get().(*gzip.Reader) // keeps the pool from dropping it
	runtime.GC()
	select {
	case <-freed:
	case <-time.After(20 * time.Second):
		t.Fatal("the body is still there")
	}
	if gz != nil { // with the race detector a pool drops some
		pool.readers.Put(gz)
	}
	got, err := pool.Read([]byte(gzipped(t, "x")), hold, 100)
	check.That(t, err == nil && string(got) == "x", "then it reads %q, %v", got, err)
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, text)
	z.Close()
	return packed.String()
}
