package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
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
		out = append(out, contender{w, setupWide(t, e, section{"expansion": options, "matrices": []section{matrix}})})
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

// scoreTolerance is the largest relative difference of two equal scores: they
// are 32-bit floats, summed in another order.
const scoreTolerance = 1e-5

// TestTermsWithoutEffectChangeNothing lets akin write the searches of
// testdata/requests with terms without weight. Hits, order, scores and everything
// else have to be those of the direct search.
func TestTermsWithoutEffectChangeNothing(t *testing.T) {
	files := requestFiles(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		s := newRequestSetting(t, e)
		matrix := section{"name": "main", "file": build(t, "--from-tsv", requestFixture("matrix.tsv"))}
		contenders := startContenders(t, e, matrix, section{"matching": "same", "strength": 0, "expressions": false}) // which count at any strength
		compared := 0
		for _, file := range files {
			if !file.Suits(e.name, e.scripts) || !strings.Contains(file.Target, "search") || strings.Contains(file.Body, "terminate_after") {
				continue // no search, or one that ends where the engine likes
			}
			f, _ := s.fillIn(t, file)
			r := toCluster(f)
			ofAllShards := r
			ofAllShards.target = addParameter(r.target, "search_type=dfs_query_then_fetch")
			direct := []rawResponse{exchange(t, e.url, r), exchange(t, e.url, ofAllShards)}
			if !strings.HasPrefix(direct[0].body, "{") {
				continue // another format
			}
			for _, c := range contenders {
				if c.name == "rescored" || c.dfs && (strings.Contains(r.target, ",") || strings.Contains(r.target, "_msearch")) {
					continue // the hits to order are chosen by a λ of its own; the statistics are those of some searches' shards
				}
				var through rawResponse
				compared += c.rewrites(t, func() { through = exchange(t, c.url, r) })
				problems := differences(direct[0], through)
				if c.dfs && len(problems) > 0 { // akin has asked for the statistics of all shards
					problems = differences(direct[1], through)
				}
				if len(problems) > 0 {
					t.Errorf("%s, %s:\n%s\nwritten: %.3000s", c.name, f.Name, strings.Join(problems[:min(4, len(problems))], "\n"), c.written(t, requests.Shop, f.Body))
				}
			}
		}
		if compared < len(files)/2 {
			t.Errorf("%d searches were rewritten", compared)
		}
		t.Logf("%d searches were rewritten", compared)
	})
}

// differences returns in what two answers differ.
func differences(want, got rawResponse) []string {
	if want.status != got.status {
		return []string{got.status + ", want " + want.status}
	}
	compare := comparison{tolerance: scoreTolerance}
	compare.answers([]byte(want.body), []byte(got.body))
	return compare.problems
}

func addParameter(target, parameter string) string {
	if strings.Contains(target, "?") {
		return target + "&" + parameter
	}
	return target + "?" + parameter
}
