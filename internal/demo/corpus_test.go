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
		check.That(t, len(Docs(index)) >= 150, "%s: %d documents, want at least 150", index, len(Docs(index)))
		for i, doc := range Docs(index) {
			check.Equal(t, fmt.Sprintf("%s-%03d", index, i+1), doc.ID, index, i+1)
			n := len(strings.Fields(doc.Body))
			check.That(t, n >= 35 && n <= 80, "%s: a body of %d words, want 35 to 80", doc.ID, n)
			n = len(strings.Fields(doc.Title))
			check.That(t, n >= 1 && n <= 12, "%s: a title of %d words, want 1 to 12", doc.ID, n)
			for _, text := range []string{doc.Title, doc.Body} {
				check.Equal(t, strings.Join(strings.Fields(text), " "), text, doc.ID)
			}
		}
	}
	check.That(t, total >= 400, "%d documents, want at least 400", total)
}

// Eight words in a row that two texts share are a copy, not a coincidence.
func TestCorpusTextsAreNoCopiesOfEachOther(t *testing.T) {
	const gram = 8
	seen := map[string]string{} // eight words in a row: the first document that has them
	titles := map[string]string{}
	for _, index := range Indices() {
		for _, doc := range Docs(index) {
			title := strings.ToLower(doc.Title)
			other, ok := titles[title]
			check.That(t, !ok, "%s and %s have the same title %q", other, doc.ID, doc.Title)
			titles[title] = doc.ID
			words := corpusWords(doc.Body)
			for i := range len(words) - gram + 1 {
				run := strings.Join(words[i:i+gram], " ")
				other, ok := seen[run]
				check.That(t, !ok || other == doc.ID, "%s and %s share %q", other, doc.ID, run)
				seen[run] = doc.ID
			}
		}
	}
}

// A relevant document that shares no word with its query is one that only an
// expanded search can find: without such documents the queries prove nothing.
func TestCorpusQueriesAreShortAndJudgedAndHaveAnswersInOtherWords(t *testing.T) {
	docs := map[string]map[string]string{} // texts by id, of each index
	for _, index := range Indices() {
		docs[index] = map[string]string{}
		for _, doc := range Docs(index) {
			docs[index][doc.ID] = strings.ToLower(doc.Title + " " + doc.Body)
		}
	}
	queries := Queries()
	check.That(t, len(queries) >= 30, "%d queries, want at least 30", len(queries))
	perIndex, texts, otherWords := map[string]int{}, map[string]string{}, 0
	for i, query := range queries {
		check.Equal(t, fmt.Sprintf("q%02d", i+1), query.ID, "query", i+1)
		words := corpusWords(query.Text)
		check.That(t, len(words) >= 2 && len(words) <= 5, "%s: %q has %d words, want 2 to 5", query.ID, query.Text, len(words))
		other, ok := texts[query.Text]
		check.That(t, !ok, "%s and %s have the same text %q", other, query.ID, query.Text)
		texts[query.Text] = query.ID
		perIndex[query.Index]++
		best := 0.0
		for id, grade := range query.Judgments {
			text, ok := docs[query.Index][id]
			check.That(t, ok && (grade == 1 || grade == 2), "%s: grade %v of %s, want 1 or 2 of a document in %s", query.ID, grade, id, query.Index)
			best = max(best, grade)
			if !containsAny(text, words) {
				otherWords++
			}
		}
		check.That(t, best == 2 && len(query.Judgments) >= 3, "%s: %d relevant documents, best grade %v; want at least 3, one of grade 2",
			query.ID, len(query.Judgments), best)
	}
	for _, index := range Indices() {
		check.That(t, perIndex[index] >= 12, "%s: %d queries, want at least 12", index, perIndex[index])
	}
	check.That(t, otherWords >= 30, "%d relevant documents share no word with their query, want at least 30", otherWords)
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
