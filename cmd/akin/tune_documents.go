package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/enrich"
	"github.com/akin-search/akin/tools/evaluate"
)

// maxTerms is how many terms all documents have together, where each document
// counts each term of a field once. A term takes some 35 bytes, and the garbage
// collector as much again.
const maxTerms = 20_000_000

var errTooLarge = fmt.Errorf("the documents have more than %d million terms together, each counted once per document: "+
	"tune on a part of them, --max-docs", maxTerms/1_000_000)

const loadedIndex = "documents"

// tuneDocuments are the documents of an index as terms, in an engine in this
// process.
type tuneDocuments struct {
	// Engine answers like the cluster, for one index.
	Engine *demo.Engine

	index   string // an index expression
	client  *esclient.Client
	cluster *esclient.Cached // analyzes each text once
	ids     map[string]bool
	terms   int // of all documents together
}

// A tunePart is the part of the documents that settings are tried on: some as
// they are, and a sample of the others, each of which stands for several.
type tunePart struct {
	whole map[string]bool // by id
	each  int             // of so many others one is in the sample
	docs  int             // about how many these are
}

// standsFor returns for how many documents one stands, 0 if it is left out. A
// nil part has them all.
func (p *tunePart) standsFor(id string) int {
	switch {
	case p == nil || p.whole[id]:
		return 1
	case int(crc32.ChecksumIEEE([]byte(id)))%p.each == 0:
		return p.each
	}
	return 0
}

// newTunePart returns a part of most documents of total, with whole among them.
func newTunePart(whole map[string]bool, most, total int) (*tunePart, error) {
	if len(whole) >= most {
		return nil, fmt.Errorf("--max-docs %d: the judged documents and the first hits are %d already", most, len(whole))
	}
	each := (total - len(whole) + most - len(whole) - 1) / (most - len(whole)) // rounded up
	return &tunePart{whole: whole, each: max(each, 1), docs: most}, nil
}

func checkTunable(fields []string, bodies [][]byte) error {
	described := map[string]demo.Field{}
	for _, field := range fields {
		described[field] = demo.Field{Analyze: func(string) ([]demo.Token, error) { return nil, nil }}
	}
	for _, body := range bodies {
		if err := demo.NewEngine().Check(described, body); err != nil {
			return fmt.Errorf("tune ranks without the cluster, and cannot run searches such as %s: %w", body, err)
		}
	}
	return nil
}

// loadDocuments reads the terms of the documents of a part, in some fields of
// an index, once. The documents should not change meanwhile. The caller closes
// the result, even after an error.
func loadDocuments(ctx context.Context, client *esclient.Client, index string, fields []string, part *tunePart, progress simmatrix.Progress) (d *tuneDocuments, err error) {
	d = &tuneDocuments{
		Engine: demo.NewEngine(), index: index, client: client, ids: map[string]bool{},
		cluster: esclient.NewCached(client, esclient.CacheOptions{AnalysisBytes: 64 << 20, StatisticsBytes: 1 << 20, TTL: 24 * time.Hour}),
	}
	described := map[string]demo.Field{}
	for _, field := range fields {
		if described[field], err = d.describe(ctx, field); err != nil {
			return d, err
		}
	}
	var failed error
	err = d.Engine.Load(loadedIndex, described, func(yield func(demo.Loaded) bool) {
		failed = d.scan(ctx, fields, part, progress, yield)
	})
	if err = errors.Join(err, failed); err == nil && d.terms == 0 {
		err = fmt.Errorf("the cluster reports no terms of the documents of %q in %q", index, fields)
	}
	return d, err
}

// Close closes the cache of analyses.
func (d *tuneDocuments) Close() { d.cluster.Close() }

// scan yields the documents of the part with their term frequencies.
func (d *tuneDocuments) scan(ctx context.Context, fields []string, part *tunePart, progress simmatrix.Progress, yield func(demo.Loaded) bool) error {
	api := documents.API{Client: d.client}
	total, err := api.Count(ctx, d.index, nil)
	if err != nil {
		return err
	}
	if part != nil {
		total = int64(part.docs)
	}
	terms := enrich.NewTerms(api, fields...)
	return api.ScanRefs(ctx, documents.RefOptions{Index: d.index}, func(refs []documents.DocRef) error {
		refs = slices.DeleteFunc(refs, func(doc documents.DocRef) bool { return part.standsFor(doc.ID) == 0 })
		err := terms.Each(ctx, refs, func(i int, doc *documents.DocTerms) error {
			id := refs[i].ID
			if doc.Err != nil {
				return fmt.Errorf("the terms of document %q: %w", id, doc.Err)
			}
			if d.ids[id] {
				return fmt.Errorf("two documents have the id %q: choose one index", id)
			}
			d.ids[id] = true
			fields := make(map[string]map[string]int, len(doc.Fields))
			for field, terms := range doc.Fields {
				fields[field] = make(map[string]int, len(terms))
				for _, t := range terms {
					fields[field][t.Term] = int(t.Freq)
				}
				d.terms += len(terms)
			}
			if d.terms > maxTerms {
				return errTooLarge
			}
			yield(demo.Loaded{ID: id, Terms: fields, StandsFor: part.standsFor(id)})
			return nil
		})
		progress("reading documents", len(d.ids), int(total))
		return err
	})
}

// describe asks the cluster how it scores a field, with the words of a
// document.
func (d *tuneDocuments) describe(ctx context.Context, field string) (demo.Field, error) {
	schema, err := d.client.Schema(ctx, d.index, field)
	if err != nil {
		return demo.Field{}, err
	}
	text, _ := d.client.SampleText(ctx, d.index, field) // without it the scale is the default of the cluster's version
	tokens, err := d.analyze(ctx, field, text)
	if err != nil {
		return demo.Field{}, err
	}
	terms := make([]string, len(tokens))
	for i, t := range tokens {
		terms[i] = t.Term
	}
	learned, err := d.cluster.Statistics(ctx, esclient.Indices{Expression: d.index}, field, terms, make([]int64, len(terms)))
	if err == nil && learned.Scale == 0 {
		err = fmt.Errorf("field %q of %q is not scored by BM25, and tune supports nothing else", field, d.index)
	}
	d.Engine.NoScripts = !learned.Scripts                                                                                  // akin then writes other forms
	return demo.Field{K1: schema.K1, B: schema.B, Scale: learned.Scale, Analyze: func(text string) ([]demo.Token, error) { //nolint:contextcheck // The engine has none.
		return d.analyze(context.Background(), field, text)
	}}, err
}

func (d *tuneDocuments) analyze(ctx context.Context, field, text string) ([]demo.Token, error) {
	analysis, err := d.cluster.Analyze(ctx, esclient.Indices{Expression: d.index}, field, "", text)
	if err != nil {
		return nil, err
	}
	tokens := make([]demo.Token, len(analysis.Terms))
	for i, t := range analysis.Terms {
		tokens[i] = demo.Token{Term: t, Position: analysis.Positions[i]}
		if analysis.Graph || analysis.Spanned { // the engine does not say which term has which length
			tokens[i].Length = 2
		}
	}
	return tokens, nil
}

const measured = 10

// A tuneBench scores searches under settings, with an akin and an engine with
// the terms of the documents, both in this process.
type tuneBench struct {
	// URL is the URL of an engine filled by [loadDocuments].
	URL    string
	Matrix *simmatrix.Matrix
	// Bodies are the searches. Grades are those of the documents of each search,
	// by id.
	Bodies [][]byte
	Grades []map[string]float64
	// Deep are the same searches for more hits, unless the template limits them.
	Deep [][]byte
	// Log gets the warnings of the akin.
	Log io.Writer
	// Kept has the scores of earlier runs: the nDCG@10 of the searches in place of
	// hits. It may be nil.
	Kept *evaluate.Kept
	plan string // identifies everything but the setting
}

// Score returns the nDCG@10 of each search under a setting, or of direct search
// if s is nil.
func (b *tuneBench) Score(ctx context.Context, s *expand.Profile) ([]float64, error) {
	scored, err := b.Kept.Answer(fmt.Sprintf("%s %+v", b.plan, s), func() (scored evaluate.Answer, err error) {
		rankings, err := b.Rank(ctx, s)
		for i := range rankings {
			scored.Hits = append(scored.Hits, evaluate.Hit{Score: b.measure(i, &rankings[i])})
		}
		return scored, err
	})
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(scored.Hits))
	for i, h := range scored.Hits {
		scores[i] = h.Score
	}
	return scores, nil
}

// measure returns the nDCG@10 of an answer to the i-th search.
func (b *tuneBench) measure(i int, answer *evaluate.Answer) float64 {
	ranking := evaluate.Ranking(answer.Hits)
	ids := make([]string, len(ranking))
	for k := range ranking {
		ids[k] = ranking[k].ID
	}
	return evaluate.NDCG(ids, b.Grades[i], measured)
}

// Confirm searches on the cluster, directly and under the recommended setting,
// and tells the result.
func (b *tuneBench) Confirm(ctx context.Context, result *evaluate.TuneResult, o armOptions, client *esclient.Client, progress simmatrix.Progress) error {
	arm, end, err := candidateArm(ctx, o, *result.Recommended, b.Matrix)
	defer end()
	if err != nil {
		return err
	}
	queries := make([]evaluate.Query, len(b.Bodies))
	for i := range queries {
		queries[i].ID = strconv.Itoa(i)
	}
	body := func(q evaluate.Query) ([]byte, error) {
		i, err := strconv.Atoi(q.ID)
		return b.Bodies[i], err
	}
	arms := []evaluate.Arm{directArm(client, o.Index), arm}
	answered, err := evaluate.Search(ctx, arms, queries, evaluate.SearchOptions{Body: body, Progress: progress})
	if err != nil {
		return err
	}
	scores, sent := [2][]float64{}, evaluate.Expansion{}
	for i, a := range answered {
		sent.Add(a.Answers[1])
		for k := range scores {
			scores[k] = append(scores[k], b.measure(i, &a.Answers[k]))
		}
	}
	result.Confirm(scores[0], scores[1], sent, evaluate.MeanEngine(answered, 0), evaluate.MeanEngine(answered, 1))
	return nil
}

// Expansion counts which searches are expanded under a setting.
func (b *tuneBench) Expansion(ctx context.Context, s *expand.Profile) (count evaluate.Expansion, err error) {
	answers, err := b.Rank(ctx, s)
	for _, a := range answers {
		count.Add(a)
	}
	return count, err
}

// Rank returns the answer to each search under a setting, or of direct search
// if s is nil.
func (b *tuneBench) Rank(ctx context.Context, s *expand.Profile) ([]evaluate.Answer, error) {
	if s == nil {
		client, err := esclient.New(esclient.Options{URL: b.URL})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		return rank(ctx, evaluate.Arm{Search: (&target{client: client, index: loadedIndex, patient: true}).search}, b.Bodies)
	}
	setting := *s
	setting.Expressions = false // the engine in this process knows no positions, which phrases need
	arm, end, err := candidateArm(ctx, armOptions{Cluster: cli.Cluster{URL: b.URL, Index: loadedIndex}, InProcess: true, Log: b.Log}, setting, b.Matrix)
	defer end()
	if err != nil {
		return nil, err
	}
	return rank(ctx, arm, b.Bodies)
}

// checkSent returns an error if akin failed open for a search.
func checkSent(body []byte, answer *evaluate.Answer) error {
	if strings.HasPrefix(answer.Unexpanded, report.FailedOpen) {
		return fmt.Errorf("akin sent the search %s as it came: %s", body, answer.Unexpanded)
	}
	return nil
}

func rank(ctx context.Context, arm evaluate.Arm, bodies [][]byte) ([]evaluate.Answer, error) {
	answers := make([]evaluate.Answer, len(bodies))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, body := range bodies {
		group.Go(func() error {
			answer, err := arm.Search(ctx, body)
			answers[i] = answer
			return cmp.Or(err, checkSent(body, &answer))
		})
	}
	return answers, group.Wait()
}

// Difference compares the first searches' scores with those that the cluster
// gives at the same ranks. It returns the largest difference, as a share of the
// cluster's score.
func (b *tuneBench) Difference(ctx context.Context, client *esclient.Client, index string, searches int) (worst float64, err error) {
	first := *b
	first.Bodies = b.Bodies[:min(searches, len(b.Bodies))]
	ours, err := first.Rank(ctx, nil)
	if err != nil {
		return 0, err
	}
	theirs, err := rank(ctx, directArm(client, index), first.Bodies)
	for i, answer := range theirs {
		if len(ours[i].Hits) != len(answer.Hits) {
			worst = max(worst, 1)
			continue
		}
		for k, h := range answer.Hits {
			worst = max(worst, math.Abs(ours[i].Hits[k].Score-h.Score)/max(h.Score, math.SmallestNonzeroFloat32))
		}
	}
	return worst, err
}
