package esclient

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// The words of the recorded call "analyze words" and their terms by the
// english analyzer, worked out by hand.
var (
	recordedWords = []string{"Running", "the", "", "wi-fi", "😀", "of", "日本", "cars"}
	recordedTerms = [][]string{{"run"}, nil, nil, {"wi", "fi"}, {"😀"}, nil, {"日", "本"}, {"car"}}
)

// librarian is a cluster with the recorded schema of the library and answers
// of its own to _analyze.
func librarian(t *testing.T, r clustertest.Recorded, analyze http.HandlerFunc) *clustertest.Fake {
	t.Helper()
	return clustertest.New().Replay(t, "GET /library", r, "schema").On("POST /library/_analyze", analyze)
}

// termsOf returns the terms of each word.
func termsOf(t *testing.T, f *clustertest.Fake, index, field string, words []string) ([][]string, error) {
	t.Helper()
	tokens, err := client(t, f).AnalyzeTexts(t.Context(), index, field, words)
	if err != nil {
		return nil, err
	}
	terms := make([][]string, len(tokens))
	for k := range tokens {
		for _, token := range tokens[k] {
			terms[k] = append(terms[k], token.Token)
		}
	}
	return terms, nil
}

// wantTerms analyzes words in the title of the library.
func wantTerms(t *testing.T, f *clustertest.Fake, words []string, want [][]string) {
	t.Helper()
	got, err := termsOf(t, f, "library", "title", words)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestRecordedTokensAreGivenToTheirWords(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		f := librarian(t, r, nil).Replay(t, "POST /library/_analyze", r, "analyze words")
		wantTerms(t, f, recordedWords, recordedTerms)
		wantTerms(t, f, nil, [][]string{})
		check.Equal(t, 1, f.Asked("/_analyze"))
	}
}

func TestBatchOfWordsIsHalvedWhereItMakesTooManyTokens(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			refusal := r.Answers["analyze too much"]
			f := librarian(t, r, func(w http.ResponseWriter, req *http.Request) {
				texts := textsOf(t, req)
				if len(texts) > 3 || slices.Contains(texts, "huge") {
					w.WriteHeader(refusal.Status)
					_, _ = w.Write(refusal.Body)
					return
				}
				_, _ = w.Write(analyzeLikeLucene(texts, lucene{}))
			})
			wantTerms(t, f, []string{"a", "b-c", "stop", "d", "huge", "e", "f", "g", "h", "i", "j"},
				[][]string{{"a"}, {"b", "c"}, nil, {"d"}, nil, {"e"}, {"f"}, {"g"}, {"h"}, {"i"}, {"j"}})
		})
	}
}

// textsOf returns the texts that a call analyzes.
func textsOf(t *testing.T, req *http.Request) []string {
	t.Helper()
	var body struct {
		Text []string `json:"text"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		t.Error(err)
	}
	return body.Text
}

func TestBatchOfWordsIsBoundedInBytes(t *testing.T) {
	var sent [][]int // the lengths of the words of each call
	f := librarian(t, clustertest.Engines(t, "testdata")[0], func(w http.ResponseWriter, req *http.Request) {
		texts := textsOf(t, req)
		var lengths []int
		for _, text := range texts {
			lengths = append(lengths, len(text))
		}
		sent = append(sent, lengths)
		_, _ = w.Write(analyzeLikeLucene(texts, lucene{}))
	})
	var words []string
	for _, n := range []int{1, wordBatchBytes, wordBatchBytes + 1, wordBatchBytes / 2, wordBatchBytes / 2, 1, 1} {
		words = append(words, strings.Repeat("w", n))
	}
	words[6] = "\xff" // it is sent as three bytes
	got, err := termsOf(t, f, "library", "title", words)
	check.Must(t, err == nil && len(got) == len(words), "%d words, error %v", len(got), err)
	want := [][]int{{1}, {wordBatchBytes}, {wordBatchBytes + 1}, {wordBatchBytes / 2, wordBatchBytes / 2}, {1, 3}}
	check.Equal(t, want, sent)
}

func TestWordsOfAnAnalyzerWithASmallGapAreAnalyzedOneByOne(t *testing.T) {
	const define = `"index.analysis.analyzer.mine.tokenizer":"t","index.analysis.analyzer.mine.position_increment_gap":"5"`
	f := clustertest.New().Reply(
		"GET /i", http.StatusOK, `{"i":`+mapped(`"f":{"type":"text","analyzer":"mine"}`, define)+`}`).Reply(

		"POST /i/_analyze", http.StatusOK, `{"tokens":[{"token":"a","position":0,"start_offset":0,"end_offset":1}]}`)

	got, err := termsOf(t, f, "i", "f", []string{"x", "y", "z"})
	check.OK(t, err)
	if diff := cmp.Diff([][]string{{"a"}, {"a"}, {"a"}}, got); diff != "" || f.Asked("/_analyze") != 3 {
		t.Errorf("%d calls: %s", f.Asked("/_analyze"), diff)
	}
}

func TestErrorEndsTheAnalysisOfWords(t *testing.T) {
	f := library(t).Reply("POST /library/_analyze", http.StatusForbidden, `{"error":{"type":"security_exception"}}`)
	_, err := termsOf(t, f, "library", "title", []string{"a", "b"})
	var refusal *Error
	check.That(t, errors.As(err, &refusal) && refusal.Status == http.StatusForbidden, "error %v", err)
}

// lucene is an analyzer as the engines run it over an array of texts: it splits
// at "-", drops "stop", and may depart from what answers.SplitTokens reads.
type lucene struct {
	// gap is the position gap less 100, at least 0.
	gap int
	// stops ends each text with its first token.
	stops bool
}

// analyzeLikeLucene returns the answer to an _analyze call. Positions and
// offsets go on from text to text as TransportAnalyzeAction of both engines
// counts them.
func analyzeLikeLucene(words []string, l lucene) []byte {
	tokens := []map[string]any{}
	position, offset := -1, 0
	for _, w := range words {
		at, end := 0, 0
		for part := range strings.SplitSeq(w, "-") {
			length := len(utf16.Encode([]rune(part)))
			position++
			switch {
			case part == "":
				position--
			case part != "stop":
				tokens = append(tokens, map[string]any{
					"token": part, "position": position, "start_offset": offset + at, "end_offset": offset + at + length,
				})
			}
			at += length + 1
			end = at - 1
			if l.stops && part != "" {
				break
			}
		}
		position += 100 + l.gap
		offset += end + 1
	}
	b, err := json.Marshal(map[string]any{"tokens": tokens})
	if err != nil {
		panic(err)
	}
	return b
}

func tokensOf(t *testing.T, words []string, l lucene) []Token {
	t.Helper()
	var answer struct {
		Tokens []Token `json:"tokens"`
	}
	check.OK(t, Decode(analyzeLikeLucene(words, l), &answer))
	return answer.Tokens
}

// However an analyzer counts, a word gets its own tokens or the answer is not
// taken.
func TestTokensOfRandomWordsAreNeverGivenToOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pool := []string{"", "stop", "a", "bb", "a-b", "ccc-dd-e", "😀", "é-😀", "stop-x", "日本"}
	taken := 0
	for range 3000 {
		words := make([]string, 1+rng.IntN(40))
		for i := range words {
			words[i] = pool[rng.IntN(len(pool))]
		}
		l := lucene{gap: []int{0, 0, 50, 100}[rng.IntN(4)], stops: rng.IntN(3) == 0}
		got, ok := SplitTokens(words, tokensOf(t, words, l))
		if !ok {
			check.Must(t, l != (lucene{}), "words %q: the plain answer was not taken", words)
			continue
		}
		taken++
		for i, w := range words {
			want, _ := SplitTokens([]string{w}, tokensOf(t, []string{w}, l))
			if !slices.EqualFunc(want[0], got[i], func(a, b Token) bool { return a.Token == b.Token && (l.stops || a.Start == b.Start && a.End == b.End) }) {
				t.Fatalf("%+v, words %q: word %d has %v, want %v", l, words, i, got[i], want[0])
			}
		}
	}
	check.That(t, taken >= 1000, "only %d answers taken", taken)
}

func TestAnalysisKnowsWhatTermsAreMadeOf(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string
		tokens []Token
		want   []string
	}{
		"words":     {"Gas, oils", []Token{{Token: "ga", Start: 0, End: 3}, {Token: "oil", Start: 5, End: 9, Position: 1}}, []string{"Gas", "oils"}},
		"the terms": {"gas", []Token{{Token: "gas", Start: 0, End: 3}}, nil},
		"synonyms":  {"Gas", []Token{{Token: "gas", Start: 0, End: 3}, {Token: "petrol", Start: 0, End: 3}}, nil},
		"several words for one": {
			"NY", []Token{{Token: "new", End: 2}, {Token: "ny", End: 2}, {Token: "york", End: 2, Position: 1}}, nil,
		},
		"UTF-16":      {"😀 Öle Gas", []Token{{Token: "ol", Start: 3, End: 6}, {Token: "gas", Start: 7, End: 10, Position: 1}}, []string{"Öle", "Gas"}},
		"no offsets":  {"Gas", []Token{{Token: "ga"}}, nil},
		"bad offsets": {"Gas", []Token{{Token: "a", Start: -1, End: 2}, {Token: "b", Start: 2, End: 4, Position: 1}, {Token: "c", Start: 2, End: 1, Position: 2}}, nil},
	} {
		check.Equal(t, tt.want, newTerms(tt.text, tt.tokens).Written, name)
	}
}

func TestAnalysisIsInTheOrderOfPositions(t *testing.T) {
	got := newTerms("Ab", []Token{{Token: "b", Position: 1, Start: 1, End: 2}, {Token: "a", End: 1}, {Token: "c", Position: 1, Start: 1, End: 2}}).in(&mapping.Schema{Shards: 1, SearchAnalyzers: "own"}, "")
	want := &Analysis{Terms: []string{"a", "b", "c"}, Positions: []int{0, 1, 1}, Written: []string{"A", "", ""}, Analyzer: "own", Shards: 1}
	check.Equal(t, want, got)
}
