package demo

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/akin-search/akin/e2e/check"
)

// corpusWords returns the lower-case words of s without punctuation.
func corpusWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

func TestCorpusIsOfSufficientSize(t *testing.T) {
	check.Equal(t, []string{"help", "catalogue", "knowledge"}, Indices())
	total := 0
	for _, index := range Indices() {
		total += len(Docs(index))
		if len(Docs(index)) < 150 {
			t.Errorf("%s: %d documents, want at least 150", index, len(Docs(index)))
		}
		for i, doc := range Docs(index) {
			if want := fmt.Sprintf("%s-%03d", index, i+1); doc.ID != want {
				t.Errorf("%s: document %d has the id %q, want %q", index, i+1, doc.ID, want)
			}
			if n := len(strings.Fields(doc.Body)); n < 35 || n > 80 {
				t.Errorf("%s: a body of %d words, want 35 to 80", doc.ID, n)
			}
			if n := len(strings.Fields(doc.Title)); n < 1 || n > 12 {
				t.Errorf("%s: a title of %d words, want 1 to 12", doc.ID, n)
			}
			for _, text := range []string{doc.Title, doc.Body} {
				check.Equal(t, strings.Join(strings.Fields(text), " "), text, doc.ID)
			}
		}
	}
	if total < 400 {
		t.Errorf("%d documents, want at least 400", total)
	}
}

// Eight words in a row that two texts share are a copy, not a coincidence.
func TestCorpusTextsAreNoCopiesOfEachOther(t *testing.T) {
	const gram = 8
	seen := map[string]string{} // eight words in a row: the first document that has them
	titles := map[string]string{}
	for _, index := range Indices() {
		for _, doc := range Docs(index) {
			title := strings.ToLower(doc.Title)
			if other, ok := titles[title]; ok {
				t.Errorf("%s and %s have the same title %q", other, doc.ID, doc.Title)
			}
			titles[title] = doc.ID
			words := corpusWords(doc.Body)
			for i := range len(words) - gram + 1 {
				run := strings.Join(words[i:i+gram], " ")
				if other, ok := seen[run]; ok && other != doc.ID {
					t.Errorf("%s and %s share %q", other, doc.ID, run)
				}
				seen[run] = doc.ID
			}
		}
	}
}

func TestCorpusQueriesAreJudgedOnDocumentsOfTheirIndex(t *testing.T) {
	docs := map[string]map[string]bool{}
	for _, index := range Indices() {
		docs[index] = map[string]bool{}
		for _, doc := range Docs(index) {
			docs[index][doc.ID] = true
		}
	}
	for _, query := range Queries() {
		best := 0.0
		for id, grade := range query.Judgments {
			if !docs[query.Index][id] {
				t.Errorf("%s: no document %q in the index %q", query.ID, id, query.Index)
			}
			if grade != 1 && grade != 2 {
				t.Errorf("%s: grade %v of %s, want 1 or 2", query.ID, grade, id)
			}
			best = max(best, grade)
		}
		if best != 2 || len(query.Judgments) < 3 {
			t.Errorf("%s: %d relevant documents, best grade %v; want at least 3, one of grade 2",
				query.ID, len(query.Judgments), best)
		}
	}
}

func TestCorpusQueriesAreShortAndDistinct(t *testing.T) {
	queries := Queries()
	if len(queries) < 30 {
		t.Errorf("%d queries, want at least 30", len(queries))
	}
	perIndex := map[string]int{}
	texts := map[string]string{}
	for i, query := range queries {
		if want := fmt.Sprintf("q%02d", i+1); query.ID != want {
			t.Errorf("query %d has the id %q, want %q", i+1, query.ID, want)
		}
		if n := len(corpusWords(query.Text)); n < 2 || n > 5 {
			t.Errorf("%s: %q has %d words, want 2 to 5", query.ID, query.Text, n)
		}
		if other, ok := texts[query.Text]; ok {
			t.Errorf("%s and %s have the same text %q", other, query.ID, query.Text)
		}
		texts[query.Text] = query.ID
		perIndex[query.Index]++
	}
	for _, index := range Indices() {
		if n := perIndex[index]; n < 12 {
			t.Errorf("%s: %d queries, want at least 12", index, n)
		}
	}
}

// A relevant document that shares no word with its query is one that only an
// expanded search can find: without such documents the queries prove nothing.
func TestCorpusQueriesHaveAnswersInOtherWords(t *testing.T) {
	texts := map[string]string{}
	for _, index := range Indices() {
		for _, doc := range Docs(index) {
			texts[doc.ID] = strings.ToLower(doc.Title + " " + doc.Body)
		}
	}
	n := 0
	for _, query := range Queries() {
		for id := range query.Judgments {
			if !containsAny(texts[id], corpusWords(query.Text)) {
				n++
			}
		}
	}
	if n < 30 {
		t.Errorf("%d relevant documents share no word with their query, want at least 30", n)
	}
}

// containsAny reports whether text holds one of the words of three or more
// letters, also within longer words, so that it errs on the side of yes.
func containsAny(text string, words []string) bool {
	for _, word := range words {
		if len(word) >= 3 && strings.Contains(text, word) {
			return true
		}
	}
	return false
}
