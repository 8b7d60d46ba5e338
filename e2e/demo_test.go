package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDemoShowsTheGain runs the demo to its end. It needs no servers.
func TestDemoShowsTheGain(t *testing.T) {
	t.Parallel()
	out := mustAkin(t, "demo", "--once")
	for _, want := range []string{"without akin", "with akin", "added", "nDCG@10"} {
		if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			t.Errorf("%q is not in the output", want)
		}
	}
	if n := len(regexp.MustCompile(`(?mi)^.*\bwithout akin\b.*\bwith akin\b`).FindAllString(out, -1)); n < 5 {
		t.Errorf("%d queries are shown side by side, want 5", n)
	}
	figures := regexp.MustCompile(`(?i)nDCG@10.*?(0\.\d+).*?(0\.\d+)`).FindStringSubmatch(out)
	if figures == nil {
		t.Fatalf("no two figures of nDCG@10 in\n%s", out)
	}
	without, err := strconv.ParseFloat(figures[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	with, err := strconv.ParseFloat(figures[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	if with <= without {
		t.Errorf("nDCG@10 %v without and %v with akin, want a gain", without, with)
	}
	if t.Failed() {
		t.Log(out)
	}
}
