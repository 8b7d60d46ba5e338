package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// softWords are the words of the documents of these tests.
var softWords = []string{"flow", "stream", "air", "wing", "blade"}

// softText returns the n-th of texts that differ in their soft cosines.
func softText(n int) string {
	return strings.Repeat(softWords[n%5]+" ", 1+n%7) + softWords[(n/5)%5] + " flow"
}

// hostileConfig has all hits ordered in the mode soft.
func hostileConfig(t *testing.T) section {
	t.Helper()
	config := softConfig(softMatrix(t))
	config["expansion"] = section{"mode": "soft", "soft_weight": 1, "max_doc_share": 1}
	return config
}

// ownedIndex has documents with owners.
var ownedIndex = oneShard(`"body":{"type":"text","analyzer":"whitespace"},"owner":{"type":"keyword"}`)

// Users share what is remembered of documents, but each gets the hits of the
// own filter alone, in the order in which a new akin puts them.
func TestRememberedTermsShowNobodyTheDocumentsOfOthers(t *testing.T) {
	t.Parallel()
	const index, users, each = "akin-e2e-owned", 2000, 3
	e := oneEngine(t)
	e.makeIndex(t, index, ownedIndex)
	var docs []document
	for u := range users {
		for k := range each {
			docs = append(docs, document{fmt.Sprintf("%d-%d", u, k), section{"body": softText(u*each + k), "owner": strconv.Itoa(u)}})
		}
	}
	e.index(t, index, docs)
	config := hostileConfig(t)
	of := func(user int) string {
		return fmt.Sprintf(`{"query":{"bool":{"must":[{"match":{"body":"flow"}}],"filter":[{"term":{"owner":"%d"}}]}}}`, user)
	}
	a := setup(t, e, config)
	a.find(t, index, pageBody("flow", 0, 100)) // its terms are remembered for all
	found := make([][]string, users)
	n := a.reranked(t, func() {
		var group errgroup.Group
		group.SetLimit(8)
		for u := range users {
			group.Go(func() error {
				hits, err := a.search(t.Context(), "/"+index+"/_search", of(u))
				found[u] = hits.ids()
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	})
	if n != users {
		t.Errorf("%d searches were reranked, want %d", n, users)
	}
	fresh := setup(t, e, config)
	for u, ids := range found {
		if !slices.Equal(slices.Sorted(slices.Values(ids)), []string{fmt.Sprint(u, "-0"), fmt.Sprint(u, "-1"), fmt.Sprint(u, "-2")}) {
			t.Fatalf("user %d gets %v", u, ids)
		}
		if u%200 > 0 {
			continue
		}
		if got := fresh.find(t, index, of(u)).ids(); !slices.Equal(got, ids) {
			t.Errorf("user %d gets %v, and of a new akin %v", u, ids, got)
		}
	}
}

// An index that is deleted and made again has documents of the same ids and
// sequence numbers. Nothing is lost, and once the UUID of the index is asked
// for again, after caches.ttl, the order is that of the new texts.
func TestAnIndexMadeAgainIsRankedByItsOwnTexts(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-again"
	e := oneEngine(t)
	texts := []string{"flow", "flow stream air stream", "flow air", "flow wing air wing air wing", "flow blade air blade"}
	fill := func(turn int) {
		e.remakeIndex(t, index, ownedIndex)
		var docs []document
		for n := range texts {
			docs = append(docs, document{strconv.Itoa(n), section{"body": texts[(n+turn)%len(texts)]}})
		}
		e.index(t, index, docs)
	}
	t.Cleanup(func() { e.dropIndex(index) })
	fill(0)
	config := hostileConfig(t)
	config["caches"] = section{"ttl": "2s"}
	a := setup(t, e, config)
	ordered := func(turn int) (of []string) {
		for _, id := range a.find(t, index, pageBody("flow", 0, 10)).ids() {
			n, _ := strconv.Atoi(id)
			of = append(of, texts[(n+turn)%len(texts)])
		}
		return of
	}
	before := ordered(0)
	fill(2)
	if again := ordered(2); !slices.Equal(slices.Sorted(slices.Values(again)), slices.Sorted(slices.Values(texts))) {
		t.Errorf("%q are not the hits, each once", again)
	}
	waitFor(t, 20*time.Second, "the order of the new texts", func() error {
		if now := ordered(2); !slices.Equal(now, before) {
			return fmt.Errorf("%q, want %q", now, before)
		}
		return nil
	})
}

// Thirty hits of a megabyte each are ranked, since only those of the page
// are read. A page that is too long is the engine's own, byte for byte but for
// the time that it took.
func TestHitsOfAMegabyteAreRanked(t *testing.T) {
	t.Parallel()
	const index, hits = "akin-e2e-huge", 30
	e := oneEngine(t)
	e.makeIndex(t, index, oneShard(`"body":{"type":"text","analyzer":"whitespace"},"rest":{"type":"keyword","index":false,"doc_values":false}`))
	rest := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	var docs []document
	for n := range hits {
		docs = append(docs, document{strconv.Itoa(n), section{"body": strings.Repeat("flow ", 1+n%3) + strings.Repeat("wing ", n), "rest": rest}})
	}
	e.index(t, index, docs)
	a := setup(t, e, hostileConfig(t))
	search := "/" + index + "/_search"
	waitFor(t, recoverWithin, "a page of hits that are reranked", func() error { // a busy engine may need more than akin waits
		var page []byte
		n := a.reranked(t, func() { page = a.must(t, http.MethodPost, search, `{"size":5,"query":{"match":{"body":"flow"}}}`) })
		if len(page) < 5<<20 || n != 1 {
			return fmt.Errorf("the page has %d bytes, %d searches were reranked", len(page), n)
		}
		return nil
	})
	const all = `{"size":100,"query":{"match":{"body":"flow"}}}`
	whole := func(c cluster) []byte { return softTook.ReplaceAll(c.must(t, http.MethodPost, search, all), nil) }
	if direct, through := whole(e.cluster), whole(a.cluster); len(direct) < hits<<20 || !bytes.Equal(direct, through) {
		t.Errorf("%d bytes, directly %d", len(through), len(direct))
	}
	if n := a.metric(t, rerankedMetric, `result="unreadable"`); n != 1 {
		t.Errorf("%v searches are counted as too long", n)
	}
}

// Two akins of different settings and matrices stand behind one balancer. Each
// answers as it does alone, and a scroll that one began goes on at the other.
func TestTwoAkinsBehindOneBalancer(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-balanced"
	e := oneEngine(t)
	e.makeIndex(t, index, ownedIndex)
	e.index(t, index, wordDocuments("flow wing", "wing blade", "flow air flow", "wing air wing", "air", "flow"))
	config := hostileConfig(t)
	one := setup(t, e, config)
	other := maps.Clone(config)
	other["expansion"], other["matrices"] = section{"effort": "low", "max_doc_share": 1}, matrices("s", relatedFile(t, vectorsA))
	two := setup(t, e, other)
	alone := map[*akin][]string{}
	for turn := range 20 {
		for _, a := range []*akin{one, two} {
			ids := a.find(t, index, pageBody("flow wing", 0, 10)).ids()
			if turn == 0 {
				alone[a] = ids
			} else if !slices.Equal(ids, alone[a]) {
				t.Errorf("turn %d: %v, before %v", turn, ids, alone[a])
			}
		}
	}
	var scrolled []string
	page := one.find(t, index+"?scroll=1m", `{"size":2,"query":{"match":{"body":"flow wing"}}}`)
	for len(page.ids()) > 0 {
		scrolled = append(scrolled, page.ids()...)
		*page = ask[found](t, two.cluster, http.MethodPost, "/_search/scroll", toJSON(t, section{"scroll": "1m", "scroll_id": page.ScrollID}))
	}
	if slices.Sort(scrolled); !slices.Equal(scrolled, slices.Sorted(slices.Values(alone[one]))) {
		t.Errorf("the scroll has %v, want %v", scrolled, alone[one])
	}
}

// TestSoftModeWithWrites searches while documents change. Whenever the hits come
// in the order of the measure it is that of their texts.
func TestSoftModeWithWrites(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-soft-written"
	e := oneEngine(t)
	e.makeIndex(t, index, ownedIndex)
	var docs []document
	for n := range 6 {
		docs = append(docs, document{strconv.Itoa(n), section{"body": softText(n)}})
	}
	e.index(t, index, docs)
	a := setup(t, e, hostileConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_, _, _ = e.call(ctx, http.MethodPut, fmt.Sprintf("/%s/_doc/%d?refresh=true", index, n%6), `{"body":"`+softText(n)+`"}`)
		}
	})
	t.Cleanup(func() { cancel(); writing.Wait() })
	scores, ordered := map[string]float64{}, 0 // of texts
	for n := 0; n < 400 && ordered < 100; n++ {
		var hits *found
		if a.reranked(t, func() { hits = a.find(t, index, `{"query":{"match":{"body":"flow wing"}}}`) }) == 0 {
			continue // a document has changed in between
		}
		ordered++
		for _, h := range hits.Hits.Hits {
			if was, ok := scores[string(h.Source)]; ok && was != h.Score {
				t.Fatalf("%s has the scores %v and %v", h.Source, was, h.Score)
			}
			scores[string(h.Source)] = h.Score
		}
	}
	if ordered < 20 || len(scores) < 10 {
		t.Errorf("%d searches with %d texts were reranked: too few to tell", ordered, len(scores))
	}
}

// TestSoftModePagesAreAllHits reads all pages of a search, in and behind the
// window and across its end. Together they are all hits, each once. Suggestions
// that are documents leave the search to the engine.
func TestSoftModePagesAreAllHits(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-soft-paged"
	e, random := oneEngine(t), rand.New(rand.NewPCG(6, 5))
	e.makeIndex(t, index, strings.Replace(oneShard(`"body":{"type":"text","analyzer":"whitespace"},"words":{"type":"completion"}`), `shards":1`, `shards":2`, 1))
	var docs []document
	for n := range 300 {
		var text []string
		for range 1 + random.IntN(5) {
			text = append(text, softWords[random.IntN(5)])
		}
		for range random.IntN(30) {
			text = append(text, "w"+strconv.Itoa(random.IntN(50)))
		}
		docs = append(docs, document{strconv.Itoa(n), section{"body": strings.Join(text, " "), "words": text[0]}})
	}
	e.index(t, index, docs)
	config, profiles := hostileConfig(t), section{"blended": section{"soft_weight": 0.2, "rerank_window": 30}}
	for _, scoring := range []string{"auto", "grouped", "linear"} {
		profiles[scoring] = section{"scoring": scoring, "rerank_window": 30}
	}
	config["profiles"] = profiles
	a := setup(t, e, config)
	for profile := range profiles {
		if n := a.reranked(t, func() {
			var paged []string
			total := 0
			for from := 0; from <= total; from += 7 {
				page := a.find(t, index+"?akin_profile="+profile, fmt.Sprintf(`{"track_total_hits":true,"_source":false,"from":%d,"size":7,"query":{"match":{"body":"flow wing"}}}`, from))
				paged, total = append(paged, page.ids()...), page.Hits.Total.Value
			}
			slices.Sort(paged)
			if len(paged) != total || len(slices.Compact(paged)) != total || total < 100 {
				t.Errorf("%s: %d hits in pages, of %d", profile, len(paged), total)
			}
		}); n < 5 {
			t.Errorf("%s: %d pages were reranked", profile, n)
		}
	}
	const suggests = `{"query":{"match":{"body":"flow"}},"suggest":{"w":{"prefix":"f","completion":{"field":"words"}}}}`
	type suggestions struct{ Suggest json.RawMessage }
	var direct, through suggestions
	if n := a.reranked(t, func() {
		direct = ask[suggestions](t, e.cluster, http.MethodPost, "/"+index+"/_search", suggests)
		through = ask[suggestions](t, a.cluster, http.MethodPost, "/"+index+"/_search", suggests)
	}); n != 0 || !bytes.Equal(direct.Suggest, through.Suggest) || !bytes.Contains(direct.Suggest, []byte(`"_id"`)) {
		t.Errorf("%d reranked, suggested %s, directly %s", n, through.Suggest, direct.Suggest)
	}
}
