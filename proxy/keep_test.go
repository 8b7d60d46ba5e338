package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

func TestSizesOfWhatIsKeptAreNotTooSmall(t *testing.T) {
	for name, sizes := range map[string][2]uintptr{
		"entry":  {entryBytes, unsafe.Sizeof(entry{}) + 32},
		"clause": {clauseBytes, 2 * unsafe.Sizeof(expand.Clause{})},
		"term":   {termBytes, unsafe.Sizeof("")},
		"added":  {addedBytes, unsafe.Sizeof(expand.Added{})},
		"text":   {textBytes, unsafe.Sizeof("")},
	} {
		if sizes[0] < sizes[1] {
			t.Errorf("%s: %d bytes are counted, it has %d", name, sizes[0], sizes[1])
		}
	}
}

// textsOf returns all texts of a clause.
func textsOf(c *expand.Clause) []string {
	texts := append([]string{c.Path, c.Field, c.Matrix, c.Form, c.Phase, string(c.Reason)}, c.Terms...)
	for _, a := range c.Added {
		texts = append(texts, a.Term, a.From)
	}
	return texts
}

// Whatever the clauses, those that are kept are a part of them that fits into
// its bound, and nothing of them is that of the search.
func TestKeptClausesAreBounded(t *testing.T) {
	check := func(clauses []expand.Clause, longer uint16) bool {
		for i := range clauses {
			clauses[i].Path += strings.Repeat("ä", int(longer)%600)
		}
		before := fmt.Sprint(clauses)
		kept, size, cut := keepClauses(clauses)
		held := 0
		for i := range kept {
			held += int(unsafe.Sizeof(kept[i])) + termBytes*cap(kept[i].Terms) + int(unsafe.Sizeof(expand.Added{}))*cap(kept[i].Added)
			for _, text := range textsOf(&kept[i]) {
				held += len(text)
				if len(text) > maxExplainedText {
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
		return size <= maxExplainedClauses && held <= size+size/4 && whole+cut >= len(clauses) && fmt.Sprint(clauses) == before
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 300}); err != nil {
		t.Error(err)
	}
}

func TestClausesThatDoNotFitAreCut(t *testing.T) {
	word := strings.Repeat("x", maxExplainedText)
	small := expand.Clause{Path: "query.match", Field: "body", Terms: []string{"car"}, Added: []expand.Added{{Term: "automobile", From: "car", Weight: 1}}}
	large := expand.Clause{Path: "query.match", Reason: "no_neighbors"}
	for range 1000 {
		large.Terms = append(large.Terms, word)
	}
	without := large
	without.Terms = nil
	many := make([]expand.Clause, 10_000)
	for i := range many {
		many[i] = small
	}
	for _, tt := range []struct {
		name    string
		clauses []expand.Clause
		want    []expand.Clause
		cut     int
	}{
		{"none", nil, nil, 0},
		{"all fit", []expand.Clause{small, small}, []expand.Clause{small, small}, 0},
		{"one is too large", []expand.Clause{small, large, small}, []expand.Clause{small, without, small}, 1},
	} {
		got, _, cut := keepClauses(tt.clauses)
		if diff := cmp.Diff(tt.want, got); diff != "" || cut != tt.cut {
			t.Errorf("%s: %d are cut, want %d (-want +got):\n%s", tt.name, cut, tt.cut, diff)
		}
	}
	got, size, cut := keepClauses(many)
	if n := len(got); n < 100 || len(many)-n > cut || cut > len(many)-n+1 || size > maxExplainedClauses {
		t.Errorf("of many %d are kept in %d bytes, %d are cut", n, size, cut)
	}
}

func TestClippedTextsAreSoundAndShort(t *testing.T) {
	for _, s := range []string{"", "car", strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("€", 300), "a" + strings.Repeat("€", 300)} {
		got := clipped(s)
		body, wasCut := strings.CutSuffix(got, cutMark)
		if len(got) > maxExplainedText || !utf8.ValidString(got) || !strings.HasPrefix(s, body) || wasCut != (len(s) > maxExplainedText) {
			t.Errorf("clipped(%.20q, %d bytes) = %.20q, %d bytes", s, len(s), got, len(got))
		}
	}
}

// Searches for one word of almost a megabyte, and errors and names that are as
// long, take no more memory than all other searches.
func TestLongTextsDoNotGetAroundTheBoundOfExplanations(t *testing.T) {
	s := newServer(t, Options{})
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range maxExplained {
		long := strings.Repeat("x", 900<<10)
		res := &expand.Result{Clauses: []expand.Clause{{
			Path: long, Field: long[:10], Matrix: long, Terms: []string{long, long[1:2]}, Reason: reason.Reason(long),
			Added: []expand.Added{{Term: long, From: long[:5]}},
		}}, Failures: []error{errors.New(long)}}
		line := long[:60<<10] // the path and the query string are a part of it
		ex := &exchange{index: line[:1+i%100], rawQuery: line[200:300], original: []byte("{}")}
		ex.control.profile = line[:3]
		s.record(ex, &http.Request{}, match{route: &routes[0]}, res, "")
		if s.explanations.size > maxExplainedBytes {
			t.Fatalf("%d bytes are held", s.explanations.size)
		}
	}
	if grown := heap() - before; grown > 2*maxExplainedBytes {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if s.explanations.count != maxExplained {
		t.Errorf("%d are kept, want all: they are short", s.explanations.count)
	}
}

func TestExplanationTooLargeForAllMemoryIsNotKept(t *testing.T) {
	s := newServer(t, Options{})
	id := note(s, "a", nil)
	ex := &exchange{rawQuery: strings.Repeat("q", maxExplainedBytes), control: control{explain: true}}
	s.record(ex, &http.Request{}, match{route: &routes[0]}, &expand.Result{}, "")
	if _, ok := s.explanations.find(id); !ok || s.explanations.count != 1 || ex.record != "" {
		t.Errorf("%d are kept, the last named %q", s.explanations.count, ex.record)
	}
}

// What was cut is told of, and counts.
func TestExplanationTellsWhatItDoesNotShow(t *testing.T) {
	s := newServer(t, Options{})
	clause := expand.Clause{Path: "query.match", Form: "linear", Added: make([]expand.Added, 2000)}
	ex := &exchange{}
	s.record(ex, &http.Request{}, match{route: &routes[0]}, &expand.Result{Rewritten: true, Body: []byte("{}"), Clauses: []expand.Clause{clause}}, "")
	var shown struct {
		Added   int             `json:"added_terms"`
		Cut     int             `json:"clauses_cut"`
		Clauses []expand.Clause `json:"clauses"`
	}
	getAdmin(t, s, "/_akin/explanations/"+ex.record, &shown)
	if shown.Added != 2000 || shown.Cut != 1 || len(shown.Clauses) != 1 || shown.Clauses[0].Path != "query.match" || shown.Clauses[0].Added != nil {
		t.Errorf("shown %+v", shown)
	}
}
