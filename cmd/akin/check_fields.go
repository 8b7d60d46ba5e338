package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
)

const (
	// maxLooked is how many fields are checked, lookTime how long all of them may
	// take.
	maxLooked = 200
	lookTime  = time.Minute
	// fewKnown is the share of frequent terms with a row. Below it, the matrix is
	// probably for another language or analyzer, if there are at least
	// enoughTerms.
	fewKnown, enoughTerms = 0.4, 10
)

type place struct{ index, field string }

// fields tries akin's own calls, and checks each field.
func (r *checkReport) fields(ctx context.Context, cfg *configs.Config, app *serve.App, index string) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if index == "" && len(cfg.Matrices) == 0 {
		return
	}
	expression := cmp.Or(index, app.Expression())
	found, err := app.Client().TextIndices(ctx, expression)
	if err != nil {
		r.fail("right to read mappings", err)
		return
	}
	r.add(verdictOK, "right to read mappings", "indices:admin/get")
	found = slices.DeleteFunc(found, func(i esclient.TextIndex) bool { return strings.HasPrefix(i.Name, ".") })
	places := chosen(cfg, expression, found)
	if len(places) == 0 || index != "" && len(found) == 0 {
		r.fail("indices", fmt.Errorf("no open index of %q has a text field", expression))
		return
	}
	if !r.rights(ctx, app.Client(), places[0]) {
		return
	}
	r.capabilities(ctx, app.Client(), places[0])
	r.remembered(ctx, cfg, app.Client(), places)
	if len(places) > maxLooked {
		r.Left, places = len(places)-maxLooked, places[:maxLooked]
	}
	unserved := slices.ContainsFunc(r.Checks, func(c checkResult) bool { return c.Verdict == verdictError && strings.HasPrefix(c.About, "matrix ") })
	scripts := false
	for k, p := range places {
		if ctx.Err() != nil {
			r.Left += len(places) - k
			break
		}
		report, err := app.Preview(ctx, p.index, p.field)
		f := judge(&report, err)
		if f.Reason == reason.NoMatrix && unserved {
			f.Verdict, f.Says = verdictWarning, "no matrix is bound, or its matrix cannot be served, see above: searches stay unchanged"
		}
		r.Fields = append(r.Fields, f)
		scripts = scripts || report.Scripts
	}
	r.scripts(cfg, scripts)
}

// chosen returns the places to check: the text fields, and configured full
// names that are not text fields.
func chosen(cfg *configs.Config, expression string, found []esclient.TextIndex) (places []place) {
	names, fields := map[string]bool{}, map[string]bool{}
	for _, i := range found {
		names[i.Name] = true
		for _, field := range i.Fields {
			fields[field] = true
			places = append(places, place{i.Name, field})
		}
	}
	full := func(name string) bool { return !strings.ContainsAny(name, "*<") && !strings.HasPrefix(name, "-") }
	for name := range strings.SplitSeq(expression, ",") {
		if full(name) && !names[name] {
			places = append(places, place{name, firstField(cfg)})
		}
	}
	for _, m := range cfg.Matrices {
		for _, field := range m.Fields {
			if full(field) && !fields[field] && len(found) > 0 {
				places = append(places, place{found[0].Name, field})
			}
		}
	}
	return places
}

func firstField(cfg *configs.Config) string {
	for _, m := range cfg.Matrices {
		for _, field := range m.Fields {
			if !strings.Contains(field, "*") {
				return field
			}
		}
	}
	return "_any_"
}

// rights tries each kind of akin's own calls in one place, and reports whether
// all that serving needs are allowed.
func (r *checkReport) rights(ctx context.Context, client *esclient.Client, p place) bool {
	const pipelines = "right to read search pipelines"
	capabilities := []string{"right to count terms", "right to read terms of documents", "right to scroll"}
	all := true
	for _, right := range []struct {
		about, name string
		call        func() error
		use         string // what needs it besides serving
	}{
		{"right to analyze", "indices:admin/analyze", func() error {
			_, err := client.AnalyzeTexts(ctx, p.index, p.field, []string{"akin"})
			return err
		}, ""},
		{"right to search", "indices:data/read/search", func() error {
			_, err := client.SampleText(ctx, p.index, p.field)
			return err
		}, ""},
		{"right to count terms", "indices:data/read/tv", func() error {
			_, _, err := client.DocFreqs(ctx, p.index, p.field, []string{"akin"})
			return err
		}, ""},
		{"right to read settings", "indices:monitor/settings/get", func() error {
			_, err := documents.API{Client: client}.Indices(ctx, p.index)
			return err
		}, "akin matrix build, the mode soft and feedback"},
		{"right to read terms of documents", "indices:data/read/mtv", func() error {
			_, err := documents.API{Client: client}.DocVectors(ctx, []documents.VectorRequest{{Index: p.index, ID: "akin", Fields: []string{p.field}}})
			return err
		}, "akin matrix build --exact-analysis, the mode soft and feedback"},
		{"right to scroll", "indices:data/read/scroll, indices:data/read/scroll/clear", func() error {
			return scroll(ctx, client, p.index)
		}, "akin matrix build"},
		{pipelines, "cluster:admin/search/pipeline/get", func() error {
			return client.Do(ctx, esclient.Call{Request: esclient.HTTPRequest{Path: "/_search/pipeline"}}, &map[string]any{})
		}, "searches with a search pipeline, above all hybrid searches"},
	} {
		err := right.call()
		refused, ok := errors.AsType[*esclient.Error](err)
		switch {
		case slices.Contains(capabilities, right.about) && esclient.IsUnavailable(err) && refused.Type != "security_exception": // see r.capabilities
		case right.about == pipelines && ok && refused.Status < 500 && refused.Status != 401 && refused.Status != 403: // Elasticsearch has none
		case right.use != "" && ok && refused.Status == http.StatusForbidden:
			r.Checks = append(r.Checks, checkResult{verdictWarning, right.about, "for " + right.use + ": " + err.Error(), cli.Next(err)})
		case ok && (refused.Status == 401 || refused.Status == 403), ctx.Err() != nil:
			r.fail(right.about, err)
			all = false
		case ok && (refused.Status >= 500 || refused.Status == 429):
			r.add(verdictWarning, right.about, "not known: "+err.Error())
		default: // the checks of the fields report other errors
			r.add(verdictOK, right.about, right.name)
		}
	}
	return all
}

// capabilities tells which of the calls that akin can do without a cluster has,
// and what akin does without them. The check of rights reports other errors.
func (r *checkReport) capabilities(ctx context.Context, client *esclient.Client, p place) {
	docs := documents.API{Client: client}
	counts := "documents with a word are counted by searches"
	if _, _, err := client.DocFreqs(ctx, p.index, p.field, []string{"akin"}); esclient.IsUnavailable(err) {
		counts = "the matrix's own frequencies are used, and searches are scored in the form grouped"
	}
	for _, capability := range []struct {
		about   string
		call    func() error
		without string
	}{
		{"term vectors", func() error {
			body := esclient.JSON(esclient.Object{"doc": esclient.Object{p.field: "akin"}, "fields": []string{p.field}})
			return client.Do(ctx, esclient.Call{Request: esapi.TermvectorsRequest{Index: esclient.Name(p.index), Body: body}}, nil)
		}, counts},
		{"terms of documents", func() error {
			_, err := docs.DocVectors(ctx, []documents.VectorRequest{{Index: p.index, ID: "akin", Fields: []string{p.field}}})
			return err
		}, "the mode soft, feedback and akin matrix build --exact-analysis need them"},
		{"scrolls", func() error { return scroll(ctx, client, p.index) }, "akin matrix build reads in a point in time, or else by id"},
		{"points in time", func() error { return docs.PointInTime(ctx, p.index) }, "akin matrix build reads by id where there are no scrolls either"},
	} {
		switch err := capability.call(); {
		case err == nil:
			r.add(verdictOK, capability.about, "yes")
		case esclient.IsUnavailable(err), errors.Is(err, documents.ErrNoPointInTime):
			r.add(verdictOK, capability.about, "no, "+capability.without)
		}
	}
}

// docBytes is about what is remembered of a document of 100 words.
const docBytes = 400

// remembered tells how much of the indices can be remembered, for the modes
// soft and auto.
func (r *checkReport) remembered(ctx context.Context, cfg *configs.Config, client *esclient.Client, places []place) {
	if mode := cfg.Expansion.Mode; mode != expand.ModeAuto && mode != expand.ModeSoft {
		return
	}
	var indices []string
	for _, p := range places {
		if !slices.Contains(indices, p.index) {
			indices = append(indices, p.index)
		}
	}
	for _, index := range indices {
		docs, err := documents.API{Client: client}.Count(ctx, index, nil)
		if err != nil {
			continue // the checks of the fields say so
		}
		need, room := float64(docs)*docBytes/1e6, float64(cfg.Caches.Large())/1e6
		text := fmt.Sprintf("the terms of %d documents take about %.1f of %.1f MB, if they have 100 words each", docs, need, room)
		if need > room {
			text += ": those that are searched for most are remembered; a larger caches.size remembers more"
		}
		r.add(verdictOK, "documents of "+index, text)
	}
}

// vectors tells how many documents have a vector of the language model, if the
// configuration's akin runs, and what those of all take.
func (r *checkReport) vectors(ctx context.Context, cfg *configs.Config, app *serve.App, dim int) {
	indices, err := app.EmbeddedIndices(ctx)
	if err != nil {
		r.fail("documents to make vectors of", err)
		return
	}
	var running readiness
	text, _, err := askReady(ctx, reached("http://"+cfg.Admin.Address))
	if err == nil {
		err = json.Unmarshal(text, &running)
	}
	for _, index := range indices {
		docs, failed := documents.API{Client: app.Client()}.Count(ctx, index, nil)
		if failed != nil {
			r.fail("vectors of "+index, failed)
			continue
		}
		need, room := float64(docs)*float64(embedding.DocumentBytes(dim))/1e6, float64(cfg.Embeddings.Size)/1e6
		says := fmt.Sprintf("those of %d documents take %.1f of %.1f MB", docs, need, room)
		if need > room {
			says += ": those that searches find most stay; a larger embeddings.size holds more"
		}
		made := "; the akin at admin.address has not begun to make them"
		if err != nil {
			made = "; no akin answers at admin.address to tell how many there are"
		}
		for _, e := range running.Embeddings {
			if e.Index == index {
				made = fmt.Sprintf("; the warm-up of the akin at admin.address has made %d", e.Documents)
			}
		}
		r.add(verdictOK, "vectors of "+index, says+made)
	}
}

func scroll(ctx context.Context, client *esclient.Client, index string) error {
	var page struct {
		ID string `json:"_scroll_id"`
	}
	call := func(r esapi.Request) error { return client.Do(ctx, esclient.Call{Request: r}, &page) }
	filter := []string{"_scroll_id"}
	err := call(esapi.SearchRequest{Index: []string{esclient.Name(index)}, Scroll: time.Minute, Size: new(1), FilterPath: filter})
	if err != nil {
		return err
	}
	err = call(esapi.ScrollRequest{
		Scroll: time.Minute, FilterPath: filter, Body: esclient.JSON(esclient.Object{"scroll_id": page.ID}),
	})
	return errors.Join(err, call(esapi.ClearScrollRequest{
		Body: esclient.JSON(esclient.Object{"scroll_id": []string{page.ID}}),
	}))
}

func judge(s *serve.FieldReport, err error) checkedField {
	f := checkedField{verdictOK, *s, ""}
	if err != nil {
		f.Verdict, f.Says = verdictError, err.Error()
		if next := cli.Next(err); next != "" {
			f.Says += "; " + next
		}
		return f
	}
	few := s.Frequent >= enoughTerms && float64(s.Known) < fewKnown*float64(s.Frequent)
	switch {
	case s.Reason == reason.NoMatrix:
		f.Says = "no matrix is bound: searches stay unchanged"
	case s.Reason == reason.UnknownToCluster:
		f.Verdict, f.Says = verdictError, "the cluster does not know the index or its analyzer"
	case s.Reason == reason.NotText:
		f.Verdict, f.Says = verdictError, "not a field of type text in every index: remove it from matrices.fields"
	case s.Reason == reason.NotWords:
		f.Verdict, f.Says = verdictWarning, "its terms are parts of words, such as n-grams: a matrix of such terms must name the field in full"
	case s.Reason == reason.SearchPipeline:
		f.Verdict, f.Says = verdictWarning, "a request processor of the index's search pipeline may read the query: searches stay unchanged"
	case s.Reason == reason.Mixed:
		f.Verdict, f.Says = verdictWarning, "its indices analyze or score the field differently: search them one by one, or map the field alike"
	case s.Segments == reason.NoMatrix:
		f.Verdict, f.Says = verdictWarning, "no matrix is bound to the text of its segments: name that in matrices.fields, too"
	case s.Segments != "" && s.Segments != reason.NotText:
		f.Verdict, f.Says = verdictWarning, "without the segments of expansion.segments: "+string(s.Segments)
	case lacks(s.Reason) != "":
		f.Verdict, f.Says = verdictWarning, "ranked as in the mode bm25: "+lacks(s.Reason)
		if s.Lengths != "" {
			f.Says += "; " + s.Lengths
		}
	case few:
		f.Verdict, f.Says = verdictWarning, "few of the field's frequent terms have a row: is the matrix of this language and analyzer?"
	case s.ByVectors():
		f.Says = "scored by vectors of the documents"
	case s.Added == 0 && s.Texts == 0:
		f.Says = "no text to try: no document has the field, or only nested documents have it"
	case s.Added == 0 && len(s.LeftOut) > 0:
		f.Verdict, f.Says = verdictWarning, "nothing was added to the words of some documents ("+string(s.Reason)+"): "+leftOut(s.LeftOut)
	case s.Added == 0 && s.Reason == reason.NoNeighbors:
		f.Verdict, f.Says = verdictWarning, "nothing was added to the words of some documents (no_neighbors): the matrix has no words related to them"
	case s.Added == 0 && s.Reason == reason.NoTerms:
		f.Verdict, f.Says = verdictWarning, "some documents have no words in it (no_terms): take it out of matrices.fields if nobody searches it"
	case s.Added == 0:
		f.Verdict, f.Says = verdictWarning, "nothing was added to the words of some documents: "+string(s.Reason)
	case s.Segments == reason.NotText:
		f.Says = "without the segments of expansion.segments, which the index does not map: docs/segments.md has the mapping"
	case s.Reason == reason.NoScripts: // the check of scripts reports it
	case s.Reason == reason.NoFrequencies: // as term vectors do
	case s.Reason == reason.NotRemembered:
		f.Says = "hits that akin has not read yet are put in order by a rescore, as in the mode bm25; nothing to do"
	case s.Reason != "":
		f.Says = "not in the form configured: " + string(s.Reason)
	}
	return f
}

func leftOut(words []expand.LeftOut) string {
	words = words[:min(len(words), 3)]
	out := make([]string, 0, len(words))
	for _, w := range words {
		why := "is left out (" + w.Reason + ")" // docs/synonyms.md has the reasons
		switch w.Reason {
		case expand.LeftOutAbsent:
			why = "is in no document"
		case expand.LeftOutFrequent:
			why = "is in more than expansion.max_doc_share of the documents"
		}
		out = append(out, fmt.Sprintf("%s (for %s, similarity %.2g) %s", w.Term, w.From, w.Similarity, why))
	}
	return strings.Join(out, ", ")
}

// lacks returns what a field lacks for the configured mode, or "" if the reason
// is another one.
func lacks(why reason.Reason) string {
	switch why {
	case reason.NoWeights:
		return "no entry of weights is for the field (no_weights): akin index norms snapshot makes weights"
	case reason.NoLinear:
		return "no field with this text scores linearly in the term frequency (no_linear_field): docs/modes.md has the mapping"
	case reason.NoNorms:
		return "the documents have no lengths by these weights, or in the mode softcosine by these weights and this version of the matrix " +
			"(no_norms): docs/modes.md has the mapping, and akin index norms backfill stores them, with --matrix for the mode softcosine"
	case reason.NoVectors:
		return "too few documents have vectors of the field (no_vectors): akin index vectors backfill maps and stores them, see docs/vectors.md"
	default:
		return ""
	}
}

func (r *checkReport) scripts(cfg *configs.Config, run bool) {
	if !slices.ContainsFunc(r.Fields, func(f checkedField) bool { return f.Frequent > 0 }) {
		return // no field was asked for it
	}
	scoring := cfg.Expansion.Scoring
	switch {
	case run:
		r.add(verdictOK, "scripts", "yes, scoring "+scoring.String()+" can be saturated")
	case scoring == form.Auto || scoring == form.Saturated:
		r.add(verdictOK, "scripts", "no, searches are scored in the form grouped")
	default:
		r.add(verdictOK, "scripts", "no, and scoring "+scoring.String()+" needs none")
	}
}
