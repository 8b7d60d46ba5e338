package evaluate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/akin-search/akin/evaluate/measure"
)

// DefaultMeasures are those that are taken where none are asked for.
func DefaultMeasures() []string { return []string{"nDCG@10", "MAP", "MRR", "P@10", "recall@100"} }

// A Measure says how good a ranking is, in [0, 1].
type Measure struct {
	Name string
	K    int // how many ranks it looks at; 0 is all
	of   func(ranking []string, grades map[string]int) float64
}

// ParseMeasures returns the measures of names: MAP, MRR, and nDCG, MRR, P and
// recall followed by @ and a number of ranks.
func ParseMeasures(names []string) ([]Measure, error) {
	measures := make([]Measure, len(names))
	for i, name := range names {
		var err error
		if measures[i], err = parseMeasure(strings.TrimSpace(name)); err != nil {
			return nil, err
		}
		for _, m := range measures[:i] {
			if m.Name == measures[i].Name {
				return nil, fmt.Errorf("the measure %s is there twice", m.Name)
			}
		}
	}
	return measures, nil
}

func parseMeasure(name string) (Measure, error) {
	type atK = func(ranking []string, grades map[string]int, k int) float64
	m := Measure{Name: name}
	kind, ranks, cut := strings.Cut(name, "@")
	k, err := strconv.Atoi(ranks)
	of := map[string]atK{"nDCG": measure.NDCG, "MRR": measure.ReciprocalRank, "P": measure.Precision, "recall": measure.Recall}[kind]
	switch {
	case name == "MAP":
		m.of = measure.AveragePrecision
	case name == "MRR":
		m.of = func(r []string, g map[string]int) float64 { return of(r, g, len(r)) }
	case of == nil || !cut || err != nil || k < 1 || strconv.Itoa(k) != ranks:
		return m, fmt.Errorf("%q is no measure: want MAP, MRR, nDCG@10, MRR@10, P@10, recall@10 or with other numbers", name)
	default:
		m.K = k
		m.of = func(r []string, g map[string]int) float64 { return of(r, g, k) }
	}
	return m, nil
}
