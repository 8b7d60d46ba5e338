package recovery_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/recovery"
)

// newGuard returns a guard, its log, and what counts the panics of each operation.
func newGuard(t *testing.T) (guard *recovery.Guard, log *bytes.Buffer, counted func() map[string]float64) {
	t.Helper()
	log, registry := &bytes.Buffer{}, prometheus.NewRegistry()
	return recovery.New(slog.New(slog.NewTextHandler(log, nil)), registry), log, func() map[string]float64 {
		families, err := registry.Gather()
		check.Must(t, err == nil && len(families) == 1 && families[0].GetName() == "akin_panics_total", "%v %v", families, err)
		counted := map[string]float64{}
		for _, m := range families[0].GetMetric() {
			counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
		return counted
	}
}

func panicking() { panic("about a secret car") }

func TestPanicIsAnErrorThatIsCountedAndLoggedWithoutItsText(t *testing.T) {
	guard, log, counted := newGuard(t)
	for name, f := range map[string]func() error{
		"a value":    func() error { panicking(); return nil },
		"of runtime": func() error { return []error{}[len(os.Args)] },
	} {
		log.Reset()
		check.Error(t, recovery.ErrPanic, guard.Do("work", f), name)
		if line := log.String(); strings.Contains(line, "secret car") || !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "operation=work") {
			t.Errorf("%s: logged %s", name, line)
		}
	}
	check.Error(t, io.EOF, guard.Do("work", func() error { return io.EOF }))
	var none *recovery.Guard
	check.Error(t, recovery.ErrPanic, none.Do("work", func() error { panic(1) }), "no guard: error")
	n := counted()
	check.That(t, n["work"] == 2 && n["expanding"] == 0, "panics are counted as %v, want 2 of work", n)
}

func TestOperationsOfTheCodeHaveTheirSeriesFromTheStart(t *testing.T) {
	_, _, counted := newGuard(t)
	unused := counted()
	known := maps.Clone(unused)
	literal := regexp.MustCompile(`(?i:guard\.Do\(|(?:asking|fetching|checking|what) = |what: )"([a-z ]+)"`)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range literal.FindAllSubmatch(text, -1) {
			what := string(found[1])
			delete(unused, what)
			_, isKnown := known[what]
			check.That(t, isKnown || strings.Contains(string(found[0]), "="), "%s: no series for %q", path, what)
		}
		return err
	})
	check.That(t, err == nil && len(unused) == 0, "error %v, series of nothing: %v", err, unused)
}

func TestInParallel(t *testing.T) {
	for _, n := range []int{0, 1, 2, 20} {
		var now, most, calls atomic.Int32
		err := recovery.InParallel(n, 3, func(i int) error {
			at := now.Add(1)
			defer now.Add(-1)
			for {
				old := most.Load()
				if old >= at || most.CompareAndSwap(old, at) {
					break
				}
			}
			calls.Add(1)
			if i == n-1 {
				return io.EOF
			}
			return nil
		})
		if calls.Load() != int32(n) || most.Load() > 3 || errors.Is(err, io.EOF) != (n > 0) {
			t.Errorf("%d: %d calls, %d at a time, error %v", n, calls.Load(), most.Load(), err)
		}
	}
}

// The log has the stack of the goroutine that panics, and not the value.
func TestPanicComesOutOfInParallel(t *testing.T) {
	guard, log, _ := newGuard(t)
	for _, n := range []int{1, 3} {
		log.Reset()
		err := guard.Do("work", func() error {
			return recovery.InParallel(n, 2, func(i int) error {
				if i == n-1 {
					panicking()
				}
				return nil
			})
		})
		if said := log.String(); !errors.Is(err, recovery.ErrPanic) || strings.Contains(said, "secret car") || !strings.Contains(said, "panicking") {
			t.Errorf("%d: error %v, logged %s", n, err, said)
		}
	}
}
