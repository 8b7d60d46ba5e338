package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/cmd/akin/internal/files"
)

// edited runs "matrix edit" on a file and returns what the file then holds.
func edited(t *testing.T, file string, args ...string) string {
	t.Helper()
	if stdout, stderr, status := akin(t, append([]string{"matrix", "edit", args[0], "--file", file}, args[1:]...)...); status != 0 {
		t.Fatalf("%v: status %d\n%s%s", args, status, stdout, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOverridesAreEditedLineByLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "overrides.txt")
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"set", "car", "automobile", "0.9"}, "set car automobile 0.9\n"},
		{[]string{"ban", "--one-way", "car", "jaguar"}, "set car automobile 0.9\nban car -> jaguar\n"},
		{[]string{"pin", "car", "station wagon"}, "set car automobile 0.9\nban car -> jaguar\npin car \"station wagon\"\n"},
		{[]string{"set", "automobile", "car", "1"}, "set car automobile 1\nban car -> jaguar\npin car \"station wagon\"\n"},
		{[]string{"remove", "jaguar", "car"}, "set car automobile 1\npin car \"station wagon\"\n"},
	} {
		if diff := cmp.Diff(step.want, edited(t, file, step.args...)); diff != "" {
			t.Errorf("%v: %s", step.args, diff)
		}
	}
	byHand := "# cars\r\nset  car   automobile 1 # asked for by sales\r\n"
	if err := os.WriteFile(file, []byte(byHand), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := edited(t, file, "set", "car", "automobile", "1.0"); got != byHand {
		t.Errorf("a rule that is there changed the file to %q", got)
	}
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written for nothing: %v", err)
	}
	if got, want := edited(t, file, "ban", "car", "automobile"), "# cars\r\nban car automobile # asked for by sales\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOverridesAreListed(t *testing.T) {
	file := write(t, "overrides.txt", "# cars\nset car   automobile .9\nban car -> jaguar # no cats\n\npin tv \"television set\"\n")
	for name, tt := range map[string]struct {
		terms []string
		want  string
	}{
		"all":          {nil, "set car automobile 0.9\nban car -> jaguar\npin tv \"television set\"\n"},
		"of two terms": {[]string{"automobile", "tv"}, "set car automobile 0.9\npin tv \"television set\"\n"},
		"of none":      {[]string{"van"}, ""},
	} {
		stdout, stderr, status := akin(t, append([]string{"matrix", "edit", "list", "--file", file}, tt.terms...)...)
		if status != 0 || stdout != tt.want {
			t.Errorf("%s: status %d\n%s%s", name, status, stdout, stderr)
		}
	}
}

func TestMistakesInOverridesAreNamed(t *testing.T) {
	bad := write(t, "bad.txt", "set car van\nban car \"car\"\n")
	good := write(t, "good.txt", "ban car van\n")
	for name, tt := range map[string]struct {
		args   []string
		status int
		want   []string
	}{
		"no command":       {[]string{"frob"}, exitUsage, []string{`"frob"`}},
		"no file":          {[]string{"ban", "car", "van"}, exitUsage, []string{"--file"}},
		"no file to list":  {[]string{"list"}, exitUsage, []string{"--file"}},
		"too few terms":    {[]string{"pin", "--file", good, "car"}, exitUsage, []string{"1 arguments, want TERM NEIGHBOR"}},
		"too many terms":   {[]string{"set", "--file", good, "car", "van", "bus", "1"}, exitUsage, []string{"4 arguments, want TERM NEIGHBOR SIMILARITY"}},
		"a digit grouped":  {[]string{"set", "--file", good, "car", "van", "0.1_0"}, exitUsage, []string{"no decimal number"}},
		"hexadecimal":      {[]string{"set", "--file", good, "car", "van", "0x1p-2"}, exitUsage, []string{"no decimal number"}},
		"under 0":          {[]string{"set", "--file", good, "car", "van", "-1"}, exitUsage, []string{"behind --"}},
		"a term as a flag": {[]string{"ban", "--file", good, "car", "->"}, exitUsage, []string{"behind --", "akin matrix edit ban"}},
		"no number":        {[]string{"set", "--file", good, "car", "van", "much"}, exitUsage, []string{`"much"`}},
		"out of range":     {[]string{"set", "--file", good, "car", "van", "1.5"}, exitUsage, []string{"1.5", "(0, 1]"}},
		"itself":           {[]string{"ban", "--file", good, "car", "car"}, exitUsage, []string{"its own neighbor"}},
		"nothing there":    {[]string{"remove", "--file", good, "car", "bus"}, exitUsage, []string{"no rule on car and bus"}},
		"a broken file":    {[]string{"ban", "--file", bad, "car", "bus"}, exitUsage, []string{"bad.txt", "line 1:", "line 2:"}},
		"no folder":        {[]string{"ban", "--file", "/no/such/folder/x", "car", "bus"}, exitUsage, []string{"/no/such/folder"}},
		"nothing to list":  {[]string{"list", "--file", "/no/such/file"}, exitFailure, []string{"/no/such/file"}},
		"a folder":         {[]string{"list", "--file", os.TempDir()}, exitFailure, []string{"directory"}},
		"a device to edit": {[]string{"ban", "--file", os.DevNull, "car", "bus"}, exitUsage, []string{"no regular file"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, status := akin(t, append([]string{"matrix", "edit"}, tt.args...)...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in\n%s", want, stderr)
				}
			}
		})
	}
	for path, want := range map[string]string{bad: "set car van\nban car \"car\"\n", good: "ban car van\n"} {
		if data, _ := os.ReadFile(path); string(data) != want {
			t.Errorf("%s holds %q", path, data)
		}
	}
}

func TestEveryEditCommandShowsAnExample(t *testing.T) {
	for _, args := range [][]string{{}, {"set"}, {"pin"}, {"ban"}, {"remove"}, {"list"}} {
		out, _, status := akin(t, append(append([]string{"matrix", "edit"}, args...), "--help")...)
		if status != 0 || !strings.Contains(out, "Examples:") {
			t.Errorf("%v: status %d, no example in\n%s", args, status, out)
		}
	}
}

func TestTermsThatLookLikeFlagsOrCommentsCanBeRuled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "overrides.txt")
	got := edited(t, file, "ban", "--", "-x", "#y")
	if want := "ban -x \"#y\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got = edited(t, file, "set", "--one-way", "--", "->", "two\nlines", "0.5")
	if want := "ban -x \"#y\"\nset \"->\" -> \"two\\nlines\" 0.5\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	stdout, _, _ := akin(t, "matrix", "edit", "list", "--file", file, "two\nlines")
	if want := "set \"->\" -> \"two\\nlines\" 0.5\n"; stdout != want {
		t.Errorf("listed %q, want %q", stdout, want)
	}
}

func TestOverridesBehindALinkStayBehindIt(t *testing.T) {
	file := write(t, "overrides.txt", "ban a b\n")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	edited(t, link, "pin", "a", "b")
	if data, err := os.ReadFile(file); err != nil || string(data) != "pin a b\n" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

func TestProtectedOverridesStayAndOthersKeepTheirMode(t *testing.T) {
	file := write(t, "overrides.txt", "ban a b\n")
	for _, mode := range []os.FileMode{0o600, 0o664} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		edited(t, file, "pin", "c", fmt.Sprintf("%o", mode))
		if info, err := os.Stat(file); err != nil || info.Mode() != mode {
			t.Errorf("mode %v, want %v, %v", info.Mode(), mode, err)
		}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o444); err != nil {
		t.Fatal(err)
	}
	_, stderr, status := akin(t, "matrix", "edit", "pin", "--file", file, "x", "y")
	if status != exitUsage || !strings.Contains(stderr, "protected from writing") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("%q, %v", after, err)
	}
}

// Each of the commands changes the file that the others have written.
func TestCommandsAtTheSameTimeLoseNoRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "overrides.txt")
	const commands = 30
	var wg sync.WaitGroup
	failed := make([]string, commands)
	for k := range commands {
		wg.Go(func() {
			var stdout, stderr bytes.Buffer
			if status := run([]string{"matrix", "edit", "ban", "--file", file, "car", fmt.Sprint("t", k)}, &stdout, &stderr); status != 0 {
				failed[k] = stderr.String()
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "ban car t") != commands || strings.Join(failed, "") != "" {
		t.Errorf("%v, %s\n%s", err, strings.Join(failed, ""), data)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestALockThatStaysIsNamed(t *testing.T) {
	file := write(t, "overrides.txt", "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	unlock, err := files.Lock(t.Context(), file, 0)
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(filepath.Dir(file), ".overrides.txt.lock")
	for _, path := range []string{file, link} {
		if _, err := files.Lock(t.Context(), path, 0); err == nil || !strings.Contains(err.Error(), lock) || !strings.Contains(err.Error(), "remove that file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := files.Lock(ctx, file, files.LockWait); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if unlock, err = files.Lock(t.Context(), link, 0); err != nil || unlock() != nil {
		t.Errorf("unlocked: %v", err)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 250))
	if unlock, err = files.Lock(t.Context(), long, 0); err != nil || unlock() != nil {
		t.Errorf("a long name: %v", err)
	}
}

func TestListTellsThatItCouldNotWrite(t *testing.T) {
	file := write(t, "overrides.txt", "ban car van\n")
	var stderr bytes.Buffer
	status := run([]string{"matrix", "edit", "list", "--file", file}, brokenWriter{}, &stderr)
	if status != exitFailure || !strings.Contains(stderr.String(), "disk full") {
		t.Errorf("status %d\n%s", status, stderr.String())
	}
}

// brokenWriter takes nothing.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }
