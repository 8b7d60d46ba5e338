package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestSimilaritiesChangeTheOrderOfHits searches with a matrix of random
// similarities: with matching "same" for equal sets of hits, totals and
// aggregations, with "widen" for all that was found and more.
func TestSimilaritiesChangeTheOrderOfHits(t *testing.T) {
	t.Parallel()
	open := section{"name": "main", "file": openMatrix(t)}
	eachEngine(t, func(t *testing.T, e *engine) {
		same := startContenders(t, e, open, section{"matching": "same"})
		wider := startContenders(t, e, open, section{"matching": "widen"})
		sent := 0
		for _, shards := range []int{1, 3} {
			makeGenerated(t, e, shards)
			for kind := range generatedKinds {
				t.Run(fmt.Sprintf("%d shards, %s", shards, generatedKinds[kind].name), func(t *testing.T) {
					sent += compareSets(t, e, same, wider, shareOf(t, e, kind), shards)
				})
			}
		}
		checkNoFallback(t, akins(slices.Concat(same, wider))...)
		// Each search goes twice through two of them.
		all := slices.Concat(same, wider)
		if n := tally(t, all, requestsMetric, rewrittenOutcome); n < float64(2*sent) {
			t.Errorf("%v of %d searches were rewritten, want half", n, 4*sent)
		}
	})
}

// compareSets compares the sets of hits of every eighth search for each number
// of shards, as far as the search can be asked for all of its hits, and returns
// how many these are.
func compareSets(t *testing.T, e *engine, same, wider []contender, searches []generatedSearch, shards int) int {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(4)
	sent := 0
	for i, g := range searches {
		if i%8 != shards { // 1 or 3
			continue
		}
		sent++
		k := (i/8 + g.number) % len(same)
		group.Go(func() error {
			compareSet(t, e, same[k], wider[k], g.counted(), shards)
			return nil
		})
	}
	_ = group.Wait()
	return sent
}

// compareSet compares what one search finds directly with what it finds through
// an akin that keeps the set of hits and through one that widens it.
func compareSet(t *testing.T, e *engine, same, wider contender, g generatedSearch, shards int) {
	t.Helper()
	want, err := allHits(t, e.cluster, g, shards)
	if err != nil {
		return // the engine does not know the query
	}
	if got, err := allHits(t, same.cluster, g, shards); err != nil || got != want {
		t.Errorf("same, %s: %s\n%v\n%+v\nwant %+v", same.name, g, err, got, want)
	}
	got, err := allHits(t, wider.cluster, g, shards)
	if lost := missing(want.ids, got.ids); err != nil || lost != "" {
		t.Errorf("widen, %s: %s\n%v lost %s", wider.name, g, err, lost)
	}
}

// counted returns the search for all hits and an aggregation, without what
// depends on scores or shows one page.
func (g generatedSearch) counted() generatedSearch {
	var body section
	if g.body == "" || json.Unmarshal([]byte(g.body), &body) != nil {
		g.params = addParameter(g.params, "size=3000&_source=false&stored_fields=_none_&docvalue_fields=uid")
		return g
	}
	counted := section{
		"query": body["query"], "size": 3000, "_source": false, "stored_fields": "_none_", "docvalue_fields": []string{"uid"}, // as idColumn
		"aggs": section{"n": section{"stats": section{"field": "n"}}, "tags": section{"terms": section{"field": "tag"}}},
	}
	text, err := json.Marshal(counted)
	if err != nil {
		panic(err) // it came from JSON
	}
	g.body = string(text)
	return g
}

// collapsed returns the search for the groups of its hits.
func (g generatedSearch) collapsed() generatedSearch {
	if g.body != "" {
		g.body = strings.Replace(g.body, `{`, `{"collapse":{"field":"tag"},`, 1)
	}
	return g
}

// A hitSet is all that a search finds.
type hitSet struct {
	ids    string // sorted
	rest   string // total and aggregations
	groups string // sorted values of the field that hits are collapsed by
}

// allHits returns what the search finds, and in which groups.
func allHits(t *testing.T, c cluster, g generatedSearch, shards int) (hitSet, error) {
	t.Helper()
	found, err := hitsOf(t, c, g, shards)
	if err != nil {
		return hitSet{}, err
	}
	collapsed, err := hitsOf(t, c, g.collapsed(), shards)
	found.groups = collapsed.groups
	return found, err
}

func hitsOf(t *testing.T, c cluster, g generatedSearch, shards int) (hitSet, error) {
	t.Helper()
	status, answer, err := c.call(t.Context(), http.MethodPost, g.path(shards), g.body)
	if err != nil {
		return hitSet{}, err
	}
	if status != http.StatusOK {
		return hitSet{}, fmt.Errorf("%d: %.500s", status, answer)
	}
	var list struct {
		found
		Aggregations json.RawMessage
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return hitSet{}, err
	}
	var groups []string
	for _, h := range list.Hits.Hits {
		groups = append(groups, fmt.Sprint(h.Fields["tag"]))
	}
	slices.Sort(groups)
	return hitSet{
		ids:    strings.Join(list.sorted(), " "),
		rest:   fmt.Sprintf("%d %s", list.Hits.Total.Value, list.Aggregations),
		groups: strings.Join(groups, " "),
	}, nil
}

// missing returns the words of want that are not among those of got.
func missing(want, got string) string {
	has := map[string]bool{}
	for id := range strings.FieldsSeq(got) {
		has[id] = true
	}
	var lost []string
	for id := range strings.FieldsSeq(want) {
		if !has[id] {
			lost = append(lost, id)
		}
	}
	return strings.Join(lost, " ")
}
