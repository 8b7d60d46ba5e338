package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// BenchmarkCollectingSearches compares the median time of searches through two
// akins of one engine, one of which collects what they find, turn by turn.
func BenchmarkCollectingSearches(b *testing.B) {
	const index = "akin-e2e-collecting"
	e := oneEngine(b)
	e.makeIndex(b, index, oneShard(`"body":{"type":"text","analyzer":"english"}`))
	var docs []document
	for n := range 2000 {
		docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": fmt.Sprintf("torrent client %d of %d", n%50, n%7)}})
	}
	e.index(b, index, docs)
	config := section{"matrices": matrices("s", build(b, "--from-tsv", writeFile(b, "pairs.tsv", "torrent\tclient\t0.8\n")))}
	off := setup(b, e, config)
	config["searches"] = section{"collect": true}
	akins := []*akin{off, setup(b, e, config)}
	took := make([][]time.Duration, len(akins))
	for i := 0; b.Loop(); i++ {
		body := fmt.Sprintf(`{"query":{"match":{"body":{"query":"torrent %d","operator":"and"}}}}`, i%200) // of which a quarter finds something
		for turn := range akins {
			at := (i + turn) % len(akins)
			began := time.Now()
			akins[at].must(b, http.MethodPost, "/"+index+"/_search", body)
			took[at] = append(took[at], time.Since(began))
		}
	}
	check.ReportMedians(b, took[0], took[1])
}
