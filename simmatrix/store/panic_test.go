package store

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// panicsCounted returns the value of the only series of registry.
func panicsCounted(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families := check.Got(registry.Gather())(t)
	sum := 0.0
	for _, family := range families {
		for _, series := range family.GetMetric() {
			sum += series.GetCounter().GetValue()
		}
	}
	return sum
}

func TestPanicWhileVersionsAreFollowedIsSurvived(t *testing.T) {
	t.Parallel()
	r, a, _ := setup(t)
	one := publish(t, a, "one", 3)
	for _, name := range []string{SourceFile, SourceRedis} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer // which is read when nothing is followed any more
			registry := prometheus.NewRegistry()
			o := Options{Guard: recovery.New(slog.New(slog.NewTextHandler(&log, nil)), registry)}
			var calls atomic.Int32
			panicOnce := func() {
				if calls.Add(1) == 2 {
					panic("mistake")
				}
			}
			if m := newMatrix(t, "one", 3); name == SourceFile {
				o.Files = map[string]Loader{"main": func(context.Context) (*simmatrix.Matrix, time.Time, error) { panicOnce(); return m, time.Now(), nil }}
			} else {
				o.Redis, o.OnState = r.at(), func(State) { panicOnce() }
			}
			s := open(t, o)
			if name == SourceRedis {
				publish(t, a, "two", 3)
			}
			waitFor(t, "a panic to be counted", func() bool { return panicsCounted(t, registry) == 1 })
			check.OK(t, a.Activate(t.Context(), "main", one))
			waitFor(t, "the source to be followed again", func() bool { return calls.Load() > 2 })
			wantMark(t, s, "one", term(1))
			s.stop()
			s.done.Wait()
			text := log.String()
			check.That(t, strings.Contains(text, `"following versions"`) && !strings.Contains(text, "mistake"), "logged %s", text)
		})
	}
}

// Callers share a round trip, which runs in a goroutine of its own.
func TestPanicOfARoundTripIsAnErrorAndCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	guard := recovery.New(slog.New(slog.DiscardHandler), registry)
	c := newRowCache(minCacheBytes, guard)
	t.Cleanup(c.loader.Close)
	t.Cleanup(c.kept.Close)
	r := &remote{timeout: time.Minute} // its breaker is missing
	rows := &Rows{&version{remote: r}, c}
	check.Error(t, recovery.ErrPanic, rows.Rows(t.Context(), []string{"car"}, make([]simmatrix.Row, 1)))
	check.Equal(t, 1, panicsCounted(t, registry))
}
