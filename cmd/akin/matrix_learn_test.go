package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/reweigh"
)

func TestMatrixLearnNeedsOneSource(t *testing.T) {
	file := []string{"matrix", "learn", "m.akin", "--cluster", "http://127.0.0.1:1", "--index", "i", "--field", "f", "--out", "out.akin"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no cluster":        {[]string{"matrix", "learn", "m.akin"}, "give --cluster, --index, --field and --out"},
		"none":              {file, "one of --judgments and --clicks"},
		"two":               {append(slices.Clip(file), "--judgments", "j", "--clicks", "c"), "one of --judgments and --clicks"},
		"queries of clicks": {append(slices.Clip(file), "--clicks", "c", "--queries", "q"), "--queries goes with --judgments"},
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

// What neighbors were learned from is in the file, and matrix show says it.
func TestShowSaysWhatNeighborsWereLearnedFrom(t *testing.T) {
	const topics = 12
	documents := reweigh.NewCollection()
	var searches []reweigh.Search
	rows := []simmatrix.TermRow{{Term: "wrong", DocFreq: 10 * topics}}
	for k := range topics {
		topic, right := fmt.Sprintf("topic%02d", k), fmt.Sprintf("right%02d", k)
		rows = append(rows, simmatrix.TermRow{Term: right, DocFreq: 10},
			simmatrix.TermRow{Term: topic, DocFreq: 20})
		opinions := map[string]reweigh.Opinion{}
		for d := range 10 {
			for _, word := range []string{"wrong", right} {
				id := fmt.Sprint(topic, word, d)
				if err := documents.Add(id, [][]string{{topic, word}}); err != nil {
					t.Fatal(err)
				}
				if d < 5 && word == right {
					opinions[id] = reweigh.Opinion{Gain: 1}
				}
			}
		}
		clicked := maps.Clone(opinions)
		clicked[fmt.Sprint(topic, right, 0)] = reweigh.Opinion{Gain: 1, Count: 1 + 30*(k%2)}
		for _, documents := range []map[string]reweigh.Opinion{clicked, opinions, opinions, opinions} { // one for each part of the queries
			searches = append(searches, reweigh.Search{Terms: []string{topic}, Documents: documents})
		}
	}
	m, err := simmatrix.New(simmatrix.Meta{Source: "by hand", Docs: 20 * topics}, rows)
	if err != nil {
		t.Fatal(err)
	}
	r, err := reweigh.Learn(t.Context(), m, documents, searches,
		reweigh.Options{Strength: 0.25, Added: 30, MaxShare: 0.5, Unit: "click"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := simmatrix.Encode(&file, r.Matrix); err != nil {
		t.Fatal(err)
	}
	name := write(t, "learned.akin", file.String())
	for topic, want := range map[string]string{"topic00": "learned: 1 click\n", "topic01": "learned: 31 clicks\n"} {
		stdout, stderr, status := akin(t, "matrix", "show", name, topic)
		if _, line, _ := strings.Cut(stdout, "right"); status != 0 || !strings.Contains(line, want) {
			t.Errorf("%s: status %d, want %q\n%s%s", topic, status, want, stdout, stderr)
		}
	}
}
