package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/tools/evaluate"
)

// sameProfile is the profile of the demo in which akin only changes the order
// of the hits.
const sameProfile = "same"

// modelProfile is the profile of the demo in which a language model orders the
// first hits.
const modelProfile = "embeddings"

// A demoTour sends searches to the servers of the demo over HTTP, like an
// application.
type demoTour struct {
	Engine, Akin, Admin string // base URLs
	Out                 io.Writer
	ByModel             bool // akin has a language model
}

const (
	// nappies is the first search shown. It uses the judgments of the query
	// nappiesJudged.
	nappies       = "nappies"
	nappiesJudged = "q30"
)

// allWords is the id of a query. No text has all of its words; with akin
// related words stand for some of them.
const allWords = "q42"

// better are the ids of three queries that akin makes better.
var better = []string{"q36", "q34", "q41"}

// worse is the id of a query that akin makes worse. whyWorse explains it.
const (
	worse    = "q02"
	whyWorse = `what the search is about is "never", which has no related words. A text on a shipment that did arrive has the ` +
		`other words and the one that is related most, and becomes the first hit.`
)

// Run shows figures of all judged queries, then some searches side by side. It
// returns the first search shown.
func (t *demoTour) Run(ctx context.Context) (first compared, err error) {
	var all []compared
	for _, q := range demo.Queries() {
		c, err := t.compare(ctx, q, "or")
		if err != nil {
			return c, err
		}
		all = append(all, c)
	}
	t.print(summary(all, t.ByModel) + legend)
	of := func(id string) compared {
		return all[slices.IndexFunc(all, func(c compared) bool { return c.query.ID == id })]
	}
	q := of(nappiesJudged).query
	q.Text = nappies
	if first, err = t.compare(ctx, q, "or"); err == nil {
		err = t.show(ctx, fmt.Sprintf("%q in %s, judged as %q", nappies, q.Index, of(nappiesJudged).query.Text), first)
	}
	var strict compared
	if err == nil {
		strict, err = t.compare(ctx, of(allWords).query, "and")
	}
	if err == nil {
		err = t.show(ctx, fmt.Sprintf("%q in %s, all words must match (operator: and)", strict.query.Text, strict.query.Index), strict)
	}
	for _, id := range append(better, worse) {
		if c := of(id); err == nil {
			err = t.show(ctx, fmt.Sprintf("%q in %s", c.query.Text, c.query.Index), c)
		}
	}
	return first, err
}

func (t *demoTour) compare(ctx context.Context, q demo.Query, operator string) (compared, error) {
	c := compared{query: q, operator: operator}
	for way, to := range [ways]struct{ server, profile string }{{t.Engine, ""}, {t.Akin, ""}, {t.Akin, sameProfile}, {t.Akin, modelProfile}} {
		if way == byModel && !t.ByModel {
			continue
		}
		var answer struct {
			Hits struct {
				Total struct {
					Value int `json:"value"`
				} `json:"total"`
				Hits []hit `json:"hits"`
			} `json:"hits"`
		}
		r := esapi.SearchRequest{Index: []string{esclient.Name(q.Index)}, Body: c.body()}
		if to.profile != "" {
			r.Header = http.Header{"X-Akin-Profile": {to.profile}}
		}
		if err := send(ctx, to.server, r, &answer); err != nil {
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

func send(ctx context.Context, server string, r esapi.Request, answer any) error {
	client, err := esclient.New(esclient.Options{URL: server, Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, esclient.Call{Request: r}, answer)
}

// body returns the body of the search.
func (c compared) body() io.Reader {
	match := esclient.Object{"multi_match": esclient.Object{
		"query": c.query.Text, "fields": []string{"title", "body"}, "operator": c.operator,
	}}
	return esclient.JSON(esclient.Object{"size": rankedHits, "query": match})
}

func (t *demoTour) show(ctx context.Context, heading string, c compared) error {
	var answer struct {
		Clauses []expand.Explanation `json:"clauses"`
	}
	r := esclient.HTTPRequest{Method: http.MethodPost, Path: "/_akin/expand/" + esclient.Name(c.query.Index), Body: c.body()}
	if err := send(ctx, t.Admin, r, &answer); err != nil {
		return err
	}
	t.print("\n" + heading + "\n" + table(c))
	if t.ByModel {
		t.print("\n" + modelTable(c))
	}
	t.print(wrap("    added: ", addedTerms(answer.Clauses)))
	if c.query.ID == worse {
		t.print(wrap("    why it does not help: ", whyWorse))
	}
	return nil
}

func (t *demoTour) print(text string) { fmt.Fprint(t.Out, text) }

// Invite shows how to repeat a search with the given URLs of akin and its admin
// port.
func (t *demoTour) Invite(c compared, akin, admin string) {
	fmt.Fprintf(t.Out, invitation, t.Engine, akin, admin,
		c.found[withoutAkin].total, c.found[with].total, c.found[same].total, c.query.Index, c.query.Text, sameProfile, playground.Page, playground.SuggestionsPage, t.invitedByModel(c, akin))
}

// invitedByModel is the part of the invitation for the language model.
func (t *demoTour) invitedByModel(c compared, akin string) string {
	if !t.ByModel {
		return ""
	}
	return fmt.Sprintf("with the first hits ordered by the language model\n\n  curl -s '%s/%s/_search?q=%s&akin_profile=%s'\n\n", akin, c.query.Index, c.query.Text, modelProfile)
}

const (
	rankedHits  = 10 // the depth of nDCG
	lineWidth   = 80
	titleWidth  = 35
	shownHits   = 8
	shownAdded  = 6
	indentation = "    "
)

const legend = `
Six of them, each without and with akin. A + marks a text that answers the
search or helps with it. People judged the texts by reading, before any search.
nDCG@10 says how well the first ten hits are ordered: 1.000 is the judged order.
Of added words, "diapers 0.18 (nappies)" counts as 0.18 of the word nappies.
`

// invitation is formatted with the URLs of the engine, of akin and of its admin
// port, then the totals of the searches, then the search and the playground.
const invitation = `
Try it yourself: %[8]s without akin, %[4]d hits

  curl -s '%[1]s/%[7]s/_search?q=%[8]s&pretty'

with akin, %[5]d hits: %[4]d are too few, so related words such as diapers find more

  curl -s '%[2]s/%[7]s/_search?q=%[8]s&pretty'

with matching: same, by a profile of this demo, %[6]d hits

  curl -s '%[2]s/%[7]s/_search?q=%[8]s&akin_profile=%[9]s'

%[12]sand to see how akin rewrites the search, and why:

  curl -s -X POST '%[3]s/_akin/expand/%[7]s?q=%[8]s'

Searches without hits: %[3]s%[11]s

Ctrl-C ends the demo. Search without and with akin, side by side:

Playground: %[3]s%[10]s#index=%[7]s&q=%[8]s
`

// The ways to search are indices of [compared].
const (
	withoutAkin = iota
	with
	same    // like with, with matching: same
	byModel // like with, with the first hits ordered by a language model
	ways
)

// compared is a judged query with the result of each way to search.
type compared struct {
	query    demo.Query
	operator string // of its words: "or", "and"
	found    [ways]found
}

type found struct {
	total int // all hits
	hits  []hit
	ndcg  float64
}

type hit struct {
	ID     string `json:"_id"`
	Source struct {
		Title string `json:"title"`
	} `json:"_source"`
}

func (c compared) gain() float64 { return c.found[with].ndcg - c.found[withoutAkin].ndcg }

func table(c compared) string {
	var b strings.Builder
	row := hitsBeside(&b, c, withoutAkin, "without akin", with, "with akin")
	figures := func(way int) string {
		return fmt.Sprintf("%d hits, nDCG@%d %.3f", c.found[way].total, rankedHits, c.found[way].ndcg)
	}
	related := fmt.Sprintf("%d and %d related, nDCG@%d %.3f",
		c.found[withoutAkin].total, c.found[with].total-c.found[withoutAkin].total, rankedHits, c.found[with].ndcg)
	row("", "  "+figures(withoutAkin), "  "+related)
	row("", "  with matching: same, "+figures(same), "")
	return b.String()
}

// hitsBeside writes the first hits of two ways to search beside each other, and
// returns what writes a row below.
func hitsBeside(b *strings.Builder, c compared, left int, leftName string, right int, rightName string) (row func(first, left, right string)) {
	row = func(first, left, right string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-4s%-*s  %s", first, titleWidth+2, left, right), " ") + "\n")
	}
	row("", "  "+leftName, "  "+rightName)
	for i := range shownHits {
		row(fmt.Sprintf(" %d", i+1), cell(c, left, i), cell(c, right, i))
	}
	return row
}

// modelTable shows the order of akin beside that of the language model.
func modelTable(c compared) string {
	var b strings.Builder
	row := hitsBeside(&b, c, with, "with akin", byModel, "with akin and the language model")
	figure := func(way int) string { return fmt.Sprintf("  nDCG@%d %.3f", rankedHits, c.found[way].ndcg) }
	row("", figure(with), figure(byModel))
	return b.String()
}

func summary(all []compared, model bool) string {
	var sum [ways]float64
	var better, worse int
	for _, c := range all {
		for way, f := range c.found {
			sum[way] += f.ndcg
		}
		switch {
		case c.gain() > 0:
			better++
		case c.gain() < 0:
			worse++
		}
	}
	n := float64(len(all))
	said := ""
	if model {
		said = fmt.Sprintf("With the first hits ordered by the language model as well: %.3f.\n", sum[byModel]/n)
	}
	return fmt.Sprintf(`
A search that finds enough is only put in order. One that finds too little, less
than 100 hits, or 10 if all its words must match, also finds by related words.

nDCG@%d over %d judged queries: %.3f without akin, %.3f with it, %+.1f %%.
With akin %d queries rank better, %d worse and %d as before.
With "matching: same" every search is only put in order: %.3f.
`, rankedHits, len(all), sum[withoutAkin]/n, sum[with]/n, 100*(sum[with]/sum[withoutAkin]-1), better, worse, len(all)-better-worse, sum[same]/n) + said
}

// cell returns hit i in the width of its column, with a + if it is relevant.
func cell(c compared, way, i int) string {
	if i >= len(c.found[way].hits) {
		return ""
	}
	h := c.found[way].hits[i]
	mark := " "
	if c.query.Judgments[h.ID] > 0 {
		mark = "+"
	}
	title := []rune(h.Source.Title)
	if len(title) > titleWidth {
		title = append(title[:titleWidth-1], '…')
	}
	return mark + " " + string(title)
}

// addedTerms lists the added terms with the largest boosts, which are what an
// occurrence counts of one of the original word, each with both.
func addedTerms(clauses []expand.Explanation) string {
	var added []expand.Added
	for _, c := range clauses {
		for _, a := range c.Added {
			a.Word, a.From = cmp.Or(a.Word, a.Term), cmp.Or(c.Words[a.From], a.From)
			added = append(added, a)
		}
	}
	slices.SortStableFunc(added, func(a, b expand.Added) int { return cmp.Compare(b.Boost, a.Boost) })
	var parts []string
	seen := map[string]bool{}
	for _, a := range added {
		if len(parts) < shownAdded && !seen[a.Term] {
			seen[a.Term] = true
			parts = append(parts, fmt.Sprintf("%s %.2f (%s)", a.Word, a.Boost, a.From))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// wrap breaks text into lines that fit, the first after label.
func wrap(label, text string) string {
	var b strings.Builder
	line := label
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+1+len([]rune(word)) > lineWidth {
			b.WriteString(line + "\n")
			line = indentation
		}
		if !strings.HasSuffix(line, " ") {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
