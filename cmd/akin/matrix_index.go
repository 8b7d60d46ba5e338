package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
)

type indexFlags struct {
	query, resume        string
	maxMemory            string
	sample               string // --max-docs
	maxDocs              int    // 0 for all
	words, exactAnalysis bool
	options              learn.CorpusOptions
	memory               configs.Bytes // maxMemory in bytes; 0 for no limit
	spooled              *spool        // kept until the matrix is written
	embeddings           embeddingFlags
	found                foundFlags
	dimensions           string
}

func (d *indexFlags) register(flags *pflag.FlagSet) {
	cli.Renamed(flags, "from-index", "--cluster")
	flags.StringVar(&d.resume, "resume", "", "keep what was read in this folder until the matrix is written, so that an interrupted build can continue")
	d.registerReading(flags)
	d.embeddings.register(flags)
}

// registerReading adds the flags that say what is read and how.
func (d *indexFlags) registerReading(flags *pflag.FlagSet) {
	d.options = learn.DefaultCorpusOptions()
	flags.StringVar(&d.query, "query", "", `learn from the documents that match this query, as JSON, such as '{"term":{"lang":"en"}}'; default all`)
	flags.StringVar(&d.sample, "max-docs", auto,
		"learn from at most this many documents, the same random choice every time; 0 for all; "+auto+" takes as many as have about 20 million words")
	flags.BoolVar(&d.words, "words", false, "use the words in lower case instead of the field's index terms")
	flags.BoolVar(&d.exactAnalysis, "exact-analysis", false,
		"let the cluster analyze whole documents, for analyzers that look at several words; slower")
	flags.StringVar(&d.dimensions, "dimensions", auto,
		"dimensions of the vectors of words, 1 to 1000; "+auto+" takes 100, and more where the words crowd in them, as in large and mixed indices")
	flags.StringVar(&d.maxMemory, "max-memory", "", "memory limit, such as 3GB; default 2GiB, 4GiB with --embeddings, and none with a number for --max-docs")
	d.found.register(flags)
}

// auto is the value of flags that lets the documents decide.
const auto = "auto"

// Defaults of --max-memory for a sample of any index.
const usualMemory, embeddingsMemory = "2GiB", "4GiB"

// Shares of --max-memory. The rest is for garbage and memory outside the heap.
const (
	learningShare   = 0.7               // for the data of learning
	readingShare    = learningShare / 2 // for texts while reading; learning needs twice as much
	collectingShare = 0.9               // the limit of the garbage collector
)

// parseMemory parses --max-memory. The process itself needs some of it.
func parseMemory(text string) (configs.Bytes, error) {
	memory, err := configs.ParseBytes(text)
	if err == nil && memory < 64<<20 {
		err = errors.New("at least 64MiB")
	}
	if err != nil {
		err = fmt.Errorf("--max-memory: %w", err)
	}
	return memory, err
}

func (d *indexFlags) check(f *matrixFlags) error {
	var errs []error
	fail := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	fail(!f.field.known(), "give --cluster, --index and --field, or a configuration that has them")
	if d.sample != auto {
		var err error
		d.maxDocs, err = strconv.Atoi(d.sample)
		fail(err != nil || d.maxDocs < 0, fmt.Sprintf("--max-docs: %q is neither %s nor a number from 0", d.sample, auto))
	}
	fail(d.words && d.exactAnalysis, "--words does not go with --exact-analysis")
	if scan := d.scan(&f.field); len(scan.Fields) > 0 {
		if err := scan.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("the index: %w", err))
		}
	}
	var err error
	if d.maxMemory == "" && d.sample == auto {
		d.maxMemory = usualMemory
		if d.embeddings.url != "" {
			d.maxMemory = embeddingsMemory
		}
	}
	if d.maxMemory != "" {
		d.memory, err = parseMemory(d.maxMemory)
		errs = append(errs, err)
	}
	if d.dimensions != auto {
		if d.options.Dimensions, err = strconv.Atoi(d.dimensions); err != nil || d.options.Dimensions == 0 {
			errs = append(errs, fmt.Errorf("--dimensions: %q is neither %s nor a number from 1 to 1000", d.dimensions, auto))
		}
	}
	if d.resume != "" {
		errs = append(errs, checkSpool(d.resume))
	}
	d.options.MaxMemory = int64(learningShare * float64(d.memory))
	d.options.Power, d.options.Neighbors = cmp.Or(f.power, d.options.Power), f.rows.searched()
	if f.terms.MinDocFreq > 0 { // rarer terms are not neighbors, but have rows
		d.options.MinDocFreq, f.terms.MinDocFreq = int(f.terms.MinDocFreq), 0
	}
	// The entries of rare terms have no mirrored entries. Symmetry would drop
	// them, or make rare terms neighbors.
	d.options.RareTerms = !f.rows.Symmetric
	return errors.Join(append(errs, d.options.Validate())...)
}

// scan returns which documents are read: all that match.
func (d *indexFlags) scan(field *fieldFlags) documents.ScanOptions {
	o := documents.ScanOptions{Index: field.Index, Fields: field.fields}
	if d.query != "" {
		o.Query = []byte(d.query)
	}
	return o
}

func (d *indexFlags) build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	client, err := f.field.Open()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer d.limitMemory()()
	var m *simmatrix.Matrix
	corpus, err := d.corpus(ctx, &f.field, client, report)
	if err == nil {
		m, err = learnMatrix(ctx, corpus, d.options, report)
	}
	if err == nil {
		tellRecall(m, report)
		m, err = d.found.add(m, corpus)
	}
	return m, d.advise(err)
}

// limitMemory sets the limit of the garbage collector for --max-memory, until
// the result is called.
func (d *indexFlags) limitMemory() (restore func()) {
	if d.memory == 0 {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(collectingShare * float64(d.memory)))
	return func() { debug.SetMemoryLimit(before) }
}

// corpus reads the documents, and sets the source and the mix of d.options.
func (d *indexFlags) corpus(ctx context.Context, field *fieldFlags, client *esclient.Client, report *cli.Progress) (*learn.Corpus, error) {
	x := &indexReading{
		Client: client, Scan: d.scan(field), MaxDocs: d.maxDocs, Terms: d.exactAnalysis, Spool: d.resume,
		Memory: int64(readingShare * float64(d.memory)), Report: report,
	}
	x.Warn(ctx)
	if d.sample == auto {
		size, err := x.SampleSize(ctx, sampleWords, probeDocs)
		if err != nil {
			return nil, err
		}
		x.MaxDocs, d.maxDocs = size, size
	}
	corpus, err := d.read(ctx, x)
	if err != nil {
		return nil, err
	}
	d.options.Source = d.describe(field)
	switch {
	case d.embeddings.url != "":
		if _, _, err = readOwnWords(corpus); err == nil { // its function words are left out
			err = d.embeddings.mix(ctx, corpus, &d.options, client, report)
		}
	case d.embeddings.builtin == builtinModel:
		err = mixOwnWords(corpus, &d.options, d.embeddings.share, report)
	}
	if err == nil {
		err = tellPlan(corpus, &d.options, report)
	}
	return corpus, err
}

// advise says which flags to change if the memory does not suffice.
func (d *indexFlags) advise(err error) error {
	if errors.Is(err, simmatrix.ErrMemory) {
		return fmt.Errorf("%w (--max-memory %s minus a share for garbage; "+
			"--min-df, --max-docs and --top are the flags to change)", err, d.maxMemory)
	}
	return err
}

// tellPlan says how many terms are going to be learned.
func tellPlan(corpus *learn.Corpus, o *learn.CorpusOptions, report *cli.Progress) error {
	plan, err := corpus.Plan(o)
	if err != nil {
		return err
	}
	report.Tell("%d distinct terms: learning %d, with %d numbers and function words as contexts, and giving rows to %d rare ones", plan.Distinct, plan.Learned, plan.Contexts, plan.Rare)
	if plan.Learned+plan.Contexts == o.MaxTerms {
		report.Tell("these are the most frequent terms: at most %d are learned, so that an index of any size takes bounded time and memory", o.MaxTerms)
	}
	return nil
}

func (d *indexFlags) describe(field *fieldFlags) string {
	s := "index " + field.Index + ", field " + strings.Join(field.fields, ", ")
	if d.query != "" {
		s += ", documents that match " + d.query
	}
	if d.maxDocs > 0 {
		s += ", at most " + strconv.Itoa(d.maxDocs) + " of them"
	}
	switch {
	case d.words:
		s += ", words in lower case"
	case d.exactAnalysis:
		s += ", analyzed whole"
	}
	return s
}

// read reads the documents once. It returns them as index terms, or as words
// with --words.
func (d *indexFlags) read(ctx context.Context, x *indexReading) (_ *learn.Corpus, err error) {
	texts, spool, err := x.Texts(ctx)
	if err != nil {
		return nil, err
	}
	d.spooled = spool
	var terms [][]string
	switch words := texts.Words(); {
	case d.exactAnalysis: // the words are already index terms
		corpus := texts.Corpus(nil)
		if sample := x.SampleForms(ctx); sample != nil {
			corpus.TakeForms(sample)
		}
		return corpus, nil
	case d.words:
		terms = make([][]string, len(words))
		for k, word := range words {
			terms[k] = []string{strings.ToLower(word)}
		}
	default:
		if terms, err = x.Analyze(ctx, words); err != nil {
			return nil, err
		}
		corpus := texts.Corpus(terms)
		return corpus, d.found.find(ctx, x, texts, terms, corpus)
	}
	return texts.Corpus(terms), nil
}
