package searches

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// mostMemory is what all searches may have in use, also while they are read or
// written. With what is not collected yet it is the figure of docs/config.md, see
// [BenchmarkKeepingAFile].
const mostMemory = 50 << 20

// fillAll has a collector count as many searches as it keeps, of the longest
// texts, on as many days.
func fillAll(c *Collector) {
	for i := range maxPlaces {
		long := fmt.Sprintf("%*d", maxBytes, i)
		for day := range c.o.Keep {
			c.sketch.add(key{long, long, long}, c.today-day, None, int64(1+i%1000))
		}
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A weigher weighs what is in use at every eight megabytes that pass it.
type weigher struct {
	passed, most int
	before       uint64
}

func (w *weigher) Write(p []byte) (int, error) {
	if w.passed>>23 != (w.passed+len(p))>>23 {
		runtime.GC()
		w.most = max(w.most, int(heapInUse()-w.before))
	}
	w.passed += len(p)
	return len(p), nil
}

func TestKeepingAFileTakesNoMoreMemoryThanIsSaid(t *testing.T) {
	runtime.GC()
	w := &weigher{before: heapInUse()}
	c := &Collector{o: Options{Keep: 31, Now: at("2026-12-01")}, sketch: newSketch(maxPlaces)}
	c.today = c.o.today()
	fillAll(c)
	check.OK(t, encode(w, c.each()))
	check.That(t, w.passed > 1<<25 && w.passed < maxFile, "%d bytes are written", w.passed)
	check.That(t, w.most > 1<<24 && w.most < mostMemory, "%d MB to write them", w.most>>20)
	t.Logf("%d MB to write %d MB", w.most>>20, w.passed>>20)

	r, file := io.Pipe()
	go func() { _ = file.CloseWithError(encode(file, c.each())) }()
	read, both := newSketch(maxPlaces), &weigher{before: w.before + uint64(w.most)} // besides those that are written
	check.OK(t, decode(io.TeeReader(r, both), func(s *Search) { read.load(s, 0) }))
	check.Equal(t, len(c.sketch.at), len(read.at))
	check.That(t, both.most < mostMemory, "%d MB to read them", both.most>>20)
	t.Logf("%d MB to read them", both.most>>20)
	runtime.KeepAlive(c)
}

// BenchmarkKeepingAFile stores the searches, and reads them again. Its figures
// are of the heap with what is not collected yet.
func BenchmarkKeepingAFile(b *testing.B) {
	o := Options{Keep: 31, File: filepath.Join(b.TempDir(), "searches.json")}
	heap := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	runtime.GC()
	before := heap()
	most := func(f func()) float64 {
		runtime.GC()
		done, peak := make(chan struct{}), uint64(0)
		go func() { f(); close(done) }()
		for {
			select {
			case <-done:
				return (float64(peak) - float64(before)) / (1 << 20)
			case <-time.After(time.Millisecond):
				peak = max(peak, heap())
			}
		}
	}
	for b.Loop() {
		c := check.Got(Open(b.Context(), o))(b)
		if len(c.sketch.at) == 0 {
			fillAll(c)
		}
		b.ReportMetric(most(func() { c.save(b.Context()) }), "saving-MB")
		c.Close()
		c = nil
		b.ReportMetric(most(func() { c = check.Got(Open(b.Context(), o))(b) }), "loading-MB")
		c.Close()
	}
}
