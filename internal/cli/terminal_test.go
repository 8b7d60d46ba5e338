package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func TestProgressOnATerminalIsABar(t *testing.T) {
	var out strings.Builder
	p := &Progress{w: &out, terminal: true}
	p.Step("searching", 1, 4)
	p.Step("searching", 4, 4)
	p.Tell("2 lines are left out")
	first := out.String()
	check.That(t, strings.HasPrefix(first, "\rsearching  25% |██████████  "), "%q does not begin with a quarter of a bar", first)
	var shown []string // a line is what follows the last return to its begin
	for line := range strings.Lines(out.String()) {
		shown = append(shown, line[strings.LastIndex(line, "\r")+1:])
	}
	check.Equal(t, "searching 100% |"+strings.Repeat("█", 40)+"| (4/4)\n2 lines are left out\n", strings.Join(shown, ""))
}

func TestProgressSaysHowLongAStageStillTakes(t *testing.T) {
	for _, tt := range []struct {
		elapsed     time.Duration
		done, total int
		want        string
	}{
		{10 * time.Second, 1, 4, ", about 30s left"},
		{90 * time.Minute, 3, 4, ", about 30m0s left"},
		{time.Second, 1, 4, ""},
		{time.Minute, 0, 4, ""},
		{time.Minute, 4, 4, ""},
	} {
		check.Equal(t, tt.want, left(tt.elapsed, tt.done, tt.total), tt)
	}
}

func TestProgressElsewhereIsLines(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out)
	p.Step("searching", 1, 4)
	p.Step("searching", 2, 4) // too soon
	p.Step("searching", 4, 4)
	p.Step("reading", 7, 0)
	p.Step("writing", 0, 0)
	p.Tell("%d lines are left out", 2)
	want := "searching: 1 of 4\nsearching: 4 of 4\nreading: 7\nwriting\n2 lines are left out\n"
	check.Equal(t, want, out.String())
}
