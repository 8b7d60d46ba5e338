package main

import (
	"slices"
	"strings"
	"testing"
)

func TestMatrixLearnNeedsOneSource(t *testing.T) {
	file := []string{"matrix", "learn", "m.akin", "--cluster", "http://127.0.0.1:1", "--index", "i", "--field", "f", "--out", "out.akin"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no cluster":        {[]string{"matrix", "learn", "m.akin"}, "give --cluster, --index, --field and --out"},
		"none":              {file, "one of --judgments, --clicks and --ubi"},
		"two":               {append(slices.Clip(file), "--ubi", "--clicks", "c"), "one of --judgments, --clicks and --ubi"},
		"queries of clicks": {append(slices.Clip(file), "--ubi", "--queries", "q"), "--queries goes with --judgments"},
		"bias of judgments": {append(slices.Clip(file), "--judgments", "j", "--bias", "1"), "--bias"},
		"negative bias":     {append(slices.Clip(file), "--ubi", "--bias", "-1"), "--bias"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, stderr, status := akin(t, c.args...); status != exitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, %s", status, stderr)
			}
		})
	}
}
