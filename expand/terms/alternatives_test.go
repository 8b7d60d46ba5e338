package terms

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func expression(tb testing.TB, text string) string {
	tb.Helper()
	terms, positions := split(text)
	e, err := simmatrix.Expression(terms, positions)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestTheLongestExpressionsOfATextAreRecognizedFromTheLeft(t *testing.T) {
	known := map[string]bool{}
	for _, e := range []string{"new york", "new york city", "york city", "city marathon", "point _ care", "a a"} {
		known[expression(t, e)] = true
	}
	for text, want := range map[string][]string{
		"new york city marathon":                    {"new york city"},
		"york city marathon":                        {"york city"},
		"the city marathon":                         {"city marathon"},
		"point _ care of cities":                    {"point _ care"},
		"point care":                                nil, // without the gap
		"point _ _ care":                            nil,
		"york new city":                             nil,
		"new/newer york":                            {"new york"}, // two terms at one position
		"newer/new york/yorks":                      {"new york"},
		"in newer/new york/yorks/other city/cities": {"new york city"},
		strings.Repeat("a ", 3):                     {"a a"},
		strings.Repeat("a ", 4):                     {"a a", "a a"},
		"new":                                       nil,
		"":                                          nil,
	} {
		var terms []string
		var positions []int
		for k, word := range strings.Fields(text) {
			for term := range strings.SplitSeq(word, "/") {
				if word != "_" {
					terms, positions = append(terms, term), append(positions, k)
				}
			}
		}
		read := Read(terms, positions)
		var got []string
		for _, e := range read.Recognize(terms, positions, func(e string) bool { return known[e] }) {
			got = append(got, simmatrix.Spelled(e.Term))
			for i, k := range e.Origins {
				if read[k].Term == "" || slices.Contains(e.Origins[:i], k) {
					t.Errorf("%q: origins %v", text, e.Origins)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// proposed has the terms chosen for a text, with rows of "term similarity"
// lists, and settles them by these document frequencies among 1,000.
func proposed(tb testing.TB, text string, rows map[string]string, docFreqs map[string]int64, change func(*Selection)) *Selection {
	tb.Helper()
	row := func(term string) simmatrix.Row {
		var neighbors []simmatrix.Neighbor
		for entry := range strings.SplitSeq(rows[term], ",") {
			if entry == "" {
				continue
			}
			var s float32
			at := strings.LastIndexByte(entry, ' ')
			if _, err := fmt.Sscan(entry[at:], &s); err != nil {
				tb.Fatal(err)
			}
			neighbor := strings.TrimSpace(entry[:at])
			if strings.Contains(neighbor, " ") {
				neighbor = expression(tb, neighbor)
			}
			neighbors = append(neighbors, simmatrix.Neighbor{Term: neighbor, Similarity: s, DocFreq: uint32(docFreqs[neighbor])})
		}
		r, err := simmatrix.PackRow(uint32(docFreqs[term]), neighbors)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
	words, positions := split(text)
	read := Read(words, positions)
	for k := range read {
		read[k].Row = row(read[k].Term)
	}
	found := read.Recognize(words, positions, func(e string) bool { return rows[simmatrix.Spelled(e)] != "" })
	for k := range found {
		found[k].Row = row(simmatrix.Spelled(found[k].Term))
	}
	sel := new(Selection)
	sel.Start(read)
	sel.Expressions = found
	if change != nil {
		change(sel)
	}
	sel.Propose(SqrtIDF, 1000, 1, 0.1, 10)
	all := sel.Terms()
	counts := make([]int64, len(all))
	for k, term := range all {
		counts[k] = docFreqs[term]
	}
	sel.Settle(SqrtIDF, 1000, counts, 0.1)
	sel.Choose(10)
	return sel
}

// split returns the words of a text; "_" is a gap.
func split(text string) (terms []string, positions []int) {
	for k, term := range strings.Fields(text) {
		if term != "_" {
			terms, positions = append(terms, term), append(positions, k)
		}
	}
	return terms, positions
}

func said(sel *Selection) (alternatives, candidates []string) {
	for _, a := range sel.Alternatives {
		var hosts []string
		for _, h := range a.Hosts {
			hosts = append(hosts, sel.Origins[h].Term)
		}
		alternatives = append(alternatives, fmt.Sprintf("%s for %s at %s, %.2f", simmatrix.Spelled(a.Term), simmatrix.Spelled(a.For), strings.Join(hosts, "+"), a.Similarity))
	}
	for _, c := range sel.Candidates {
		candidates = append(candidates, c.Term)
	}
	return alternatives, candidates
}

func TestWhatStandsForWordsIsAnAlternativeAndNoCandidate(t *testing.T) {
	rows := map[string]string{
		"heart attack": "infarct 1, myocardial infarction 0.8, gone forever 0.7",
		"heart":        "ticker 1, cardiac 0.5, inner organ 0.4",
		"car":          "automobile 1, road 1, truck 0.5",
		"inner city":   "road 0.5, core 0.5", // the one is too frequent
	}
	docFreqs := map[string]int64{
		"heart": 50, "attack": 60, "infarct": 5, "myocardial": 8, "infarction": 9, "gone": 3, "ticker": 2, "cardiac": 20,
		"inner": 70, "organ": 10, "car": 40, "automobile": 30, "road": 700, "truck": 25,
		"city": 60, "core": 90,
	}
	for _, tt := range []struct {
		text                     string
		alternatives, candidates []string
	}{
		{"heart attack", []string{
			"infarct for heart attack at heart+attack, 1.00", "myocardial infarction for heart attack at heart+attack, 0.80",
			"ticker for heart at heart, 1.00", "inner organ for heart at heart, 0.40",
		}, []string{"cardiac"}},
		{"attack heart", []string{"ticker for heart at heart, 1.00", "inner organ for heart at heart, 0.40"}, []string{"cardiac"}},
		{"car", []string{"automobile for car at car, 1.00", "road for car at car, 1.00"}, []string{"truck"}}, // however frequent
		{"inner city", []string{"core for inner city at inner+city, 0.50"}, nil},
		{"car automobile", []string{"road for car at car, 1.00"}, []string{"truck"}}, // which says it itself
	} {
		alternatives, candidates := said(proposed(t, tt.text, rows, docFreqs, nil))
		if d := cmp.Diff(tt.alternatives, alternatives) + cmp.Diff(tt.candidates, candidates); d != "" {
			t.Errorf("%s: %s", tt.text, d)
		}
	}
	alternatives, candidates := said(proposed(t, "car", rows, docFreqs, func(s *Selection) { s.NoAlternatives = true }))
	if len(alternatives) != 0 || !slices.Equal(candidates, []string{"automobile", "truck"}) {
		t.Errorf("switched off: %q, %q", alternatives, candidates)
	}
	sel := proposed(t, "heart attack", rows, docFreqs, nil)
	if want := simmatrix.IDF(8, 1000) + simmatrix.IDF(9, 1000); math.Abs(sel.Alternatives[1].IDF-want) > 1e-12 {
		t.Errorf("the idf of a phrase is %v, want the sum %v", sel.Alternatives[1].IDF, want)
	}
	if len(sel.LeftOut) != 1 || simmatrix.Spelled(sel.LeftOut[0].Term) != "gone forever" || sel.LeftOut[0].Why != Absent {
		t.Errorf("left out: %+v", sel.LeftOut)
	}
}

// A word that no document has would be the most telling of the text.
func TestAWordOfNoDocumentTakesTheIDFOfItsMostFrequentAlternative(t *testing.T) {
	sel := proposed(t, "ticker pain", map[string]string{"ticker": "heart 1, inner organ 1"}, map[string]int64{"heart": 50, "inner": 70, "organ": 10, "pain": 30}, nil)
	if got, want := sel.Origins[0].IDF, simmatrix.IDF(50, 1000); got != want {
		t.Errorf("idf %v, want that of heart, %v", got, want)
	}
}

func TestATextHasAtMostSoManyAlternatives(t *testing.T) {
	var row []string
	docFreqs := map[string]int64{"a": 1}
	for k := range MaxAlternatives + 10 {
		term := fmt.Sprintf("t%04d", k)
		row, docFreqs[term] = append(row, term+" 1"), 1
	}
	if n := len(proposed(t, "a", map[string]string{"a": strings.Join(row, ",")}, docFreqs, nil).Alternatives); n != MaxAlternatives {
		t.Errorf("%d alternatives", n)
	}
}

func TestTheModeHardLeavesExpressionsOut(t *testing.T) {
	heart, err := simmatrix.PackRow(5, []simmatrix.Neighbor{{Term: "ticker", Similarity: 1}, {Term: expression(t, "inner organ"), Similarity: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	read := Read([]string{"heart"}, []int{0})
	read[0].Row = heart
	sel := new(Selection)
	sel.Start(read)
	sel.Gather(100)
	if alternatives, candidates := said(sel); len(alternatives) != 0 || !slices.Equal(candidates, []string{"ticker"}) {
		t.Errorf("%q, %q", alternatives, candidates)
	}
	if left := sel.LeftOut; len(left) != 1 || left[0].Term != expression(t, "inner organ") || left[0].From != "heart" || left[0].Why != NotInMode {
		t.Errorf("left out: %+v", sel.LeftOut)
	}
}

// What an alternative has of the text itself does not count twice.
func TestAlternativesThatSharePartsOfTheText(t *testing.T) {
	rows := map[string]string{
		"heart attack":      "heart failure 1, heart attack today 1",
		"personal computer": "computer 1, device 1",
		"rib cage":          "cage 0.5",
		"car":               "rental car 1",
	}
	docFreqs := map[string]int64{"heart": 5, "attack": 6, "failure": 7, "today": 8, "personal": 9, "computer": 10, "device": 11, "rib": 2, "cage": 2, "car": 5, "rental": 5}
	for text, want := range map[string][]string{
		"heart attack":              {"heart failure for heart attack at heart+attack, 1.00"},
		"personal computer":         {"computer for personal computer at personal+computer, 1.00", "device for personal computer at personal+computer, 1.00"},
		"personal computer device":  {"computer for personal computer at personal+computer, 1.00"}, // which names the device itself
		"rib cage":                  nil,                                                           // a cage is only half of it
		"car":                       nil,                                                           // every rental car is a car
		"heart attack heart attack": {"heart failure for heart attack at heart+attack, 1.00"},
	} {
		if alternatives, _ := said(proposed(t, text, rows, docFreqs, nil)); !slices.Equal(alternatives, want) {
			t.Errorf("%s: %q, want %q", text, alternatives, want)
		}
	}
}

func TestReadingsOfAPhrase(t *testing.T) {
	rows := map[string]string{
		"heart attack": "infarct 1, point _ care 1, angina 0.9",
		"heart":        "ticker 1",
		"city":         "town 1, burg 1, place 1",
		"point of":     "point of care 1", // has the words of the text, but maybe elsewhere
	}
	docFreqs := map[string]int64{"heart": 5, "attack": 6, "infarct": 7, "point": 8, "care": 9, "angina": 9, "ticker": 10, "city": 11, "town": 12, "burg": 13, "place": 14, "of": 300}
	for text, want := range map[string][]string{
		"heart attack":      {"infarct", "point _ care", "ticker attack"},
		"point of city":     {"point of care town", "point of care burg", "point of care place", "point of care city", "point of town", "point of burg", "point of place"},
		"of heart attack":   {"of infarct", "of point _ care", "of ticker attack"},
		"heart _ attack":    {"ticker _ attack"},
		"attack heart":      {"attack ticker"},
		"attack":            nil,
		"heart attack city": {"infarct town", "infarct burg", "infarct place", "infarct city", "point _ care town", "point _ care burg", "point _ care place", "point _ care city"},
		"heart" + " heart":  {"ticker" + " ticker", "ticker heart", "heart ticker"},
		"heart _ heart":     {"ticker _ ticker", "ticker _ heart", "heart _ ticker"},
		"city _ _ of":       {"town _ _ of", "burg _ _ of", "place _ _ of"},
	} {
		terms, positions := split(text)
		var got []string
		sel := proposed(t, text, rows, docFreqs, func(sel *Selection) { sel.Phrase = true })
		for _, r := range sel.Readings(terms, positions) {
			got = append(got, simmatrix.Spelled(r.Term))
			idf := 0.0
			for k, term := range r.Terms {
				if again := slices.Contains(r.Terms[:k], term); term != "" && (!again || !slices.Contains(r.Terms, "")) { // spans count a term once
					idf += simmatrix.IDF(docFreqs[term], 1000)
				}
			}
			if math.Abs(r.IDF-idf) > 1e-9 || len(r.Hosts) != len(sel.Origins) || simmatrix.Spelled(r.For) != text {
				t.Errorf("%s: %+v, want the idf %v", text, r, idf)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if text == "heart attack city" && (len(sel.LeftOut) == 0 || sel.LeftOut[0] != (LeftOut{"ticker", "heart", 1, Limited})) {
			t.Errorf("left out: %+v", sel.LeftOut)
		}
	}
}
