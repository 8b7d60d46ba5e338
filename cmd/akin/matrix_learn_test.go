package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/reweigh"
)

func TestUnknownDocumentsAreNamedOnce(t *testing.T) {
	there := reweigh.NewCollection()
	check.OK(t, there.Add("a", [][]string{{"wing"}}))
	opinions := map[string]reweigh.Opinion{"a": {}, "gone": {}}
	searches := []reweigh.Search{{Documents: opinions}, {Documents: opinions}, {Documents: map[string]reweigh.Opinion{"away": {}}}}
	if got, want := unknownDocuments(searches, there), []string{"away", "gone"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

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
				check.OK(t, documents.Add(id, [][]string{{topic, word}}))
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
	m := matrixOf(t, simmatrix.Meta{Source: "by hand", Docs: 20 * topics}, rows...)
	r, err := reweigh.Learn(t.Context(), m, documents, searches,
		reweigh.Options{Strength: 0.25, Added: 30, MaxShare: 0.5, Unit: "click"}, nil)
	check.OK(t, err)
	name := encodedFile(t, "learned.akin", r.Matrix)
	for topic, want := range map[string]string{"topic00": "learned: 1 click\n", "topic01": "learned: 31 clicks\n"} {
		_, line, _ := strings.Cut(mustAkin(t, "matrix", "show", name, topic)+"\n", "right")
		contains(t, topic, line, want)
	}
}
