package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/enrich"
)

// An indexReading says what to read.
type indexReading struct {
	Client  *esclient.Client
	Scan    documents.ScanOptions // selects documents
	MaxDocs int                   // read at most this many, chosen at random; 0 for all
	Terms   bool                  // read index terms instead of texts
	Spool   string                // the folder that stores what was read, "" for none
	Memory  int64                 // limit for the texts in bytes; 0 for none
	Report  *cli.Progress
}

// Texts reads the documents. With a spool it continues an interrupted run. The
// returned spool is nil if none is configured.
func (x *indexReading) Texts(ctx context.Context) (*learn.Texts, *spool, error) {
	docs := documents.API{Client: x.Client}
	count, err := docs.Count(ctx, x.Scan.Index, x.Scan.Query)
	if err != nil {
		return nil, nil, err
	}
	indices, err := docs.Indices(ctx, x.Scan.Index)
	if err != nil {
		return nil, nil, err
	}
	plan := newScanPlan(x.Scan, indices, count, x.MaxDocs, x.Terms)
	var spool *spool
	if x.Spool != "" {
		if spool, plan, err = openSpool(ctx, x.Spool, plan); err != nil {
			return nil, nil, err
		}
		if done := spool.finished(plan.Slices); done > 0 {
			x.Report.Tell("%s: %d of %d slices have been read before", x.Spool, done, plan.Slices)
		}
	}
	r := &reader{indexReading: x, plan: plan, spool: spool, firstPause: enrich.FirstPause, texts: learn.NewTexts()}
	texts, err := r.read(ctx)
	if err != nil {
		return nil, nil, spool.explain(err, plan.Slices)
	}
	if x.MaxDocs > 0 {
		texts.Limit(x.MaxDocs)
	}
	x.Report.Tell("read %d documents with %d distinct words", texts.Docs(), len(texts.Words()))
	return texts, spool, nil
}

// From sampleWords words a matrix is learned in minutes, within usualMemory.
// How long documents are, probeDocs of them tell.
const sampleWords, probeDocs = 20_000_000, 1000

// SampleSize returns how many documents of a large index have about so many
// words, judged by some of them, or 0 for all. With a spool, an interrupted run
// decided it.
func (x *indexReading) SampleSize(ctx context.Context, words, some int) (int, error) {
	if x.Spool != "" {
		if begun, err := (&spool{x.Spool}).readPlan(ctx); err == nil {
			return begun.MaxDocs, nil
		}
	}
	count, err := documents.API{Client: x.Client}.Count(ctx, x.Scan.Index, x.Scan.Query)
	if err != nil || count <= int64(some) {
		return 0, err
	}
	probe := *x
	probe.Spool, probe.MaxDocs = "", some
	x.Report.Tell("how long documents are is learned from %d", probe.MaxDocs)
	texts, _, err := probe.Texts(ctx)
	if err != nil {
		return 0, err
	}
	size := int64(float64(words) / max(texts.Corpus(nil).MeanLength(), 1))
	if size >= count {
		return 0, nil
	}
	x.Report.Tell("learning from a random sample of %d of %d documents, about %d words, so that it takes minutes (--max-docs 0 reads all)",
		size, count, words)
	return int(size), nil
}

// A reader reads the slices of a plan, several at a time.
type reader struct {
	*indexReading

	plan       scanPlan
	spool      *spool // nil keeps everything in memory
	firstPause time.Duration

	mu    sync.Mutex
	texts *learn.Texts // of the finished slices, without a spool
	docs  int          // read so far
	bytes int64        // held so far
}

func (r *reader) read(ctx context.Context) (*learn.Texts, error) {
	r.Report.Step("reading documents", 0, int(r.plan.Docs))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(r.plan.sideBySide())
	for k := range r.plan.Slices {
		if r.spool.has(k) {
			continue
		}
		group.Go(func() error {
			if err := inGroup.Err(); err != nil {
				return err
			}
			var texts *learn.Texts
			err := enrich.RetryAfter(inGroup, r.firstPause, func() (err error) {
				texts, err = r.try(inGroup, k)
				return err
			}, func(err error, pause time.Duration) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.Report.Tell("%v; reading slice %d of %d again in %v", err, k+1, r.plan.Slices, pause)
			})
			if err != nil {
				return err
			}
			return r.keep(inGroup, k, texts)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for k := range r.plan.Slices {
		if r.spool == nil {
			break
		}
		texts, err := r.spool.load(ctx, k)
		if err != nil {
			return nil, err
		}
		r.texts.Append(texts)
		if err := r.add(0, r.texts.Bytes()-r.bytes); err != nil {
			return nil, err
		}
		r.Report.Step("reading what was read before", k+1, r.plan.Slices)
	}
	return r.texts, ctx.Err()
}

// try reads a slice from its beginning. On an error it subtracts what it has
// counted.
func (r *reader) try(ctx context.Context, k int) (_ *learn.Texts, err error) {
	texts := learn.NewTexts()
	docs, held := 0, int64(0)
	defer func() {
		if err != nil {
			_ = r.add(-docs, -held)
		}
	}()
	counted := func() error {
		grown := texts.Bytes() - held
		docs, held = docs+1, held+grown
		return r.add(1, grown)
	}
	cluster := documents.API{Client: r.Client}
	if r.plan.Terms {
		return texts, cluster.ExactTerms(ctx, r.plan.slice(k), func(_ string, own, nested [][]string) error {
			texts.AddTerms(own...)
			for _, terms := range nested {
				texts.AddTerms(terms)
			}
			return counted()
		})
	}
	return texts, cluster.Scan(ctx, r.plan.slice(k), func(_ string, own, nested []string) error {
		texts.Add(own...)
		for _, text := range nested {
			texts.Add(text)
		}
		return counted()
	})
}

// add adds to the counts of documents and bytes. Its error wraps
// [simmatrix.ErrMemory].
func (r *reader) add(docs int, bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.docs += docs; docs != 0 {
		r.Report.Step("reading documents", r.docs, int(r.plan.Docs))
	}
	r.bytes += bytes
	if r.Memory > 0 && r.bytes > r.Memory {
		return fmt.Errorf("%w: the texts of the first %d documents take %d MB: raise --max-memory or lower --max-docs",
			simmatrix.ErrMemory, r.docs, r.bytes>>20)
	}
	return nil
}

func (r *reader) keep(ctx context.Context, k int, texts *learn.Texts) error {
	if r.spool != nil {
		if err := r.spool.write(ctx, sliceFile(k), func(w io.Writer) error { return learn.EncodeTexts(w, texts) }); err != nil {
			return err
		}
		return r.add(0, -texts.Bytes())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.texts.Bytes() + texts.Bytes()
	r.texts.Append(texts)
	r.bytes += r.texts.Bytes() - before
	return nil
}

// Warn warns of fields whose index terms are not words, if the cluster says so.
func (x *indexReading) Warn(ctx context.Context) {
	for _, field := range x.Scan.Fields {
		if s, err := x.Client.Schema(ctx, x.Scan.Index, field); err == nil && s.NotWords != "" {
			x.Report.Tell("warning: the terms of field %s are no words, because of its %s: their neighbors are no related words. "+
				"Learn from a field that is analyzed into words. Searches of %s are expanded only if matrices.fields names it in full.", field, s.NotWords, field)
		}
	}
}

const wordsAtOnce = 5000

// Analyze returns the index terms of each word, from the analyzer of the
// fields.
func (x *indexReading) Analyze(ctx context.Context, words []string) ([][]string, error) {
	tokens, err := x.analyze(ctx, words)
	if err != nil {
		return nil, err
	}
	terms := make([][]string, len(tokens))
	for k := range tokens {
		terms[k] = tokensOf(tokens[k]).Terms
	}
	return terms, nil
}

// analyze returns the tokens of each text, and an error if the fields are not
// analyzed alike.
func (x *indexReading) analyze(ctx context.Context, texts []string) ([][]esclient.Token, error) {
	tokens := make([][]esclient.Token, 0, len(texts))
	for batch := range slices.Chunk(texts, wordsAtOnce) {
		x.Report.Step("analyzing words", len(tokens), len(texts))
		analyzed, err := x.Client.AnalyzeTexts(ctx, x.Scan.Index, x.Scan.Fields[0], batch)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, analyzed...)
	}
	x.Report.Step("analyzing words", len(tokens), len(texts))
	sample := texts[:min(len(texts), wordsAtOnce)]
	for _, field := range x.Scan.Fields[1:] {
		other, err := x.Client.AnalyzeTexts(ctx, x.Scan.Index, field, sample)
		if err != nil {
			return nil, err
		}
		for k := range sample {
			if a, b := tokensOf(tokens[k]).Terms, tokensOf(other[k]).Terms; !slices.Equal(a, b) {
				return nil, fmt.Errorf("the fields %s and %s are not analyzed alike (%q is %q and %q): build a matrix for each",
					x.Scan.Fields[0], field, sample[k], a, b)
			}
		}
	}
	return tokens, nil
}

// formDocs is how many documents [indexReading.SampleForms] reads at most.
const formDocs = 5000

// SampleForms reads a random choice of documents as texts. It returns them with
// the forms of their terms, for a corpus that was read as index terms. On an
// error it reports why and returns nil.
func (x *indexReading) SampleForms(ctx context.Context) *learn.Corpus {
	sample := *x
	sample.Terms, sample.Spool = false, ""
	if x.MaxDocs == 0 || x.MaxDocs > formDocs {
		sample.MaxDocs = formDocs
	}
	x.Report.Tell("the written forms of terms are learned from at most %d texts", sample.MaxDocs)
	var terms [][]string
	texts, _, err := sample.Texts(ctx)
	if err == nil {
		terms, err = sample.Analyze(ctx, texts.Words())
	}
	if err != nil {
		x.Report.Tell("note: terms are shown without their written forms: %v", err)
		return nil
	}
	return texts.Corpus(terms)
}

// LookUp asks the cluster for the terms of a matrix that stand for the
// words and expressions, and their document frequencies. With several
// fields it returns the largest frequencies and number of documents of any
// field.
func (x *indexReading) LookUp(ctx context.Context, words []string) (*combine.ProjectOptions, error) {
	readings, err := x.Readings(ctx, words)
	if err != nil {
		return nil, err
	}
	found := &combine.ProjectOptions{IndexTerms: make(map[string][]string, len(words))}
	var terms []string
	for k, word := range words {
		found.IndexTerms[word] = readings[k]
		for _, term := range readings[k] {
			terms = slices.AppendSeq(terms, simmatrix.WordsOf(term))
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	found.DocFreqs = make(map[string]uint32, len(terms))
	for _, field := range x.Scan.Fields {
		done := 0
		for batch := range slices.Chunk(terms, wordsAtOnce) {
			x.Report.Step("counting documents with "+field, done, len(terms))
			counts, n, err := x.Client.DocFreqs(ctx, x.Scan.Index, field, batch)
			if err != nil {
				return nil, err
			}
			found.Docs = max(found.Docs, uint64(max(n, 0)))
			for k, term := range batch {
				found.DocFreqs[term] = max(found.DocFreqs[term], uint32(min(max(counts[k], 0), math.MaxUint32)))
			}
			done += len(batch)
		}
	}
	return found, nil
}

// Readings returns the terms of a matrix that stand for each word or expression
// of words, by the analyzer of the fields. Several words of which the analyzer
// drops all but one, as it does with stop words, are none: of the terms of
// AT&T, without "at", there would be one, t.
func (x *indexReading) Readings(ctx context.Context, words []string) ([][]string, error) {
	texts := make([]string, len(words))
	for k, word := range words {
		texts[k] = word
		if simmatrix.IsExpression(word) {
			texts[k] = strings.Join(simmatrix.ExpressionTerms(word), " ")
		}
	}
	analyzed, err := x.analyze(ctx, texts)
	if err != nil {
		return nil, err
	}
	readings := make([][]string, len(words))
	for k, tokens := range analyzed {
		if slices.Contains(simmatrix.ExpressionTerms(words[k]), "") { // of index terms, with a gap that no text has
			readings[k] = words[k : k+1]
			continue
		}
		if len(tokens) > 0 && tokens[0].Position == tokens[len(tokens)-1].Position && !tokens[0].Spans(texts[k]) {
			inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
			if strings.Contains(strings.TrimSpace(texts[k]), " ") || strings.ContainsFunc(tokens[0].Before(texts[k]), inWord) {
				continue
			}
		}
		readings[k] = tokensOf(tokens).Readings()
	}
	return readings, nil
}

func tokensOf(tokens []esclient.Token) *simmatrix.Tokens {
	t := &simmatrix.Tokens{}
	for _, token := range tokens {
		t.Terms = append(t.Terms, token.Token)
		t.Positions = append(t.Positions, token.Position)
		t.Lengths = append(t.Lengths, token.Length)
	}
	return t
}
