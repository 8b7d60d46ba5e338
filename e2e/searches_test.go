package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listed returns what akin lists of an index, as "text: none few related
// enough".
func (a *akin) listed(t *testing.T, index string) string {
	t.Helper()
	type day struct{ None, Few, Related, Enough int }
	type search struct {
		Fields, Text string
		Days         []day
	}
	var lines []string
	for _, s := range ask[struct{ Searches []search }](t, a.admin, http.MethodGet, "/_akin/searches?index="+index, "").Searches {
		sum := day{}
		for _, d := range s.Days { // two around midnight
			sum = day{sum.None + d.None, sum.Few + d.Few, sum.Related + d.Related, sum.Enough + d.Enough}
		}
		lines = append(lines, fmt.Sprint(s.Fields, " ", s.Text, ": ", sum.None, sum.Few, sum.Related, sum.Enough))
	}
	return strings.Join(lines, "\n")
}

func (a *akin) awaitListed(t *testing.T, index, want string) {
	t.Helper()
	waitFor(t, 30*time.Second, "the list of searches", func() error {
		if got := a.listed(t, index); got != want {
			return fmt.Errorf("it is\n%s\nwant\n%s", got, want)
		}
		return nil
	})
}

// TestSearchesThatFindLittleAreListed has a word that nothing has, one that only
// a related word finds, one in three documents and one in thirty.
func TestSearchesThatFindLittleAreListed(t *testing.T) {
	const index = "akin-e2e-searches"
	eachEngine(t, func(t *testing.T, e *engine) {
		redis := ownRedis(t)
		e.remakeIndex(t, index, oneShard(`"body":{"type":"text","analyzer":"english"}`))
		var docs []document
		for n := range 37 {
			text := "torrent client"
			switch {
			case n < 3:
				text = "zebra"
			case n < 7:
				text = "tricycle shop"
			}
			docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": text}})
		}
		e.index(t, index, docs)
		config := section{
			"expansion": section{"enough": 10, "templates": true, "max_doc_share": 1},
			"matrices":  matrices("s", build(t, "--from-tsv", writeFile(t, "pairs.tsv", "unicycl\ttricycl\t0.8\ntorrent\tdownload\t0.8\n"))),
			"searches":  section{"collect": true},
			"redis":     redis.section(),
		}
		a, b := setup(t, e, config), setup(t, e, config)
		body := func(word string) string { return `{"query":{"match":{"body":"` + word + `"}}}` }
		for _, word := range []string{"Xylophone", "xylophone ", "unicycle", "zebra", "torrent", "jo@x.example"} {
			a.must(t, http.MethodPost, "/"+index+"/_search", body(word))
		}
		a.must(t, http.MethodGet, "/"+index+"/_search?df=body&q=xylophone", "")
		a.must(t, http.MethodPost, "/"+index+"/_search", `{"track_total_hits":false,"query":{"match":{"body":"zebra"}}}`)
		few := 2
		if e.scripts { // and templates
			a.must(t, http.MethodPost, "/"+index+"/_search/template", `{"source":{"query":{"match":{"body":"{{word}}"}}},"params":{"word":"zebra"}}`)
			few++
		}
		b.must(t, http.MethodPost, "/"+index+"/_msearch", "{}\n"+body("xylophone")+"\n{}\n"+body("unicycle")+"\n{}\n"+body("zebra")+"\n")
		want := fmt.Sprintf("body xylophone: 4 0 0 0\nbody zebra: 0 %d 0 0\nbody unicycle: 0 0 2 0", few+1)
		a.awaitListed(t, index, want)
		b.awaitListed(t, index, want)
		for found, n := range map[string]float64{"none": 4, "few": float64(few), "related": 1, "enough": 1, "unread": 0} { // a's, with the address
			a.awaitMetric(t, n, "akin_searches_found_total", "hits", found)
		}

		e.index(t, index, []document{{"37", map[string]any{"body": "xylophone"}}})
		if err := redis.proc.stop(); err != nil {
			t.Fatal(err)
		}
		a.must(t, http.MethodPost, "/"+index+"/_search", body("xylophone"))
		waitFor(t, 30*time.Second, "a failure to store", func() error {
			if a.metric(t, "akin_searches_store_failures_total") == 0 {
				return fmt.Errorf("none is counted")
			}
			return nil
		})
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		b.awaitListed(t, index, strings.Replace(want, "4 0 0 0", "4 1 0 0", 1))
	})
}

// A cluster with security has texts that not everybody may see.
func TestNoTextsOfASecuredClusterAreKept(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeSecured(t, e)
	config := securedConfig(t, e, nil, nil)
	file := newPath(t, "searches.json")
	config["searches"] = section{"collect": true, "file": file}
	a := setupSecured(t, e, config)
	if _, err := a.as(userAll).search(t.Context(), "/"+securedIndex+"/_search", `{"query":{"match":{"body":"xylophone"}}}`); err != nil {
		t.Fatal(err)
	}
	a.awaitMetric(t, 1, "akin_searches_found_total", "hits", "none")
	if status, answer, err := a.admin.call(t.Context(), http.MethodGet, "/_akin/searches", ""); err != nil || status != http.StatusForbidden {
		t.Errorf("%d, %v: %s", status, err, answer)
	}
	if err := a.proc.stop(); err != nil {
		t.Fatal(err)
	}
	if text := fileTail(file); strings.Contains(text, "xylophone") {
		t.Errorf("the file has %s", text)
	}
}
