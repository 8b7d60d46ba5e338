package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/tools/evaluate"
)

// sameProfile is the profile of the demo in which akin changes the order of the
// hits and adds none.
const sameProfile = "same"

// A demoTour goes to the servers of the demo over HTTP, as an application
// would.
type demoTour struct {
	Engine, Akin, Admin string // base URLs
	Out                 io.Writer
}

const (
	// nappies is the search that shows first what akin is for, and the judged
	// query whose judgments it has.
	nappies       = "nappies"
	nappiesJudged = "q30"
	// fromBest is how many of the queries are shown that gain most.
	fromBest = 3
)

// worse is the id of a query that akin makes worse, and whyWorse says why.
const (
	worse    = "q14"
	whyWorse = `akin adds words for every word of a search, here also for "accepted", which matters less than "coupon". ` +
		`In so few texts "way" and "being" look related to it. A text on repairs has both words, and becomes the first hit.`
)

// Run shows searches side by side, then figures of all judged queries.
func (t *demoTour) Run(ctx context.Context) error {
	var all []compared
	for _, q := range demo.Queries() {
		c, err := t.compare(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b compared) int { return cmp.Compare(b.gain(), a.gain()) })
	t.print(legend)
	at := slices.IndexFunc(all, func(c compared) bool { return c.query.ID == nappiesJudged })
	first := all[at].query
	heading := fmt.Sprintf("%q in %s, judged as %q", nappies, first.Index, first.Text)
	first.Text = nappies
	if err := t.show(ctx, heading, first); err != nil {
		return err
	}
	others := slices.Concat(all[:at], all[at+1:])
	for _, c := range append(others[:fromBest:fromBest], others[len(others)-1]) {
		if err := t.show(ctx, fmt.Sprintf("%q in %s", c.query.Text, c.query.Index), c.query); err != nil {
			return err
		}
	}
	t.print(summary(all))
	return nil
}

// compare searches in all ways.
func (t *demoTour) compare(ctx context.Context, q demo.Query) (compared, error) {
	c := compared{query: q}
	path := "/" + q.Index + "/_search"
	for way, url := range [ways][2]string{{t.Engine, path}, {t.Akin, path}, {t.Akin, path + "?akin_profile=" + sameProfile}} {
		var answer struct {
			Hits struct {
				Total struct {
					Value int `json:"value"`
				} `json:"total"`
				Hits []hit `json:"hits"`
			} `json:"hits"`
		}
		if err := search(ctx, url[0], url[1], q, &answer); err != nil {
			return compared{}, err
		}
		var ids []string
		for _, h := range answer.Hits.Hits {
			ids = append(ids, h.ID)
		}
		c.found[way] = found{answer.Hits.Total.Value, answer.Hits.Hits, evaluate.NDCG(ids, q.Judgments, rankedHits)}
	}
	return c, nil
}

// search sends a query to a server.
func search(ctx context.Context, server, path string, q demo.Query, answer any) error {
	client, err := esclient.New(esclient.Options{URL: server, Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	match := esclient.Object{"multi_match": esclient.Object{"query": q.Text, "fields": []string{"title", "body"}}}
	return client.Do(ctx, esclient.Call{Method: http.MethodPost, Path: path, Body: esclient.Object{"size": rankedHits, "query": match}}, answer)
}

// show prints the hits of one query side by side, and the terms that were
// added.
func (t *demoTour) show(ctx context.Context, heading string, q demo.Query) error {
	c, err := t.compare(ctx, q)
	if err != nil {
		return err
	}
	var answer struct {
		Clauses []expand.Explanation `json:"clauses"`
	}
	if err := search(ctx, t.Admin, "/_akin/expand/"+q.Index, q, &answer); err != nil {
		return err
	}
	t.print("\n" + heading + "\n" + table(c))
	t.print(wrap("    added: ", addedTerms(answer.Clauses)))
	if q.ID == worse {
		t.print(wrap("    why it does not help: ", whyWorse))
	}
	return nil
}

func (t *demoTour) print(text string) { fmt.Fprint(t.Out, text) }

// Invite says how to go on with the akin and the admin port at these URLs.
func (t *demoTour) Invite(ctx context.Context, akin, admin string) error {
	q := demo.Query{Index: "catalogue", Text: nappies}
	c, err := t.compare(ctx, q)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.Out, invitation, t.Engine, akin, admin,
		c.found[withoutAkin].total, c.found[with].total, c.found[same].total, q.Index, q.Text, sameProfile)
	return err
}
