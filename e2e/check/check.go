// Package check says in one line what a test wants.
package check

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// OK ends the test at an error.
func OK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Got returns the value of a call, whose test ends at an error.
func Got[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		OK(tb, err)
		return v
	}
}

// Equal reports a difference between what was wanted and what was got, by the
// options of [cmp] that are among the rest. The other ones say of what it is.
func Equal[T any](tb testing.TB, want, got T, of ...any) {
	tb.Helper()
	var options []cmp.Option
	of = slices.DeleteFunc(of, func(a any) bool {
		option, ok := a.(cmp.Option)
		if ok {
			options = append(options, option)
		}
		return ok
	})
	if diff := cmp.Diff(want, got, options...); diff != "" {
		tb.Error(append(of, "(-want +got)\n"+diff)...)
	}
}

// That reports what the format says, as Errorf does, unless it is so.
func That(tb testing.TB, so bool, format string, args ...any) {
	tb.Helper()
	if !so {
		tb.Errorf(format, args...)
	}
}

// Must is That, and ends the test.
func Must(tb testing.TB, so bool, format string, args ...any) {
	tb.Helper()
	if !so {
		tb.Fatalf(format, args...)
	}
}

// Error reports an error of another kind than the wanted, see [errors.Is], or
// none. The rest says of what it is.
func Error(tb testing.TB, want, err error, of ...any) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Error(append(of, fmt.Sprintf("error %v, want %v", err, want))...)
	}
}

// ErrOf returns the error of a call that returns a value, too.
func ErrOf[T any](_ T, err error) error { return err }

// Message reports an error whose text does not contain the wanted one, or none.
// The rest says of what it is.
func Message(tb testing.TB, want string, err error, of ...any) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		tb.Error(append(of, fmt.Sprintf("error %v, want %q", err, want))...)
	}
}

// Elapse moves the clock of a bubble of [synctest.Test] on, and returns once
// nothing there goes on any more. Outside of a bubble it panics.
func Elapse(d time.Duration) {
	time.Sleep(d) // In a bubble this is what moves its clock.
	synctest.Wait()
}

// Missing ends a test that needs something which is not there. With
// AKIN_TEST=all, which CI sets, the test fails. Elsewhere it is skipped: people
// run the tests for which they have what is needed.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("AKIN_TEST") == "all" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// RedisServer returns the path of redis-server, see [Missing]. With -short,
// which make test-fast uses, tests start no servers.
func RedisServer(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		Missing(tb, "-short starts no servers, and this needs redis-server")
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		Missing(tb, "no redis-server in PATH: install it (apt-get install redis-server, brew install redis)")
	}
	return path
}

// DataFolder is the folder AKIN_DATA, which has judged collections and other
// data that are not part of the project; by default shared/data beside the
// repository.
func DataFolder(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("AKIN_DATA"); dir != "" {
		return dir
	}
	root := Got(os.Getwd())(tb)
	for filepath.Dir(root) != root {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	return filepath.Join(filepath.Dir(root), "shared", "data")
}

// Data returns what has a name in [DataFolder], see [Missing]. AKIN_DATA=none
// leaves out the tests that need any.
func Data(tb testing.TB, name string) string {
	tb.Helper()
	if os.Getenv("AKIN_DATA") == "none" {
		tb.Skip("needs judged collections, which AKIN_DATA=none leaves out")
	}
	path := filepath.Join(DataFolder(tb), name)
	if _, err := os.Stat(path); err != nil {
		Missing(tb, "needs judged collections in the folder that AKIN_DATA names: %v", err)
	}
	return path
}

// ReportMedians reports the medians of what searches took with something off
// and on, in µs, and their ratio, in place of the time of an iteration.
func ReportMedians(b *testing.B, off, on []time.Duration) {
	b.Helper()
	median := func(took []time.Duration) float64 {
		slices.Sort(took)
		return float64(took[len(took)/2].Microseconds())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(off), "off-µs")
	b.ReportMetric(median(on), "on-µs")
	b.ReportMetric(median(on)/median(off), "on/off")
}
