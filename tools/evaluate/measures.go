package evaluate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	of := map[string]atK{"nDCG": NDCG, "MRR": ReciprocalRank, "P": Precision, "recall": Recall}[kind]
	switch {
	case name == "MAP":
		m.of = AveragePrecision
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

// A condition is what a measure of an arm has to reach.
type condition struct {
	text, measure string
	least         float64
	over          bool // least is a change in percent of the first arm's mean
}

// Conditions are what arms have to reach.
type Conditions []condition

var conditionPattern = regexp.MustCompile(`^(.+)=(?:([0-9.]+)|([+-][0-9.]+)%)$`)

// ParseConditions reads conditions such as "nDCG@10=0.35", the least mean, and
// "nDCG@10=-1%", the least change from the first arm's.
func ParseConditions(texts []string, measures []Measure) (Conditions, error) {
	all := make(Conditions, len(texts))
	for i, text := range texts {
		m := conditionPattern.FindStringSubmatch(text)
		err := strconv.ErrSyntax
		if m != nil && slices.ContainsFunc(measures, func(known Measure) bool { return known.Name == m[1] }) {
			all[i] = condition{text: text, measure: m[1], over: m[3] != ""}
			all[i].least, err = strconv.ParseFloat(m[2]+m[3], 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: want a measure that is asked for with the least mean, nDCG@10=0.35, or the least change from the first arm, nDCG@10=-1%%", text)
		}
	}
	return all, nil
}

// NeedSecondArm reports whether a condition is about the change from the first
// arm, which nothing has where there is no other.
func (all Conditions) NeedSecondArm() bool {
	return slices.ContainsFunc(all, func(c condition) bool { return c.over })
}

// A BelowError says which arms do not reach a condition.
type BelowError struct{ error }

// Check returns a [BelowError] for the arms that do not reach what is asked of
// them: all but the first, where there are others.
func (all Conditions) Check(r *Result) error {
	var errs []error
	for _, c := range all {
		least := c.least
		if first := r.Arms[0].Measures[c.measure].Mean; c.over {
			least = first * (1 + c.least/100)
		}
		for _, arm := range r.Arms[min(1, len(r.Arms)-1):] {
			if mean := arm.Measures[c.measure].Mean; mean < least {
				errs = append(errs, fmt.Errorf("%s: arm %s has %.4f, want at least %.4f", c.text, arm.Name, mean, least))
			}
		}
	}
	if errs == nil {
		return nil
	}
	return BelowError{errors.Join(errs...)}
}
