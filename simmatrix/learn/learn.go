// Package learn makes term-similarity matrices from a corpus, by co-occurrence
// and latent semantic analysis, or from word vectors: each term's nearest
// neighbors by the cosine, found by an exact or an approximate search.
package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// FromCorpus learns a matrix from documents. The vocabulary is the MaxTerms
// most frequent terms that occur in MinDocFreq documents. Each has two vectors
// of unit length, from the positive pointwise mutual information of
// co-occurrence in a window and from the weighted term-document matrix (latent
// semantic analysis), both reduced by a truncated singular value decomposition.
// Terms that start with a digit are only a context for others. Rarer terms are
// folded into the same spaces: they get rows, of neighbors that are learned,
// and are nobody's neighbors. With cos the mean of the two cosines, or the one
// that Parts asks for,
//
//	s_ij = max(0, cos(i,j))^Power
//
// for the Neighbors nearest terms j of each term i, without those that round to
// zero. Documents in any order, with the same options and on the same kind of
// processor, give the same bytes. Errors are [simmatrix.ErrNoVocabulary],
// [simmatrix.ErrMemory], one for all options out of range, and that of ctx.
func FromCorpus(ctx context.Context, c *Corpus, opts CorpusOptions, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := c.checkMemory(opts.MaxMemory); err != nil {
		return nil, err
	}
	v, err := c.vocabulary(opts.MinDocFreq, opts.MaxTerms)
	if err != nil {
		return nil, err
	}
	rare := c.rareTerms(v, &opts)
	room, err := memoryRoom(c, v, len(rare.terms), &opts)
	if err != nil {
		return nil, err
	}
	l := learner{vocabulary: v, opts: &opts, room: room, progress: progress, rare: rare}
	vectors, err := l.vectors(ctx)
	if err != nil {
		return nil, err
	}
	m := &simmatrix.Table{Meta: simmatrix.Meta{Source: opts.Source, Params: opts.params(), Docs: v.docs}}
	if len(rare.terms) > 0 {
		m.Meta.Params["rare_terms"] = strconv.Itoa(len(rare.terms))
	}
	m.Terms = slices.Concat(v.terms[:v.rows], rare.terms)
	slices.Sort(m.Terms)
	p, search := newPanels(vectors.dim, len(m.Terms)), nearestOptions{neighbors: opts.Neighbors, power: opts.Power}
	for i, t := range m.Terms {
		id := c.ids[t]
		m.DocFreqs = append(m.DocFreqs, c.docFreqs[id])
		if at := v.indices[id]; at != absent {
			p.add(uint32(i), vectors.row(int(at)))
			search.candidates = append(search.candidates, uint32(i))
		} else {
			at, _ := slices.BinarySearch(rare.terms, t)
			p.add(uint32(i), rare.vectors.row(at))
		}
	}
	if len(rare.terms) == 0 {
		search.candidates = nil // all
	}
	m.TakeForms(func(term string) string { return c.forms[term] })
	m.Entries, err = p.nearest(ctx, search, parallel.NewStage(progress, "neighbors", len(m.Terms)))
	if err != nil {
		return nil, err
	}
	return m.Matrix()
}

type learner struct {
	*vocabulary
	opts     *CorpusOptions
	room     int64 // bytes of the entries of a sparse matrix
	progress simmatrix.Progress
	rare     *rareTerms
}

func (l *learner) vectors(ctx context.Context) (*vectorTable, error) {
	table := &vectorTable{rows: len(l.terms)}
	length := 1.0
	if l.opts.Parts == BothParts {
		length = math.Sqrt2 / 2
	}
	for _, part := range []struct {
		not            Parts // that leaves it out
		entries, stage string
		sigmaPower     float64
		stream         uint64
		make           func() (*sparse, error)
	}{
		{DocumentsPart, "co-occurrences", "co-occurrence vectors", 0.5, 1, func() (*sparse, error) {
			return l.ppmi(ctx, l.opts, l.room, parallel.NewStage(l.progress, "co-occurrence", len(l.terms)))
		}},
		{CooccurrencePart, "occurrences in documents", "document vectors", 1, 2, func() (*sparse, error) {
			return l.termDocuments(ctx, l.room, nil)
		}},
	} {
		if l.opts.Parts == part.not {
			continue
		}
		a, err := part.make()
		if err != nil {
			return nil, l.explain(err, part.entries)
		}
		random := rand.New(rand.NewPCG(l.opts.Seed, part.stream)) //nolint:gosec // has to give the same numbers every time
		v, sigma, err := truncatedSVD(ctx, a, l.opts.Dimensions, random, parallel.NewStage(l.progress, part.stage, Products))
		if err != nil {
			return nil, err
		}
		if err := l.fold(ctx, a, v, sigma, part.sigmaPower, length, part.not == DocumentsPart); err != nil {
			return nil, err
		}
		table.addPart(v, sigma, part.sigmaPower, length)
	}
	return table, nil
}

// Parts says which vectors [FromCorpus] learns from.
type Parts string

// The parts.
const (
	BothParts        Parts = "both"         // the mean of the two cosines
	CooccurrencePart Parts = "cooccurrence" // co-occurrence in a window
	DocumentsPart    Parts = "documents"    // the term-document matrix
)

// CorpusOptions are the settings of [FromCorpus].
type CorpusOptions struct {
	Source     string // becomes Meta.Source: in words, where the documents come from
	MinDocFreq int    // the smallest document frequency of a term that is learned and may be a neighbor, at least 1
	// RareTerms gives rows to terms in fewer documents, too, up to twice as many
	// as are learned and to MaxTerms in all, those in most documents first.
	RareTerms bool
	// MaxTerms keeps the most frequent terms, those that are only a context
	// included, ties by term in byte order; 0 is no bound.
	MaxTerms     int
	Parts        Parts   // which vectors are learned
	Dimensions   int     // of each part of the term vectors, 1 to 1000
	Window       int     // how many terms apart two terms may be to co-occur, 1 to 6
	ContextPower float64 // α, to which context frequencies are raised, in (0, 1]
	// Shift, at least 0, is subtracted from the pointwise mutual information
	// before negative values are cut off: ln k has the effect of k negative
	// samples (Levy and Goldberg, 2014).
	Shift float64
	// MinCooccurrence, at least 0, is the smallest Σ 1/distance over all the
	// places where two terms meet that counts as co-occurring.
	MinCooccurrence float64
	Neighbors       int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
	Power           float64 // p in s = max(0, cos)^p, above 0
	Seed            uint64  // of the random projection of the singular value decomposition
	// MaxMemory bounds in bytes, roughly, what the corpus and all learned from
	// it take at once; 0 is no bound. It changes no result.
	MaxMemory int64
}

// DefaultCorpusOptions returns the settings that raised the ranking quality
// most over five judged collections.
func DefaultCorpusOptions() CorpusOptions {
	return CorpusOptions{
		Source: "documents", MinDocFreq: 3, RareTerms: true, Parts: BothParts, Dimensions: 100, Window: 5, ContextPower: defaultContextPower,
		Neighbors: 200, Power: 3, Seed: 1,
	}
}

// Validate reports every setting that is out of range.
func (o *CorpusOptions) Validate() error {
	var errs []error
	if names := []Parts{BothParts, CooccurrencePart, DocumentsPart}; !slices.Contains(names, o.Parts) {
		errs = append(errs, fmt.Errorf("parts: %q is none of %q", o.Parts, names))
	}
	if !(o.Shift >= 0 && !math.IsInf(o.Shift, 1)) { // written so that NaN fails, as below
		errs = append(errs, fmt.Errorf("shift: %v is no number from 0 up", o.Shift))
	}
	if !(o.MinCooccurrence >= 0 && o.MinCooccurrence <= math.MaxInt32) {
		errs = append(errs, fmt.Errorf("min co-occurrence: %v not in [0, 2147483647]", o.MinCooccurrence))
	}
	return errors.Join(append(errs,
		settings.NotNegative("max terms", o.MaxTerms),
		settings.InUnit("context power", o.ContextPower, "(0, 1]"),
		settings.NotNegative("max memory", o.MaxMemory),
		settings.InRange("min doc freq", o.MinDocFreq, math.MaxInt32),
		settings.InRange("dimensions", o.Dimensions, 1000),
		settings.InRange("window", o.Window, maxWindow),
		settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors),
		settings.Positive("power", o.Power),
	)...)
}

func (o *CorpusOptions) params() map[string]string {
	p := map[string]string{
		"min_doc_freq": strconv.Itoa(o.MinDocFreq),
		"parts":        string(o.Parts),
		"dimensions":   strconv.Itoa(o.Dimensions),
		"neighbors":    strconv.Itoa(o.Neighbors),
		"power":        settings.FormatFloat(o.Power),
		"seed":         strconv.FormatUint(o.Seed, 10),
	}
	if o.MaxTerms > 0 {
		p["max_terms"] = strconv.Itoa(o.MaxTerms)
	}
	if o.Parts != DocumentsPart {
		p["window"] = strconv.Itoa(o.Window)
		p["context_power"] = settings.FormatFloat(o.ContextPower)
		p["shift"] = settings.FormatFloat(o.Shift)
		p["min_cooccurrence"] = settings.FormatFloat(o.MinCooccurrence)
	}
	return p
}

type oversize struct{ need, room int64 }

// Error implements error.
func (o *oversize) Error() string {
	return fmt.Sprintf("entries of about %s, room for %s", megabytes(o.need), megabytes(o.room))
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", max(n, 0)>>20) }

// checkMemory reports whether the documents take more than limit, if any.
func (c *Corpus) checkMemory(limit int64) error {
	const view = 24 // of a document, to sort them
	need := c.Bytes() + 2*4*int64(len(c.sequence)) + view*int64(min(c.docs, math.MaxInt32))
	if limit == 0 || need <= limit {
		return nil
	}
	return fmt.Errorf("%w: %d documents take about %s of %s: lower the number of documents", simmatrix.ErrMemory, c.docs, megabytes(need), megabytes(limit))
}

// memoryRoom returns how many bytes the entries of the sparse matrices may
// take, which are counted as they are made, by an estimate of all else.
func memoryRoom(c *Corpus, v *vocabulary, rareTerms int, o *CorpusOptions) (int64, error) {
	if o.MaxMemory == 0 {
		return math.MaxInt64, nil
	}
	terms, rare, dim, parts := int64(len(v.terms)), int64(rareTerms), int64(o.Dimensions), int64(1)
	rows := int64(v.rows) + rare
	if o.Parts == BothParts {
		parts = 2
	}
	corpus := c.Bytes() + 2*4*int64(cap(v.sequence)) + 24*terms + 64*rare // with the places of the terms
	// Two bases and the result in float64, the panels of each processor, and the vectors, old and wider.
	width := dim + oversampling
	processors := min(int64(runtime.GOMAXPROCS(0)), width/panelWidth+1)
	decomposition := terms * (8*(2*width+dim) + processors*2*8*panelWidth + 4*(2*parts-1)*dim)
	// The space and what is projected on it in float64, and the vectors.
	folding := terms*(2*8*dim+4*parts*dim) + rare*(8*dim+4*(2*parts-1)*dim)
	decomposition = max(decomposition, folding)
	// The vectors, in rows and twice in panels, and the entries, with and without gaps.
	search := terms*4*parts*dim + rows*(2*4*parts*dim+2*6*int64(o.Neighbors))
	if need := corpus + max(decomposition, search); need > o.MaxMemory {
		return 0, fmt.Errorf("%w: documents and vectors of %d terms take about %s of %s: "+
			"lower the number of terms, dimensions, neighbors or documents, or raise the smallest document frequency",
			simmatrix.ErrMemory, terms, megabytes(need), megabytes(o.MaxMemory))
	}
	return o.MaxMemory - corpus - decomposition, nil
}

// explain turns an oversize of the named entries into a [simmatrix.ErrMemory].
func (l *learner) explain(err error, entries string) error {
	o, ok := errors.AsType[*oversize](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%w: the %s take about %s, %s of %s are left for them: lower the number of documents or of terms, "+
		"or raise the smallest document frequency or co-occurrence",
		simmatrix.ErrMemory, entries, megabytes(o.need), megabytes(o.room), megabytes(l.opts.MaxMemory))
}
