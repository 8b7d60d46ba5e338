package evaluate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// A Setting is one way to rewrite searches.
type Setting struct {
	Profile expand.Profile
	// Shape is what is made of the matrices before.
	Shape Shape
}

// A Shape says how the matrix of a setting comes from those that are there.
type Shape struct {
	// Weights are what the matrices count for in their weighted mean, in their
	// order; those at 0 are left out. It is empty for a single matrix.
	Weights []float64
	// Exponent is what every similarity is raised to: above 1 weak neighbors lose
	// more than strong ones.
	Exponent float64
	// Threshold is θ in [0, 1): similarities up to it go.
	Threshold float64
	// Neighbors is C, the most neighbors that a term keeps; 0 is all.
	Neighbors int
}

// Apply returns the matrix of a shape. Without weights the first matrix is the
// one, and is returned as it is where nothing is asked for.
func (s *Shape) Apply(ctx context.Context, matrices []combine.Input) (m *simmatrix.Matrix, err error) {
	inputs := slices.Clone(matrices[:max(1, len(s.Weights))])
	for k, w := range s.Weights {
		inputs[k].Weight = w
	}
	if len(s.Weights) > 0 {
		inputs = slices.DeleteFunc(inputs, func(in combine.Input) bool { return in.Weight == 0 })
	}
	if m = inputs[0].Matrix; len(inputs) > 1 {
		o := combine.DefaultOptions()
		o.Rule = combine.RuleWeighted
		m, err = combine.Combine(ctx, inputs, o, nil)
	}
	if err == nil && s.Exponent != 1 {
		m, err = combine.Raise(m, s.Exponent)
	}
	if err == nil && (s.Threshold > 0 || s.Neighbors > 0) {
		m, err = combine.Sparsify(m, combine.SparsifyOptions{Threshold: s.Threshold, Neighbors: s.Neighbors})
	}
	return m, err
}

// A Space is the settings that may be tried: one value in each dimension.
type Space struct{ dimensions []dimension }

// A dimension is one thing that is tuned.
type dimension struct {
	name   string
	values []string // in an order in which neighbors are alike
	usual  int      // the default
	set    func(s *Setting, k int)
}

// A point has the place of a value in each dimension of a space.
type point []int

func (p point) key() string { return fmt.Sprint([]int(p)) }

func choice[T comparable](name string, usual T, set func(s *Setting, v T), values ...T) dimension {
	d := dimension{name: name, usual: slices.Index(values, usual), set: func(s *Setting, k int) { set(s, values[k]) }}
	for _, v := range values {
		d.values = append(d.values, fmt.Sprint(v))
	}
	return d
}

// setting returns the dimension of a key of a profile.
func setting(key string, values ...string) dimension {
	set := func(s *Setting, k int) {
		if err := configs.Set(&s.Profile, key, values[k]); err != nil {
			panic(err) // the values are below
		}
	}
	usual := slices.IndexFunc(values, func(v string) bool {
		p := expand.DefaultProfile()
		return configs.Set(&p, key, v) == nil && reflect.DeepEqual(p, expand.DefaultProfile())
	})
	return dimension{name: key, values: values, usual: usual, set: set}
}

// matrixWeight begins the names of the dimensions of weights.
const matrixWeight = "weight of matrix "

// NewSpace returns settings around the defaults, over so many matrices. The
// values lie widely apart: what lies between them follows the judged queries
// more than the collection.
func NewSpace(matrices int) Space {
	d := expand.DefaultProfile()
	s := Space{[]dimension{
		setting("scoring", "linear", "grouped", "auto"),
		setting("phase", "auto", "query"),
		choice("times strength", 1, func(s *Setting, v float64) { // that of each form
			times := func(strength float64) float64 { return min(math.Round(v*strength*1e4)/1e4, 1) }
			s.Profile.Strength = form.Lambda{
				Linear: times(d.Strength.Linear), Grouped: times(d.Strength.Grouped), Saturated: times(d.Strength.Saturated),
			}
		}, .25, .5, .75, 1, 1.5, 2, 3),
		choice("exponent", 1, func(s *Setting, v float64) { s.Shape.Exponent = v }, .5, .75, 1, 1.5, 2),
		choice("threshold", 0, func(s *Setting, v float64) { s.Shape.Threshold = v }, 0, .02, .05, .1, .2),
		choice("neighbors", 0, func(s *Setting, v int) { s.Shape.Neighbors = v }, 5, 10, 20, 50, 0),
		setting("max_added_terms", "5", "10", "20", "30", "50", "100"),
		setting("max_doc_share", "0.02", "0.05", "0.1", "0.2", "0.5"),
		setting("matching", "widen", "same"),
		setting("feedback.documents", "0", "5", "10", "20"),
		setting("feedback.terms", "10", "20", "40"),
		setting("feedback.weight", "0.1", "0.2", "0.3", "0.5"),
		choice("soft_weight", 0, func(s *Setting, v float64) { // the blend of the mode soft; 0 is the mode bm25
			if v > 0 {
				s.Profile.Mode, s.Profile.SoftWeight = expand.ModeSoft, v
			}
		}, 0, .05, .1, .2, .4),
	}}
	if matrices == 1 {
		return s
	}
	for k := range matrices {
		s.dimensions = append(s.dimensions, choice(matrixWeight+strconv.Itoa(k+1), 1, func(s *Setting, v float64) {
			s.Shape.Weights = append(s.Shape.Weights, v)
		}, 0, .25, .5, 1, 2, 4))
	}
	return s
}

func (s Space) usual() point {
	p := make(point, len(s.dimensions))
	for i, d := range s.dimensions {
		p[i] = d.usual
	}
	return p
}

// random returns a point that has the default in about half of the dimensions:
// what lies far from it in all of them is seldom good.
func (s Space) random(r *rand.Rand) point {
	p := s.usual()
	for i, d := range s.dimensions {
		if r.IntN(2) == 0 {
			p[i] = r.IntN(len(d.values))
		}
	}
	return s.plain(p)
}

// around returns the points that are one step from p in one dimension, in a
// random order.
func (s Space) around(p point, r *rand.Rand) (next []point) {
	for i, d := range s.dimensions {
		for _, step := range []int{-1, 1} {
			if k := p[i] + step; k >= 0 && k < len(d.values) {
				moved := slices.Clone(p)
				moved[i] = k
				next = append(next, s.plain(moved))
			}
		}
	}
	r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
	return next
}

// plain returns the simplest point that means the same: without feedback its
// other values are the default ones, as are weights that leave no matrix.
func (s Space) plain(p point) point {
	p = slices.Clone(p)
	reset := func(group string) {
		for i, d := range s.dimensions {
			if strings.HasPrefix(d.name, group) {
				p[i] = d.usual
			}
		}
	}
	out := s.setting(p)
	if out.Profile.Feedback.Documents == 0 || out.Profile.Mode == expand.ModeSoft {
		reset("feedback.")
	}
	if len(out.Shape.Weights) > 0 && slices.Max(out.Shape.Weights) == 0 {
		reset(matrixWeight)
	}
	return p
}

func (s Space) setting(p point) Setting {
	out := Setting{Profile: expand.DefaultProfile()}
	for i, d := range s.dimensions {
		d.set(&out, p[i])
	}
	return out
}

// describe names what of a point is not the default.
func (s Space) describe(p point) string {
	var parts []string
	for i, d := range s.dimensions {
		if p[i] != d.usual {
			parts = append(parts, fmt.Sprintf("%s %s", d.name, d.values[p[i]]))
		}
	}
	if len(parts) == 0 {
		return "the defaults"
	}
	return strings.Join(parts, ", ")
}
