package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// note keeps an empty search of an index and returns its id.
func note(x *Ring, index string, body []byte) string {
	return x.Add(&Record{Index: index, Original: Message{Body: body}, Result: &expand.Result{}})
}

// kept returns the clauses that are kept, the size of their JSON, and how many
// are cut.
func kept(t *testing.T, clauses []expand.Explanation) (kept []expand.Explanation, size, cut int) {
	t.Helper()
	encoded, cut := keepClauses(clauses)
	check.OK(t, json.Unmarshal(encoded, &kept))
	return kept, len(encoded), cut
}

// textsOf returns all texts of a clause.
func textsOf(c *expand.Explanation) []string {
	texts := append([]string{c.Path, c.Field, c.Matrix, c.Form, c.Phase, string(c.Reason)}, c.Terms...)
	for _, a := range c.Added {
		texts = append(texts, a.Term, a.From)
	}
	return texts
}

// Whatever the clauses, those that are kept are a part of them that fits into
// its bound.
func TestKeptClausesAreBounded(t *testing.T) {
	bounded := func(clauses []expand.Explanation, longer uint16) bool {
		for i := range clauses {
			clauses[i].Path += strings.Repeat("ä", int(longer)%600)
		}
		before := fmt.Sprint(clauses)
		kept, size, cut := kept(t, clauses)
		for i := range kept {
			for _, text := range textsOf(&kept[i]) {
				if len(text) > maxText {
					return false
				}
			}
		}
		whole := 0
		for i := range kept {
			if len(kept[i].Terms) == len(clauses[i].Terms) && len(kept[i].Added) == len(clauses[i].Added) {
				whole++
			}
		}
		return size <= maxClauseBytes && whole+cut >= len(clauses) && fmt.Sprint(clauses) == before
	}
	if err := quick.Check(bounded, &quick.Config{MaxCount: 300}); err != nil {
		t.Error(err)
	}
}

func TestClausesThatDoNotFitAreCut(t *testing.T) {
	word := strings.Repeat("x", maxText)
	small := expand.Explanation{Path: "query.match", Field: "body", Terms: []string{"car"}, Written: []string{"cars"}, Added: []expand.Added{{Term: "automobile", From: "car", Weight: 1}}}
	small.Alternatives = []expand.Alternative{{Term: "motor car", For: "car", Key: "\x1fmotor\x1fcar", ForKey: "car"}}
	large := expand.Explanation{Path: "query.match", Reason: "no_neighbors"}
	for range 1000 {
		large.Terms = append(large.Terms, word)
	}
	without := large
	without.Terms = nil
	many := make([]expand.Explanation, 10_000)
	for i := range many {
		many[i] = small
	}
	for _, tt := range []struct {
		name    string
		clauses []expand.Explanation
		want    []expand.Explanation
		cut     int
	}{
		{"none", nil, []expand.Explanation{}, 0},
		{"all fit", []expand.Explanation{small, small}, []expand.Explanation{small, small}, 0},
		{"one is too large", []expand.Explanation{small, large, small}, []expand.Explanation{small, without, small}, 1},
	} {
		got, _, cut := kept(t, tt.clauses)
		diff := cmp.Diff(tt.want, got)
		check.That(t, diff == "" && cut == tt.cut, "%s: %d are cut, want %d (-want +got):\n%s", tt.name, cut, tt.cut, diff)
	}
	got, size, cut := kept(t, many)
	whole := 0
	for i := range got {
		whole += len(got[i].Added)
	}
	check.That(t, whole >= 80 && whole+cut == len(many) && size <= maxClauseBytes, "of many %d are kept whole in %d bytes, %d are cut", whole, size, cut)
}

func TestClippedTextsAreSoundAndShort(t *testing.T) {
	for _, s := range []string{"", "car", strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("€", 300), "a" + strings.Repeat("€", 300)} {
		got := clipped(s)
		body, wasCut := strings.CutSuffix(got, cutMark)
		check.That(t, len(got) <= maxText && utf8.ValidString(got) && strings.HasPrefix(s, body) && wasCut == (len(s) > maxText), "clipped(%.20q, %d bytes) = %.20q, %d bytes", s, len(s), got, len(got))
	}
}

// Searches for one word of almost a megabyte, and errors and names that are as
// long, take no more memory than all other searches.
func TestLongTextsDoNotGetAroundTheBoundOfExplanations(t *testing.T) {
	var x Ring
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range MaxKept {
		long := strings.Repeat("x", 900<<10)
		res := &expand.Result{Clauses: []expand.Explanation{{
			Path: long, Field: long[:10], Matrix: long, Terms: []string{long, long[1:2]}, Reason: reason.Reason(long),
			Added: []expand.Added{{Term: long, From: long[:5]}},
		}}, Parts: []expand.Part{{Err: errors.New(long)}}}
		line := long[:60<<10] // the path and the query string are a part of it
		x.Add(&Record{Index: line[:1+i%100], Profile: line[:3], Original: Message{line[200:300], []byte("{}")}, Result: res, Reason: long})
		check.Must(t, x.size <= maxBytes, "%d bytes are held", x.size)
	}
	grown := heap() - before
	check.That(t, grown <= 2*maxBytes, "the heap grew by %d bytes", grown)
	check.Equal(t, MaxKept, len(x.kept), "are kept all: they are short")
}

func TestExplanationTooLargeForAllMemoryIsNotKept(t *testing.T) {
	var x Ring
	id := note(&x, "a", nil)
	large := x.Add(&Record{Original: Message{RawQuery: strings.Repeat("q", maxBytes)}})
	_, ok := x.Find(id, nil)
	check.That(t, ok && len(x.kept) == 1 && large == "", "%d are kept, the last named %q", len(x.kept), large)
}

func TestExplanationsAreBoundedByBytes(t *testing.T) {
	var x Ring
	first := note(&x, "first", nil)
	for range 3 * maxBytes / maxBody {
		note(&x, "large", make([]byte, maxBody))
		check.Must(t, x.size <= maxBytes && x.size >= 0, "%d bytes are held", x.size)
	}
	_, ok := x.Find(first, nil)
	check.That(t, !ok, "the oldest is still there")
	held := 0
	for _, e := range x.kept {
		held += cap(e.original)
	}
	if n := len(x.kept); n < 100 || n > 127 || held > maxBytes { // 128 bodies, but for what comes with them
		t.Errorf("%d explanations with %d bytes of bodies are held", n, held)
	}
	for range MaxKept {
		note(&x, "small", nil)
	}
	n := len(x.kept)
	check.That(t, n == MaxKept && x.size <= MaxKept<<10, "then %d, with %d bytes", n, x.size)
}

// A body of which a part is used keeps all of its memory.
func TestBodyWithMuchRoomBehindItIsNotKept(t *testing.T) {
	var x Ring
	id := note(&x, "a", make([]byte, 10, maxBody+1))
	e, _ := x.Find(id, nil)
	check.That(t, e.Original.Body == nil && e.Original.Size == 10, "kept %d bytes", cap(e.Original.Body))
}

// A text can have any number of words that the matrix does not know.
func TestWordsWithoutARowAreKeptWithinTheBounds(t *testing.T) {
	got, _, cut := kept(t, []expand.Explanation{{NoRow: []string{strings.Repeat("x", 2*maxText)}}})
	check.That(t, cut == 0 && len(got[0].NoRow) == 1 && len(got[0].NoRow[0]) <= maxText, "%d clauses are cut, kept %v", cut, got)
	got, size, cut := kept(t, []expand.Explanation{{NoRow: make([]string, maxClauseBytes)}})
	check.That(t, cut == 1 && got[0].NoRow == nil && size <= maxClauseBytes, "%d clauses are cut, %d words are kept in %d bytes", cut, len(got[0].NoRow), size)
}

func TestTheHeaderNamesWhyAnAnswerIsThatToTheOriginal(t *testing.T) {
	for want, s := range map[string]*Search{
		"rewritten":                      {Outcome: Rewritten},
		"unchanged; reason=no_neighbors": {Outcome: Unchanged, Why: "no_neighbors"},
		"failed-open; cause=budget":      {Outcome: FailedOpen, Why: "budget"},
		"failed-open; cause=rejected":    {Outcome: Rewritten, Record: Record{Refused: true}},
		"failed-open; cause=unreadable":  {Outcome: Rewritten, Record: Record{Uncut: true, Reranked: []string{"", "unreadable"}}},
	} {
		check.Equal(t, want, s.Became())
	}
}
