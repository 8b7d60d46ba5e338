package evaluate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
)

// A Space is the set of possible settings: one value in each dimension.
type Space []dimension

type dimension struct {
	name   string
	values []string // neighbors have similar effects
	usual  int      // index of the default
	set    func(s *expand.Profile, k int)
}

// A point has the index of a value in each dimension of a space.
type point []int

func (p point) key() string { return fmt.Sprint([]int(p)) }

func setting(key string, values ...string) dimension {
	set := func(s *expand.Profile, k int) {
		if err := configs.Set(s, key, values[k]); err != nil {
			panic(err) // the values are constants
		}
	}
	usual := slices.IndexFunc(values, func(v string) bool {
		p := expand.DefaultProfile()
		return configs.Set(&p, key, v) == nil && reflect.DeepEqual(p, expand.DefaultProfile())
	})
	return dimension{name: key, values: values, usual: usual, set: set}
}

// NewSpace returns settings around the defaults. The values are far apart:
// values between them would fit the judged queries more than the collection.
func NewSpace() Space {
	softWeights := []float64{0, .1, .2, .3, .5}
	return Space{
		setting("effort", "low", "normal", "auto"),
		setting("strength", "0.25", "0.5", "0.75", "1", "1.5", "2", "3"),
		setting("max_added_terms", "5", "10", "20", "30", "50", "100"),
		setting("max_doc_share", "0.02", "0.05", "0.1", "0.2", "0.5"),
		setting("matching", "widen", "auto", "same"),
		setting("feedback.documents", "0", "5", "10", "20"),
		setting("feedback.terms", "10", "20", "40"),
		setting("feedback.weight", "0.1", "0.2", "0.3", "0.5"),
		{name: "soft_weight", values: []string{"0", "0.1", "0.2", "0.3", "0.5"}, usual: 3, set: func(s *expand.Profile, k int) {
			if k == 0 {
				s.Mode = expand.ModeBM25
				return
			}
			s.SoftWeight = softWeights[k]
		}},
	}
}

func (s Space) usual() point {
	p := make(point, len(s))
	for i, d := range s {
		p[i] = d.usual
	}
	return p
}

// random returns a point with the default in about half of the dimensions:
// points far from it in all dimensions are seldom good.
func (s Space) random(r *rand.Rand) point {
	p := s.usual()
	for i, d := range s {
		if r.IntN(2) == 0 {
			p[i] = r.IntN(len(d.values))
		}
	}
	return s.plain(p)
}

// around returns the points one step from p in one dimension, in random order.
func (s Space) around(p point, r *rand.Rand) (next []point) {
	for i, d := range s {
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

// plain returns the simplest equivalent point: without feedback, its other
// values are the defaults.
func (s Space) plain(p point) point {
	p = slices.Clone(p)
	if s.setting(p).Feedback.Documents > 0 {
		return p
	}
	for i, d := range s {
		if strings.HasPrefix(d.name, "feedback.") {
			p[i] = d.usual
		}
	}
	return p
}

func (s Space) setting(p point) expand.Profile {
	out := expand.DefaultProfile()
	for i, d := range s {
		d.set(&out, p[i])
	}
	return out
}

// describe lists the values of a point that are not defaults.
func (s Space) describe(p point) string {
	var parts []string
	for i, d := range s {
		if p[i] != d.usual {
			parts = append(parts, fmt.Sprintf("%s %s", d.name, d.values[p[i]]))
		}
	}
	if len(parts) == 0 {
		return "the defaults"
	}
	return strings.Join(parts, ", ")
}
