package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// softHostile returns an engine and the configuration of an akin that ranks all
// hits of mode soft.
func softHostile(t *testing.T) (e *engine, config section) {
	t.Helper()
	e = oneEngine(t)
	matrix := filepath.Join(newDir(t, "matrix"), "s.akin")
	writeSoftMatrix(t, matrix)
	config = softConfig(e, matrix)
	config["expansion"].(section)["max_doc_share"] = 1
	return e, config
}

// ownedIndex has documents with owners.
const ownedIndex = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
	"mappings":{"properties":{"body":{"type":"text","analyzer":"whitespace"},"owner":{"type":"keyword"}}}}`

// Users share what is remembered of documents, but each gets the hits of the
// own filter alone, in the order in which a new akin puts them.
func TestRememberedTermsShowNobodyTheDocumentsOfOthers(t *testing.T) {
	t.Parallel()
	const index, users, each = "akin-e2e-owned", 2000, 3
	e, config := softHostile(t)
	e.makeIndex(t, index, ownedIndex)
	words := []string{"flow", "stream", "air", "wing", "blade"}
	var docs []document
	for u := range users {
		for k := range each {
			n := u*each + k
			text := strings.Repeat(words[n%5]+" ", 1+n%7) + words[(n/5)%5] + " flow"
			docs = append(docs, document{fmt.Sprintf("%d-%d", u, k), map[string]any{"body": text, "owner": strconv.Itoa(u)}})
		}
	}
	e.index(t, index, docs)
	a := startAkin(t, config)
	a.awaitMatrix(t, "s")
	search := func(a *akin, user int) hitList {
		body := fmt.Sprintf(`{"query":{"bool":{"must":[{"match":{"body":"flow"}}],"filter":[{"term":{"owner":"%d"}}]}}}`, user)
		hits, err := a.search(t.Context(), "/"+index+"/_search", body)
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	if _, err := a.search(t.Context(), "/"+index+"/_search", pageBody("flow", 0, 100)); err != nil {
		t.Fatal(err)
	}
	kept := map[int]hitList{}
	for u := range users {
		hits := search(a, u)
		ids := hits.ids()
		if slices.Sort(ids); !slices.Equal(ids, []string{fmt.Sprintf("%d-0", u), fmt.Sprintf("%d-1", u), fmt.Sprintf("%d-2", u)}) {
			t.Fatalf("user %d gets %v", u, ids)
		}
		if u%200 == 0 {
			kept[u] = hits
		}
	}
	if n := a.metric(t, rerankedMetric, rerankedResult); n != users+1 {
		t.Errorf("%v searches were ranked, want %d", n, users+1)
	}
	fresh := startAkin(t, config)
	fresh.awaitMatrix(t, "s")
	for u, want := range kept {
		if got := search(fresh, u); !slices.Equal(got.ids(), want.ids()) {
			t.Errorf("user %d gets %v, and of a new akin %v", u, want.ids(), got.ids())
		}
	}
}

// An index that is deleted and made again has documents of the same ids and
// sequence numbers. Nothing is lost, and once the UUID of the index is asked
// for again the order is that of the new texts.
func TestAnIndexMadeAgainIsRankedByItsOwnTexts(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-again"
	e, config := softHostile(t)
	texts := []string{"flow", "flow stream air stream", "flow air", "flow wing air wing air wing", "flow blade air blade"}
	fill := func(turn int) {
		e.remakeIndex(t, index, ownedIndex)
		var docs []document
		for n := range texts {
			docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": texts[(n+turn)%len(texts)]}})
		}
		e.index(t, index, docs)
	}
	t.Cleanup(func() { e.dropIndex(index) })
	fill(0)
	config["caches"] = section{"ttl": "2s"}
	a := startAkin(t, config)
	a.awaitMatrix(t, "s")
	search := func() []string {
		hits, err := a.search(t.Context(), "/"+index+"/_search", pageBody("flow", 0, 10))
		if err != nil {
			t.Fatal(err)
		}
		return hits.ids()
	}
	before := search()
	fill(2)
	if ids := search(); len(ids) != len(texts) || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(texts) {
		t.Errorf("%v are not the hits, each once", ids)
	}
	time.Sleep(2100 * time.Millisecond) // the life of what is known of indices
	for n, id := range search() {
		k, _ := strconv.Atoi(id)
		if was, _ := strconv.Atoi(before[n]); texts[(k+2)%len(texts)] != texts[was] {
			t.Errorf("hit %d has the text %q, want %q", n, texts[(k+2)%len(texts)], texts[was])
		}
	}
}

// A hundred hits of a megabyte each are ranked, since only those of the page
// are read. A page that is too long is the engine's own, byte for byte but for
// the time that it took.
func TestHitsOfAMegabyteAreRanked(t *testing.T) {
	t.Parallel()
	const index, hits = "akin-e2e-huge", 100
	e, config := softHostile(t)
	e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},
		"mappings":{"properties":{"body":{"type":"text","analyzer":"whitespace"},"rest":{"type":"keyword","index":false,"doc_values":false}}}}`)
	rest := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for n := range hits {
		e.index(t, index, []document{{strconv.Itoa(n), map[string]any{"body": strings.Repeat("flow ", 1+n%3) + strings.Repeat("wing ", n), "rest": rest}}})
	}
	a := startAkin(t, config)
	a.awaitMatrix(t, "s")
	search := "/" + index + "/_search"
	answer := a.must(t, http.MethodPost, search, `{"size":5,"query":{"match":{"body":"flow"}}}`)
	if n := a.metric(t, rerankedMetric, rerankedResult); len(answer) < 5<<20 || n != 1 {
		t.Errorf("the page has %d bytes, %v searches were ranked", len(answer), n)
	}
	const all = `{"size":100,"query":{"match":{"body":"flow"}}}`
	took := regexp.MustCompile(`^\{"took":\d+`)
	direct, whole := took.ReplaceAll(e.must(t, http.MethodPost, search, all), nil), took.ReplaceAll(a.must(t, http.MethodPost, search, all), nil)
	if len(direct) < hits<<20 || !bytes.Equal(direct, whole) {
		t.Errorf("%d bytes, directly %d", len(whole), len(direct))
	}
	if n := a.metric(t, rerankedMetric, `result="unreadable"`); n != 1 {
		t.Errorf("%v searches are counted as too long", n)
	}
}

// Two akins of different settings and versions of the matrix stand behind one
// balancer. Each answers as it does alone, and a scroll or a list of pages
// that one began goes on at the other.
func TestTwoAkinsBehindOneBalancer(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-balanced"
	e, config := softHostile(t)
	e.makeIndex(t, index, ownedIndex)
	e.index(t, index, []document{
		{"0", map[string]any{"body": "flow wing"}},
		{"1", map[string]any{"body": "wing blade"}},
		{"2", map[string]any{"body": "flow air flow"}},
		{"3", map[string]any{"body": "wing air wing"}},
		{"4", map[string]any{"body": "air"}},
		{"5", map[string]any{"body": "flow"}},
	})
	one := startAkin(t, config)
	config = maps.Clone(config)
	config["expansion"] = section{"effort": "low", "budget": widePatience, "max_doc_share": 1}
	config["matrices"] = []section{{"name": "s", "file": relatedFile(t, vectorsA)}}
	two := startAkin(t, config)
	one.awaitMatrix(t, "s")
	two.awaitMatrix(t, "s")
	alone := map[*akin][]string{}
	for turn := range 20 {
		for _, a := range []*akin{one, two} {
			hits, err := a.search(t.Context(), "/"+index+"/_search", pageBody("flow wing", 0, 10))
			if err != nil {
				t.Fatal(err)
			}
			if turn == 0 {
				alone[a] = hits.ids()
			} else if !slices.Equal(hits.ids(), alone[a]) {
				t.Errorf("turn %d: %v, before %v", turn, hits.ids(), alone[a])
			}
		}
	}
	var scrolled []string
	answer := one.must(t, http.MethodPost, "/"+index+"/_search?scroll=1m", `{"size":2,"query":{"match":{"body":"flow wing"}}}`)
	for {
		var page struct {
			ScrollID string `json:"_scroll_id"`
			hitList
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			t.Fatal(err)
		}
		ids := page.ids()
		if len(ids) == 0 {
			break
		}
		scrolled = append(scrolled, ids...)
		answer = two.must(t, http.MethodPost, "/_search/scroll", toJSON(t, map[string]any{"scroll": "1m", "scroll_id": page.ScrollID}))
	}
	if total := len(alone[one]); len(scrolled) != total || len(slices.Compact(slices.Sorted(slices.Values(scrolled)))) != total {
		t.Errorf("the scroll has %v, want %d hits, each once", scrolled, total)
	}
}
