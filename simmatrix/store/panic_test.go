package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// A lockedBuffer may be written and read at the same time.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// panicsCounted returns the value of the only series of registry.
func panicsCounted(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	sum := 0.0
	for _, family := range families {
		for _, series := range family.GetMetric() {
			sum += series.GetCounter().GetValue()
		}
	}
	return sum
}

// TestPanicWhileVersionsAreFollowedIsSurvived panics in the goroutine of a file
// and in that of Redis. Both go on.
func TestPanicWhileVersionsAreFollowedIsSurvived(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a := r.admin(t)
	one := publish(t, a, newMatrix(t, "one", 3))
	for name, start := range map[string]func(o *Options) (again func() bool){
		SourceFile: func(o *Options) func() bool {
			var calls atomic.Int32
			m := newMatrix(t, "one", 3)
			o.Files = map[string]Loader{"main": func(context.Context) (*simmatrix.Matrix, time.Time, error) {
				if calls.Add(1) == 2 {
					panic("mistake")
				}
				return m, time.Now(), nil
			}}
			return func() bool { return calls.Load() > 2 }
		},
		SourceRedis: func(o *Options) func() bool {
			var calls atomic.Int32
			o.Redis, o.OnState = r.at(), func(State) {
				if calls.Add(1) == 2 {
					panic("mistake")
				}
			}
			return func() bool { return calls.Load() > 2 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(lockedBuffer)
			registry := prometheus.NewRegistry()
			o := Options{Guard: recovery.New(slog.New(slog.NewTextHandler(log, nil)), registry)}
			again := start(&o)
			s := open(t, o)
			if name == SourceRedis {
				publish(t, a, newMatrix(t, "two", 3))
			}
			waitFor(t, 10*time.Second, "a panic to be counted", func() bool { return panicsCounted(t, registry) == 1 })
			if name == SourceRedis {
				must(t, a.Activate(t.Context(), "main", one))
			}
			waitFor(t, 10*time.Second, "the source to be followed again", again)
			if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) != "one" {
				t.Errorf("%v, %v", rows, err)
			}
			if text := log.String(); !strings.Contains(text, `"following versions"`) || strings.Contains(text, "mistake") {
				t.Errorf("logged %s", text)
			}
		})
	}
}

// Callers share a round trip, which runs in a goroutine of its own.
func TestPanicOfARoundTripIsAnErrorAndCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	guard := recovery.New(slog.New(slog.DiscardHandler), registry)
	c := newRowCache(minCacheBytes, time.Minute, guard)
	t.Cleanup(c.loader.Close)
	t.Cleanup(c.kept.Close)
	r := &remote{timeout: time.Minute, cache: c} // its breaker is missing
	if _, err := r.fetch(t.Context(), &version{kept: new(remains)}, []string{"car"}); !errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
	if n := panicsCounted(t, registry); n != 1 {
		t.Errorf("counted %v", n)
	}
}
