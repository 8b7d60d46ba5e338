package learn

import (
	"cmp"
	"errors"
	"math"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// maxWindow limits [CorpusOptions.Window], see windowUnits.
const maxWindow = 6

// defaultContextPower keeps rare contexts from having the largest associations
// (Levy, Goldberg and Dagan, 2015, section 3.1).
const defaultContextPower = 0.75

// CorpusOptions are the settings of [FromCorpus].
type CorpusOptions struct {
	Source     string // becomes Meta.Source: in words, the origin of the documents
	MinDocFreq int    // smallest document frequency of a term that is learned and may be a neighbor, at least 1
	// MaxTerms limits the terms that are learned, to those in most documents, from
	// 1 to [simmatrix.MaxTerms]. It bounds the time and the memory of learning.
	MaxTerms int
	// RareTerms also gives rows to other terms, those in most documents first, up
	// to twice as many as are learned and no more than MaxTerms.
	RareTerms    bool
	Dimensions   int     // of each part of the term vectors, 1 to 1000; 0 chooses them, see [dimensionsFor]
	Window       int     // largest distance at which two terms co-occur, 1 to 6
	ContextPower float64 // α, to which context frequencies are raised, in (0, 1]
	// Copies has passages count as often as they occur, see [withoutCopies].
	Copies    bool
	Neighbors int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
	Power     float64 // p in s = max(0, cos)^p, above 0
	Seed      uint64  // of the random projection of the singular value decomposition
	// MaxMemory limits, roughly and in bytes, the memory of the corpus and all
	// learned from it; 0 means no limit. It does not change the result.
	MaxMemory int64
	Mix       *Mix // of a language model; may be nil
}

// ModelShareParam is the name, in [simmatrix.Meta], of the α of a matrix with a
// language model mixed in, beside [simmatrix.ModelParam].
const ModelShareParam = "model_share"

// A Mix has a language model's vectors for the terms of a corpus.
type Mix struct {
	Model  string  // source of the vectors, in words
	Origin string  // names it as the origin of entries; "" is "model"
	Share  float64 // α in (0, 1), the weight of the model
	// Vector returns the vector of a term, of length Dim, read-only; nil if the
	// model does not know the term.
	Vector func(term string) []float32
	Dim    int
}

// DefaultCorpusOptions returns the settings that improved ranking most over
// five judged collections.
func DefaultCorpusOptions() CorpusOptions {
	return CorpusOptions{
		Source: "documents", MinDocFreq: 3, MaxTerms: 80_000, RareTerms: true, Window: 5, ContextPower: defaultContextPower,
		Neighbors: 200, Power: usualPower, Seed: 1,
	}
}

// Validate returns all errors in the settings.
func (o *CorpusOptions) Validate() error {
	var errs []error
	if o.Mix != nil {
		errs = append(errs, settings.InUnit("model share", o.Mix.Share, "(0, 1)"))
	}
	return errors.Join(append(errs,
		settings.InUnit("context power", o.ContextPower, "(0, 1]"),
		settings.NotNegative("max memory", o.MaxMemory),
		settings.InRange("min doc freq", o.MinDocFreq, math.MaxInt32),
		settings.InRange("max terms", o.MaxTerms, simmatrix.MaxTerms),
		settings.InRange("dimensions", cmp.Or(o.Dimensions, fewestDimensions), mostDimensions),
		settings.InRange("window", o.Window, maxWindow),
		settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors),
		settings.Positive("power", o.Power),
	)...)
}

// modelDim returns the dimension of the vectors that are mixed in, 0 for none.
func (o *CorpusOptions) modelDim() int {
	if o.Mix == nil {
		return 0
	}
	return o.Mix.Dim
}

func (o *CorpusOptions) params() map[string]string {
	p := map[string]string{
		"min_doc_freq":       strconv.Itoa(o.MinDocFreq),
		"dimensions":         strconv.Itoa(o.Dimensions),
		"neighbors":          strconv.Itoa(o.Neighbors),
		"window":             strconv.Itoa(o.Window),
		"context_power":      settings.FormatFloat(o.ContextPower),
		simmatrix.PowerParam: settings.FormatFloat(o.Power),
		"seed":               strconv.FormatUint(o.Seed, 10),
	}
	if o.Mix != nil {
		p[simmatrix.ModelParam], p[ModelShareParam] = o.Mix.Model, settings.FormatFloat(o.Mix.Share)
	}
	return p
}
