package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix/reweigh"
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

func TestUnknownDocumentsAreNamedOnce(t *testing.T) {
	there := reweigh.NewCollection()
	if err := there.Add("a", [][]string{{"wing"}}); err != nil {
		t.Fatal(err)
	}
	opinions := map[string]reweigh.Opinion{"a": {}, "gone": {}}
	searches := []reweigh.Search{{Documents: opinions}, {Documents: opinions}, {Documents: map[string]reweigh.Opinion{"away": {}}}}
	if got, want := unknownDocuments(searches, there), []string{"away", "gone"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
