package rowstore

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/internal/recovery"
)

// Callers share a round trip, which runs in a goroutine of its own.
func TestPanicOfARoundTripIsAnErrorAndCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	guard, err := recovery.New(slog.New(slog.DiscardHandler), registry)
	if err != nil {
		t.Fatal(err)
	}
	r := &remote{timeout: time.Minute, guard: guard} // its breaker is missing
	if _, err := r.fetch(t.Context(), &version{}, []string{"car"}); !errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("counted %v, %v", families, err)
	}
}
