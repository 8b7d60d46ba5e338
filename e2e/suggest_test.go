package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

const suggestStatsFile = "testdata/suggest_stats.txt"

// A replacedQuery is a query with another word in the place of one of its words.
type replacedQuery struct {
	judgedQuery

	index, right string // of the query in its collection, and its word
	whole        judgedQuery
}

// misspelledWords are misspellings of words, of the lists of Wikipedia and of
// Birkbeck.
func misspelledWords(t *testing.T) map[string][]string {
	t.Helper()
	wrong := misspellings(t, wikipediaTypos)
	for word, ways := range misspellings(t, birkbeckTypos) {
		wrong[word] = append(wrong[word], ways...)
	}
	return wrong
}

// otherWords are words of the thesaurus that are on a line with a word.
func otherWords(t *testing.T) map[string][]string {
	t.Helper()
	others := map[string][]string{}
	eachLine(t, thesaurusFile(t), func(line string) error {
		all := strings.Split(line, ",")
		for k, word := range all {
			word = strings.TrimSpace(word)
			for i, other := range all {
				if other = strings.TrimSpace(other); i != k && !strings.ContainsAny(word+other, " _-'.") {
					others[strings.ToLower(word)] = append(others[strings.ToLower(word)], strings.ToLower(other))
				}
			}
		}
		return nil
	})
	return others
}

// replaceWords returns every third query with one word replaced by another that
// no document has.
func (e *engine) replaceWords(t *testing.T, c *collection, others map[string][]string) (replaced []replacedQuery) {
	t.Helper()
	random := rand.New(rand.NewPCG(5, 8))
	words := regexp.MustCompile(`\pL+`)
	index := judgedIndexName(c)
	for k, q := range c.queries {
		if k%3 != 0 {
			continue
		}
		type way struct {
			at   []int
			word string
		}
		var all []way
		for _, at := range words.FindAllStringIndex(q.text, -1) {
			for _, other := range slices.Compact(slices.Sorted(slices.Values(others[strings.ToLower(q.text[at[0]:at[1]])]))) {
				all = append(all, way{at, other})
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var tried []string
		for _, w := range all {
			tried = append(tried, w.word)
		}
		unknown := e.unknown(t, index, tried)
		ways := slices.DeleteFunc(all, func(w way) bool { return !slices.Contains(unknown, w.word) })
		if len(ways) == 0 {
			continue
		}
		w := ways[0]
		text := strings.ToLower(q.text[:w.at[0]] + w.word + q.text[w.at[1]:])
		replaced = append(replaced, replacedQuery{judgedQuery{q.id, text, q.grades}, index, strings.ToLower(q.text[w.at[0]:w.at[1]]), q})
	}
	return replaced
}

// unknown returns those of words of letters of which no document of an index has
// the term.
func (e *engine) unknown(t *testing.T, index string, words []string) (unknown []string) {
	t.Helper()
	text := strings.Join(words, "\n")
	found := ask[struct {
		TermVectors map[string]struct {
			Terms map[string]termVector
		} `json:"term_vectors"`
	}](t, e.cluster, http.MethodPost, "/"+index+"/_termvectors?realtime=false",
		`{"doc":{"body":`+quote(text)+`},"fields":["body"],"term_statistics":true,"positions":false}`)
	units := utf16.Encode([]rune(text)) // in which engines count
	for _, v := range found.TermVectors["body"].Terms {
		for _, token := range v.Tokens {
			if v.DocFreq == 0 {
				unknown = append(unknown, string(utf16.Decode(units[token.Start:token.End])))
			}
		}
	}
	return unknown
}

// stems returns the terms of words.
func (e *engine) stems(t *testing.T, index string, words ...string) (terms []string) {
	t.Helper()
	for _, word := range words {
		var b strings.Builder
		for _, token := range ask[struct{ Tokens []struct{ Token string } }](t, e.cluster, http.MethodPost, "/"+index+"/_analyze", toJSON(t, section{"field": "body", "text": word})).Tokens {
			b.WriteString(token.Token + " ")
		}
		terms = append(terms, b.String())
	}
	return terms
}

// A suggestStat is what is measured of proposals.
type suggestStat struct {
	Replaced int // queries with another word in the place of one
	First    int // of which the right word is the first proposal
	Three    int // and among the first three
	// Cost and Back are sums of nDCG@10 of the latter: what the replacement cost, and
	// what came back when the right word was accepted.
	Cost, Back float64
}

func (s *suggestStat) add(o suggestStat) {
	s.Replaced += o.Replaced
	s.First += o.First
	s.Three += o.Three
	s.Cost += o.Cost
	s.Back += o.Back
}

func (s *suggestStat) String() string {
	share := func(n int) float64 { return 100 * float64(n) / float64(s.Replaced) }
	text := fmt.Sprintf("%d queries  first: %.1f %%  first three: %.1f %%", s.Replaced, share(s.First), share(s.Three))
	if s.Cost > 0 {
		text += fmt.Sprintf("  nDCG@10 lost: %.3f  back: %.1f %%", s.Cost, 100*s.Back/s.Cost)
	}
	return text
}

// What has to be reached of misspelled words.
const (
	leastThree = 0.6 // the right one among the first three
	leastBack  = 0.8 // of the nDCG@10 that was lost
)

// TestProposalsFindTheWordThatWasMeant replaces a word of every third judged
// query, of its three rarest, all of which have to match: by a misspelling, and by
// another word of the thesaurus that the index does not use. akin suggest
// proposes words, and of those the right one is accepted.
func TestProposalsFindTheWordThatWasMeant(t *testing.T) {
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	kinds := map[string]map[string][]string{"misspelled": misspelledWords(t), "another word": otherWords(t)}
	stats := map[string]*suggestStat{}
	note := func(name string, of suggestStat) {
		if stats[name] == nil {
			stats[name] = &suggestStat{}
		}
		stats[name].add(of)
	}
	for _, name := range tunedCollections {
		whole := loadCollection(t, name)
		index, matrix := e.judged(t, whole)
		c := e.threeTerms(t, whole)
		for kind, others := range kinds {
			of := e.suggestFor(t, index, matrix, e.replaceWords(t, c, others))
			note(kind+", "+name, of)
			note(kind, of)
		}
	}
	var lines strings.Builder
	lines.WriteString("# Measured by TestProposalsFindTheWordThatWasMeant. Refresh: go test ./e2e -run TestProposalsFindTheWordThatWasMeant -update\n\n")
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		fmt.Fprintf(&lines, "%-27s %s\n", name, stats[name])
	}
	t.Logf("\n%s", &lines)
	if *update {
		if err := os.WriteFile(suggestStatsFile, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := stats["misspelled"]
	if three, back := float64(of.Three)/float64(of.Replaced), of.Back/of.Cost; three < leastThree || back < leastBack {
		t.Errorf("misspelled: %v, want %v among the first three, and %v back", of, leastThree, leastBack)
	}
}

// TestAcceptedPairsHelpOnEveryEngine has a search that finds nothing listed from
// Redis, and accepts a word of the index for its word.
func TestAcceptedPairsHelpOnEveryEngine(t *testing.T) {
	const index = "akin-e2e-accepted"
	eachEngine(t, func(t *testing.T, e *engine) {
		redis := ownRedis(t)
		e.remakeIndex(t, index, oneShard(`"title":{"type":"text","analyzer":"english"}`))
		var docs []document
		for n := range 20 {
			docs = append(docs, document{strconv.Itoa(n), map[string]any{"title": []string{"Sofas of grey linen", "Flash light with battery"}[n%2]}})
		}
		e.index(t, index, docs)
		a := setup(t, e, section{
			"expansion": section{"nearest_words": false},
			"matrices":  matrices("s", build(t, e.of(index, "title")...)),
			"searches":  section{"collect": true},
			"redis":     redis.section(),
		})
		body := func(text string) string {
			return `{"query":{"match":{"title":{"query":"` + text + `","operator":"and"}}}}`
		}
		finds := func(text string) error {
			if found := len(a.find(t, index, body(text)).ids()); found != 10 {
				return fmt.Errorf("%q finds %d", text, found)
			}
			return nil
		}
		for text, pair := range map[string]string{"sopha": "sopha -> sofas  (spelling) finds 10: ", "flashlight": "flashlight -> flash light  (two words) finds 10: "} {
			if finds(text) == nil {
				t.Fatalf("%q finds something by itself", text)
			}
			waitFor(t, 30*time.Second, "the proposal", func() error {
				list := mustAkin(t, "suggest", "--config", a.config)
				for line := range strings.Lines(list) {
					if number, rest, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.HasPrefix(rest, pair) {
						mustAkin(t, "suggest", "accept", number, "--config", a.config)
						return nil
					}
				}
				return fmt.Errorf("no %s in\n%s", pair, list)
			})
			waitFor(t, 30*time.Second, "the accepted word", func() error { return finds(text) })
		}
	})
}

// suggestFor measures the proposals for replaced queries of an index.
func (e *engine) suggestFor(t *testing.T, index, matrix string, replaced []replacedQuery) (s suggestStat) {
	t.Helper()
	dir := newDir(t, "suggest")
	file := filepath.Join(dir, "m.akin")
	if err := os.WriteFile(file, []byte(readFile(t, matrix)), 0o600); err != nil {
		t.Fatal(err)
	}
	var list []section
	day := section{"date": time.Now().UTC().Format(time.DateOnly), "none": 1}
	for _, q := range replaced {
		list = append(list, section{"index": index, "fields": "body", "text": q.text, "days": []section{day}})
	}
	collected := writeFile(t, "searches.json", toJSON(t, section{"version": 1, "searches": list}))
	a := setup(t, e, section{"matrices": []section{{"name": "m", "indices": []string{index}, "fields": []string{"body"}, "file": file}}})
	type proposals struct {
		Text, Problem string
		Proposals     []struct {
			Number         int
			Word, To, From string
			Found          int
		}
	}
	var suggested []proposals
	out := mustAkin(t, "suggest", "--config", a.config, "--searches", collected, "--max", "1000", "--json")
	if err := json.Unmarshal([]byte(out), &suggested); err != nil {
		t.Fatal(err)
	}
	var accept []string
	var right []replacedQuery
	for _, q := range replaced {
		k := slices.IndexFunc(suggested, func(of proposals) bool { return of.Text == q.text })
		s.Replaced++
		if k < 0 || suggested[k].Problem != "" {
			t.Errorf("%q is not listed, or has a problem", q.text)
			continue
		}
		proposals := suggested[k].Proposals
		rank := -1
		for i := range proposals {
			if p := proposals[i]; p.Number > 0 && rank < 0 && i < 3 {
				if terms := e.stems(t, index, p.To, q.right); terms[0] == terms[1] {
					rank = i
					accept = append(accept, strconv.Itoa(p.Number))
					right = append(right, q)
				}
			}
		}
		if rank == 0 {
			s.First++
		}
		if rank >= 0 {
			s.Three++
		}
	}
	if len(accept) == 0 {
		return s
	}
	body := countedBody(countedWords["and"])
	queries := func(of func(q replacedQuery) judgedQuery) (all []judgedQuery) {
		for _, q := range right {
			all = append(all, of(q))
		}
		return all
	}
	as := func(q replacedQuery) judgedQuery { return q.judgedQuery }
	was := rank(t, a.cluster, index, body, queries(func(q replacedQuery) judgedQuery { return q.whole }))
	before := rank(t, a.cluster, index, body, queries(as))
	mustAkin(t, append([]string{"suggest", "accept", "--config", a.config}, accept...)...)
	a.awaitMetric(t, float64(readMatrix(t, file).Len()), "akin_matrix_terms", `="m"`)
	after := rank(t, a.cluster, index, body, queries(as))
	for k := range right {
		s.Cost += was[k].NDCG10 - before[k].NDCG10
		s.Back += after[k].NDCG10 - before[k].NDCG10
	}
	return s
}
