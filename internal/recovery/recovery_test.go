package recovery_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/internal/recovery"
)

func TestPanicIsAnErrorThatIsCountedAndLoggedWithoutItsText(t *testing.T) {
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	guard, err := recovery.New(slog.New(slog.NewTextHandler(&log, nil)), registry)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"a value":    func() error { panic("about a secret car") },
		"of runtime": func() error { return []error{}[len(os.Args)] },
	} {
		log.Reset()
		if err := guard.Do("work", f); !errors.Is(err, recovery.ErrPanic) {
			t.Errorf("%s: error %v", name, err)
		}
		if line := log.String(); strings.Contains(line, "secret car") || !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "operation=work") {
			t.Errorf("%s: logged %s", name, line)
		}
	}
	if err := guard.Do("work", func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want that of the work", err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "akin_panics_total" {
		t.Fatalf("%v %v", families, err)
	}
	if n := families[0].GetMetric()[0].GetCounter().GetValue(); n != 2 {
		t.Errorf("%v panics are counted, want 2", n)
	}
}

func TestNilGuardRecovers(t *testing.T) {
	var guard *recovery.Guard
	if err := guard.Do("work", func() error { panic(1) }); !errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
}
