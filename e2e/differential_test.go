package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// A writing is one way in which akin writes added terms.
type writing struct {
	name string
	// expansion are the settings that lead to it.
	expansion section
	// dfs says that akin asks for the statistics of all shards.
	dfs bool
}

// writingsOf returns the writings that an engine is tried with.
func writingsOf(e *engine) []writing {
	all := []writing{
		{name: "linear", expansion: section{"scoring": "linear"}},
		{name: "grouped", expansion: section{"scoring": "grouped"}},
	}
	if e.scripts {
		all = append(all,
			writing{"saturated", section{"scoring": "saturated", "phase": "query"}, true},
			writing{"rescored", section{"scoring": "saturated", "phase": "rescore"}, true},
		)
	}
	return all
}

// A contender is an akin that writes in one way, before the generated index.
type contender struct {
	writing

	*akin
}

// startContenders starts an akin for every writing, with a matrix and settings
// that all of them share.
func startContenders(t *testing.T, e *engine, matrix section, shared section) []contender {
	t.Helper()
	var out []contender
	for _, w := range writingsOf(e) {
		options := section{
			"max_doc_share": 1, "default_fields": []string{"title", "body"}, "phrases": true, "rescore_queries": true,
		}
		maps.Copy(options, shared)
		maps.Copy(options, w.expansion)
		out = append(out, contender{w, setup(t, e, section{"expansion": options, "matrices": []section{matrix}})})
	}
	return out
}

// akins are those of contenders.
func akins(contenders []contender) (all []*akin) {
	for _, c := range contenders {
		all = append(all, c.akin)
	}
	return all
}

// written returns what becomes of the body of a search, or why it is not
// rewritten.
func (c contender) written(t *testing.T, index, body string) []byte {
	t.Helper()
	_, answer, err := c.admin.call(t.Context(), http.MethodPost, "/_akin/expand/"+index, body)
	if err != nil {
		return []byte(err.Error())
	}
	var e explanation
	if json.Unmarshal(answer, &e) != nil || len(e.Body) == 0 {
		return answer
	}
	return e.Body
}

// tally sums a metric over contenders.
func tally(t *testing.T, contenders []contender, name string, labels ...string) float64 {
	t.Helper()
	sum := 0.0
	for _, c := range contenders {
		sum += c.metric(t, name, labels...)
	}
	return sum
}

// searchesPerKind is how many searches of a kind are generated. With the kinds
// there are it makes more than 2,000, which the engines share; `make test` sends
// 300.
func searchesPerKind() int {
	if os.Getenv("AKIN_TEST") == "" {
		return 12
	}
	return 80
}

// shareOf returns the searches of a kind that an engine is given, so that all
// engines of the run together are given each of them.
func shareOf(t *testing.T, e *engine, kind int) []generatedSearch {
	t.Helper()
	all, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(all, e)
	var out []generatedSearch
	for i := range searchesPerKind() {
		if i%len(all) == at {
			out = append(out, generateSearch(i*len(generatedKinds)+kind, e))
		}
	}
	return out
}

// TestTermsWithoutEffectChangeNothing lets akin write generated searches with
// terms that cannot change anything: terms that are in no document
// to be found, and terms without weight. Hits, order, scores and everything
// else have to be those of the direct search.
func TestTermsWithoutEffectChangeNothing(t *testing.T) {
	t.Parallel()
	hidden, open := section{"name": "main", "file": hiddenMatrix(t)}, section{"name": "main", "file": openMatrix(t)}
	weightless := section{"matching": "same", "strength": 0}
	// A rescored search chooses the hits to order by a λ of its own.
	chooses := func(c contender) bool { return c.name == "rescored" }
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := startContenders(t, e, hidden, nil)
		d := differential{engine: e, hidden: len(contenders), worst: map[string]float64{}, rewritten: make([]share, len(generatedKinds))}
		contenders = append(contenders, slices.DeleteFunc(startContenders(t, e, open, weightless), chooses)...)
		d.contenders = contenders
		for _, shards := range []int{1, 3} {
			makeGenerated(t, e, shards)
			for kind := range generatedKinds {
				name := fmt.Sprintf("%d shards, %s", shards, generatedKinds[kind].name)
				t.Run(name, func(t *testing.T) { d.run(t, kind, shards) })
			}
		}
		checkNoFallback(t, akins(contenders)...)
		d.checkRewritten(t)
		t.Logf("%d searches, largest relative differences of scores: %v", d.searches, d.worst)
	})
}

// A differential compares searches through akin with direct ones.
type differential struct {
	engine     *engine
	contenders []contender
	// hidden is how many of the contenders, the first ones, add terms that
	// are in no document to be found; the others add terms without weight.
	hidden   int
	searches int
	// rewritten is how many of the searches of each kind were rewritten.
	rewritten []share

	mu    sync.Mutex
	worst map[string]float64 // by writing
}

// A share is so many of so many.
type share struct{ some, of float64 }

// checkRewritten fails for every kind of which less than a third was rewritten,
// over all indices of the engine: then little of it was compared.
func (d *differential) checkRewritten(t *testing.T) {
	t.Helper()
	for kind, r := range d.rewritten {
		if name := generatedKinds[kind].name; r.some < r.of/3 && !leftAlone(d.engine, name) {
			t.Errorf("%s: %v of %v searches were rewritten, want a third", name, r.some, r.of)
		}
	}
}

// scoreTolerance is the largest relative difference of two equal scores: they
// are 32-bit floats, summed in another order.
const scoreTolerance = 1e-5

// run compares the searches of a kind that fall to an index of so many shards.
func (d *differential) run(t *testing.T, kind, shards int) {
	t.Helper()
	rewritten := tally(t, d.contenders, requestsMetric, rewrittenOutcome)
	refused := tally(t, d.contenders, refusedMetric, originalTaken)
	var group errgroup.Group
	group.SetLimit(4)
	sent := map[*generatedSearch]contender{}
	for i, g := range shareOf(t, d.engine, kind) {
		if (i%2 == 0) != (shards == 1) {
			continue
		}
		c := d.contenders[(i/2+kind)%len(d.contenders)]
		// A term without weight changes the statistics of the same term elsewhere.
		if g.countsInFields() || shards > 1 && strings.Contains(g.body, fuzzyWord) {
			c = d.contenders[(i/2+kind)%d.hidden]
		}
		sent[&g] = c
		group.Go(func() error {
			if err := d.compare(t, c, g, shards); err != nil {
				t.Errorf("%s: %s\n%v\nwritten: %.3000s", c.name, g, err, c.written(t, openAlias(shards), g.body))
			}
			return nil
		})
	}
	_ = group.Wait()
	d.searches += len(sent)
	rewritten = tally(t, d.contenders, requestsMetric, rewrittenOutcome) - rewritten
	t.Logf("%v of %d searches were rewritten", rewritten, len(sent))
	d.rewritten[kind].some += rewritten
	d.rewritten[kind].of += float64(len(sent))
	if tally(t, d.contenders, refusedMetric, originalTaken) > refused {
		d.reportRefused(t, sent, shards)
	}
}

// reportRefused fails with the searches that the engine refuses once they are
// rewritten.
func (d *differential) reportRefused(t *testing.T, sent map[*generatedSearch]contender, shards int) {
	t.Helper()
	for g, c := range sent {
		body := c.written(t, openAlias(shards), g.body)
		if bytes.HasPrefix(body, []byte(`{"rewritten":false`)) {
			continue
		}
		status, answer, err := d.engine.call(t.Context(), http.MethodPost, g.path(shards), string(body))
		if err != nil || status != http.StatusOK {
			t.Errorf("%s: %s\n%d: %.1000s\nwritten: %.6000s", c.name, g, status, answer, body)
		}
	}
}

// countsInFields reports whether the search counts the words that match in
// several fields. Of these, fields score that have enough words or related
// ones, however little the related ones weigh.
func (g generatedSearch) countsInFields() bool {
	return strings.Contains(g.body, `"fields":[`) &&
		(strings.Contains(g.body, "minimum_should_match") || strings.Contains(strings.ToLower(g.body), `"operator":"and"`))
}

// leftAlone reports whether searches of the kind are not rewritten on e, or not
// known to it.
func leftAlone(e *engine, kind string) bool {
	switch kind {
	case "query_string syntax", "match nothing":
		return true
	case "has_child", "has_parent", "script_score":
		return !e.scripts
	case "combined_fields":
		return e.name != "elasticsearch8" && e.name != "elasticsearch9" && e.name != "opensearch3"
	}
	return false
}

// compare sends a search directly and through akin.
func (d *differential) compare(t *testing.T, c contender, g generatedSearch, shards int) error {
	t.Helper()
	through := g
	if shards > 1 && c.dfs {
		// Scores with the statistics of all shards, for which akin asks itself;
		// every second search asks for them, too. Fuzzy ones do not: in a shard
		// without what they look for they name no term, while akin's terms do.
		g.params = addParameter(g.params, "search_type=dfs_query_then_fetch")
		if g.number%2 == 0 && !strings.HasPrefix(g.kind, fuzzyKind) {
			through.params = g.params
		}
	}
	cmp := &comparison{tolerance: scoreTolerance, wide: d.wide(t, g, shards)}
	if err := d.pair(t, c, g, through, shards, cmp); err != nil {
		return err
	}
	if len(cmp.problems) > 0 && through.params != g.params {
		// What is not written in the saturated form is searched as it came.
		g.params = through.params
		cmp = &comparison{tolerance: scoreTolerance, wide: d.wide(t, g, shards)}
		if err := d.pair(t, c, g, through, shards, cmp); err != nil {
			return err
		}
	}
	if len(cmp.problems) > 0 {
		return fmt.Errorf("%s", strings.Join(cmp.problems[:min(4, len(cmp.problems))], "\n"))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worst[c.name] = max(d.worst[c.name], cmp.worst)
	return nil
}

// path is where the search goes.
func (g generatedSearch) path(shards int) string {
	return "/" + openAlias(shards) + "/_search" + g.params
}

// pair compares the answers to the direct search and to the one through akin.
func (d *differential) pair(t *testing.T, c contender, direct, through generatedSearch, shards int, cmp *comparison) error {
	t.Helper()
	wantStatus, want, err := d.engine.call(t.Context(), http.MethodPost, direct.path(shards), direct.body)
	if err != nil {
		return err
	}
	status, got, err := c.call(t.Context(), http.MethodPost, through.path(shards), through.body)
	if err != nil {
		return err
	}
	if status != wantStatus {
		return fmt.Errorf("status %d, want %d: %.500s", status, wantStatus, got)
	}
	cmp.answers(want, got)
	return nil
}

// wide returns a function that searches for more hits of g when it is called.
func (d *differential) wide(t *testing.T, g generatedSearch, shards int) func() map[string]float64 {
	t.Helper()
	return sync.OnceValue(func() map[string]float64 {
		w := g.wide()
		hits, _ := d.engine.search(t.Context(), w.path(shards), w.body) // no hits are as good as an error
		return hits.scores()
	})
}

func addParameter(query, parameter string) string {
	if query == "" {
		return "?" + parameter
	}
	return query + "&" + parameter
}
