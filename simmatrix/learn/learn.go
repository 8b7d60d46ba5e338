// Package learn makes term-similarity matrices from a corpus, by co-occurrence
// and latent semantic analysis, or from word vectors. The neighbors of a term
// are the nearest by cosine, found by an exact or an approximate search.
package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
)

// FromCorpus learns a matrix from documents. The vocabulary is the terms in at
// least MinDocFreq documents. Each has two unit vectors: from the positive
// pointwise mutual information of co-occurrence in a window, and from the
// weighted term-document matrix (latent semantic analysis), both reduced by a
// truncated singular value decomposition. Terms that begin with a digit, and
// those of [Corpus.OnlyContexts], are only contexts of others: their rows have
// a document frequency and no neighbors. Rarer terms are folded into the same
// spaces: they get rows with learned neighbors, but are nobody's neighbors.
// With cos the mean of the two cosines,
//
//	s_ij = max(0, cos(i,j))^Power
//
// for the Neighbors nearest terms j of each term i, without those that round to
// zero. Above 30,000 learned terms the search is approximate, as in
// [FromVectors] with a Recall of 0.95, and adds the same Params. Without
// Dimensions they are chosen by crowding, see [dimensionsFor]. Where these do
// not suffice, similarities are lowered, see [temper]. A Mix mixes in a
// language model, see [panels.mix]. Documents in any order, with the same
// options and kind of processor, give the same bytes. Errors are
// [simmatrix.ErrNoVocabulary], [simmatrix.ErrMemory], one for all options out
// of range, and that of ctx.
func FromCorpus(ctx context.Context, c *Corpus, opts CorpusOptions, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	l, err := Learn(ctx, c, opts, progress)
	if err != nil {
		return nil, err
	}
	return l.Matrix(ctx, opts.Neighbors, opts.Power, opts.Mix, progress)
}

// Learned has the vectors of the terms of a corpus, from which several matrices
// can be made.
type Learned struct {
	opts   CorpusOptions
	table  simmatrix.Table // without entries
	panels *panels         // the vectors, by term of the table, with place for those of a model
	own    int             // dimension of the vectors without a model
	// crowding is that of the vectors, see [vectorTable.crowding].
	crowding float64
	// candidates are the terms that may be neighbors, nil for all.
	candidates []uint32
	// contexts are the terms that are only contexts, with no place in table.
	contexts simmatrix.Table
}

// Learn does the part of [FromCorpus] that does not depend on Neighbors, Power
// and Mix. Its bound on memory holds for matrices with at most as many
// neighbors. Their Mix has the same Dim, or is nil.
func Learn(ctx context.Context, c *Corpus, opts CorpusOptions, progress simmatrix.Progress) (*Learned, error) {
	v, rare, room, err := c.prepare(&opts)
	if err != nil {
		return nil, err
	}
	v.order(c.sequence)
	if !opts.Copies {
		v.sequence = withoutCopies(v.sequence)
	}
	chosen := opts.Dimensions == 0
	opts.Dimensions = cmp.Or(opts.Dimensions, fewestDimensions)
	vectors, crowding, err := learnVectors(ctx, v, rare, room, progress)
	if err != nil {
		return nil, err
	}
	wanted := dimensionsFor(crowding, opts.Dimensions)
	more := opts.Dimensions
	if chosen {
		more, room = c.affordable(v, rare, wanted, &opts)
	}
	if more > opts.Dimensions {
		opts.Dimensions = more
		if vectors, crowding, err = learnVectors(ctx, v, rare, room, progress); err != nil {
			return nil, err
		}
	}
	l := &Learned{opts: opts, crowding: crowding}
	m := &l.table
	m.Meta = simmatrix.Meta{Source: opts.Source, Params: map[string]string{}, Docs: v.docs}
	m.Meta.Params[simmatrix.CrowdingParam] = strconv.FormatFloat(crowding, 'f', 3, 64)
	if wanted > opts.Dimensions {
		m.Meta.Params[simmatrix.WantedDimensionsParam] = strconv.Itoa(wanted)
	}
	if len(rare.terms) > 0 {
		m.Meta.Params["rare_terms"] = strconv.Itoa(len(rare.terms))
	}
	m.Terms = slices.Concat(v.terms[:v.rows], rare.terms)
	slices.Sort(m.Terms)
	l.own = vectors.dim
	l.panels = newPanels(l.own+opts.modelDim(), len(m.Terms))
	for i, t := range m.Terms {
		id := c.ids[t]
		m.DocFreqs = append(m.DocFreqs, c.docFreqs[id])
		if at := v.indices[id]; at != absent {
			l.panels.add(uint32(i), vectors.row(int(at)))
			l.candidates = append(l.candidates, uint32(i))
		} else {
			at, _ := slices.BinarySearch(rare.terms, t)
			l.panels.add(uint32(i), rare.vectors.row(at))
		}
	}
	rare.vectors = vectorTable{} // the panels have them
	if len(rare.terms) == 0 {
		l.candidates = nil
	}
	l.contexts.Terms, l.contexts.DocFreqs = v.terms[v.rows:], v.docFreqs[v.rows:]
	for _, t := range []*simmatrix.Table{m, &l.contexts} {
		t.TakeForms(func(i int) string { return c.form(t.Terms[i]) })
	}
	return l, nil
}

// Matrix returns the matrix that [FromCorpus] returns with the options of
// [Learn] and these. mix may be nil. It is not for concurrent use.
func (l *Learned) Matrix(ctx context.Context, neighbors int, power float64, mix *Mix, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	o := l.opts
	o.Neighbors = neighbors
	o.Power = power
	o.Mix = mix
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m := l.table
	m.Meta.Params = o.params()
	maps.Copy(m.Meta.Params, l.table.Meta.Params)
	search := nearestOptions{neighbors: neighbors, power: power, candidates: l.candidates}
	vectors := l.panels.part(0, l.own)
	var err error
	if mix != nil {
		vectors = l.panels
		m.Meta.Origins = []string{"documents", cmp.Or(mix.Origin, "model")}
		if search.mixed, err = vectors.mix(ctx, mix, l.own, search, m.Terms, progress); err != nil {
			return nil, err
		}
	}
	if cmp.Or(len(l.candidates), len(m.Terms)) <= exactTerms {
		m.Entries, err = vectors.nearest(ctx, search, simmatrix.NewStage(progress, "neighbors", len(m.Terms)))
	} else {
		var how approximation
		m.Entries, how, err = vectors.nearestApproximately(ctx, search, corpusRecall, progress)
		how.describe(m.Meta.Params)
	}
	if err != nil {
		return nil, err
	}
	if l.crowding > simmatrix.LargestCrowding {
		m.Meta.Params["tempered_rows"] = strconv.Itoa(temper(&m.Entries, power))
	}
	whole := withEmptyRows(&m, &l.contexts)
	return whole.Matrix()
}

// withEmptyRows returns m with the terms of others, of which it has none, as
// terms without neighbors. It changes the entries of m.
func withEmptyRows(m, others *simmatrix.Table) simmatrix.Table {
	all := simmatrix.Table{Meta: m.Meta, Entries: m.Entries}
	all.Offsets = make([]int, 1, len(m.Terms)+len(others.Terms)+1)
	columns := make([]uint32, len(m.Terms)) // the new ones
	column := uint32(0)
	var forms []string
	i, k := 0, 0 // in the terms of both
	for i < len(m.Terms) || k < len(others.Terms) {
		from, at := others, k
		if k == len(others.Terms) || i < len(m.Terms) && m.Terms[i] < others.Terms[k] {
			from, at = m, i
			columns[i] = column
			i++
		} else {
			k++
		}
		column++
		term := from.Terms[at]
		all.Terms, all.DocFreqs = append(all.Terms, term), append(all.DocFreqs, from.DocFreqs[at])
		all.Offsets = append(all.Offsets, m.Offsets[i])
		forms = append(forms, cmp.Or(from.Form(term), term))
	}
	all.TakeForms(func(i int) string { return forms[i] })
	for n, col := range all.Cols {
		all.Cols[n] = columns[col]
	}
	return all
}

// Vocabulary returns the terms that [FromCorpus] gives rows, in ascending byte
// order, and the same errors, also [simmatrix.ErrMemory] for the Dim of a Mix.
// It does not need the Mix's Vector.
func (c *Corpus) Vocabulary(o *CorpusOptions) ([]string, error) {
	v, rare, _, err := c.prepare(o)
	if err != nil {
		return nil, err
	}
	terms := slices.Concat(v.terms[:v.rows], rare.terms)
	slices.Sort(terms)
	return terms, nil
}

// A Plan says how many terms [FromCorpus] learns.
type Plan struct {
	Distinct int // terms in the documents
	Learned  int // with rows
	Contexts int // numbers and others that are only contexts
	Rare     int // with rows, but nobody's neighbors
}

// Plan returns what [FromCorpus] is going to learn, and the same errors.
func (c *Corpus) Plan(o *CorpusOptions) (Plan, error) {
	v, rare, _, err := c.prepare(o)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Distinct: len(c.terms), Learned: v.rows, Contexts: len(v.terms) - v.rows, Rare: len(rare.terms)}, nil
}

// prepare returns the learned terms, the rare ones, and how many bytes the
// entries of sparse matrices may take.
func (c *Corpus) prepare(o *CorpusOptions) (v *vocabulary, rare *rareTerms, room int64, err error) {
	if err = errors.Join(o.Validate(), c.checkMemory(o.MaxMemory)); err != nil {
		return nil, nil, 0, err
	}
	if v, err = c.vocabulary(o.MinDocFreq, o.MaxTerms); err != nil {
		return nil, nil, 0, err
	}
	rare = c.rareTerms(v, o)
	room, err = memoryRoom(c, v, len(rare.terms), cmp.Or(o.Dimensions, fewestDimensions), o)
	return v, rare, room, err
}

// learnVectors returns the vectors of the vocabulary with their crowding, and
// sets those of the rare terms. The entries of a sparse matrix may take room
// bytes.
func learnVectors(ctx context.Context, v *vocabulary, rare *rareTerms, room int64, progress simmatrix.Progress) (*vectorTable, float64, error) {
	opts, table := rare.opts, &vectorTable{rows: len(v.terms)}
	rare.vectors = vectorTable{rows: len(rare.terms)}
	const length = math.Sqrt2 / 2 // makes the dot product the mean of the two cosines
	for _, part := range []struct {
		contexts       bool
		entries, stage string
		sigmaPower     float64
		stream         uint64
		make           func() (*sparse, error)
	}{
		{true, "co-occurrences", "co-occurrence vectors", 0.5, 1, func() (*sparse, error) {
			return v.ppmi(ctx, opts, room, simmatrix.NewStage(progress, "co-occurrence", len(v.terms)))
		}},
		{false, "occurrences in documents", "document vectors", 1, 2, func() (*sparse, error) {
			return v.termDocuments(ctx, room, nil)
		}},
	} {
		a, err := part.make()
		if err != nil {
			return nil, 0, explain(err, part.entries, opts.MaxMemory)
		}
		v.entries = max(v.entries, a.bytes())
		random := rand.New(rand.NewPCG(opts.Seed, part.stream)) //nolint:gosec // has to give the same numbers every time
		// The vectors are a's right singular vectors.
		gram := Symmetric{Size: a.cols, Rank: a.rows, Multiply: a.gram}
		axes, sigma, err := Leading(ctx, gram, opts.Dimensions, random, simmatrix.NewStage(progress, part.stage, Products))
		if err != nil {
			return nil, 0, err
		}
		fill, space := rare.fillDocuments, axes // it makes a row of a for a document
		if part.contexts && len(rare.terms) > 0 {
			fill = rare.fillContexts
			if space, err = a.times(ctx, axes); err != nil {
				return nil, 0, err
			}
		}
		if err := rare.fold(ctx, space, fill, sigma, part.sigmaPower, length, progress); err != nil {
			return nil, 0, err
		}
		table.addPart(axes, sigma, part.sigmaPower, length)
	}
	crowding, err := table.crowding(ctx, v.rows)
	return table, crowding, err
}

// checkMemory returns an error if the documents take more than limit, unless 0.
func (c *Corpus) checkMemory(limit int64) error {
	const view = 24 // per document, to sort them
	need := c.Bytes() + 2*4*int64(len(c.sequence)) + view*int64(min(c.docs, math.MaxInt32))
	if limit == 0 || need <= limit {
		return nil
	}
	return fmt.Errorf("%w: %d documents take about %s of %s: lower the number of documents", simmatrix.ErrMemory, c.docs, megabytes(need), megabytes(limit))
}

// memoryRoom returns how many bytes the entries of sparse matrices may take,
// given an estimate of everything else. They are counted as they are made.
func memoryRoom(c *Corpus, v *vocabulary, rareTerms, dimensions int, o *CorpusOptions) (int64, error) {
	if o.MaxMemory == 0 {
		return math.MaxInt64, nil
	}
	const parts = 2 // of a vector
	terms := int64(len(v.terms))
	rare := int64(rareTerms)
	dim := int64(dimensions)
	rows := int64(v.rows) + rare
	corpus := c.Bytes() + 2*4*int64(len(c.sequence)) + 24*terms + 64*rare // with the places of terms
	// Two bases in float64, panels of each processor, sums of cross products, and
	// old and wider vectors.
	width := dim + oversampling
	processors := min(int64(runtime.GOMAXPROCS(0)), width/panelWidth+1)
	decomposition := terms*(8*(2*width+dim)+processors*2*8*panelWidth+4*(2*parts-1)*dim) + crossParts*8*width*width
	// The space and what is projected onto it in float64, and the vectors.
	folding := terms*(2*8*dim+4*parts*dim) + rare*(8*dim+4*(2*parts-1)*dim)
	decomposition = max(decomposition, folding)
	// Panels with the vectors of the model, and beside them vectors in rows, of the
	// corpus or of the model; or those of the model, entries with origins, and
	// either the panels of the learned terms or the columns without gaps.
	model, neighbors := int64(o.modelDim()), int64(o.Neighbors)
	both := 4 * (parts*dim + model) // of a term
	search := rows*both + max(rows*4*max(parts*dim, model), rows*(4*model+7*neighbors)+max(terms*both, rows*4*neighbors))
	// The entries of the fewest dimensions were made before.
	if need := corpus + max(decomposition+v.entries, search); need > o.MaxMemory {
		return 0, fmt.Errorf("%w: documents and vectors of %d terms take about %s of %s: "+
			"lower the number of terms, dimensions, neighbors or documents, or raise the smallest document frequency",
			simmatrix.ErrMemory, terms, megabytes(need), megabytes(o.MaxMemory))
	}
	return o.MaxMemory - corpus - decomposition, nil
}
