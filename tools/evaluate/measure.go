package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// AveragePrecision is the mean of the precision at each relevant document, in
// [0, 1]. Its mean over queries is MAP:
//
//	(1/R) Σ_k P@k · rel(k)    R: the number of known relevant documents
//
// Like all measures, it is 0 if no document is relevant.
func AveragePrecision(ranking []string, grades map[string]float64) float64 {
	found, sum := 0.0, 0.0
	for i, id := range ranking {
		if grades[id] > 0 {
			found++
			sum += found / float64(i+1)
		}
	}
	return share(sum, float64(len(Relevant(grades))))
}

// NDCG is the normalized discounted cumulative gain of the first k documents,
// in [0, 1]: gain = grade, discount = 1/log2(rank+1), divided by that of the k
// best grades (Järvelin and Kekäläinen 2002, with trec_eval's discount).
func NDCG(ranking []string, grades map[string]float64, k int) float64 {
	gain, best := 0.0, 0.0
	for i, id := range ranking[:min(k, len(ranking))] {
		gain += max(0, grades[id]) * Discount(i)
	}
	ideal := Relevant(grades)
	for i, grade := range ideal[:min(k, len(ideal))] {
		best += grade * Discount(i)
	}
	return share(gain, best)
}

// Discount is the weight of rank i, counted from 0.
func Discount(i int) float64 { return 1 / math.Log2(float64(i)+2) }

// ReciprocalRank is 1/rank of the first relevant document among the first k, or
// 0 if there is none. Its mean is MRR.
func ReciprocalRank(ranking []string, grades map[string]float64, k int) float64 {
	for i, id := range ranking[:min(k, len(ranking))] {
		if grades[id] > 0 {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// Precision is the share of relevant documents among the first k, in [0, 1].
// Missing documents of a shorter ranking count as not relevant.
func Precision(ranking []string, grades map[string]float64, k int) float64 {
	return share(relevantIn(ranking, grades, k), float64(k))
}

// Recall is the share of relevant documents that are among the first k, in [0,
// 1].
func Recall(ranking []string, grades map[string]float64, k int) float64 {
	return share(relevantIn(ranking, grades, k), float64(len(Relevant(grades))))
}

// Unjudged is the share of documents without a grade among the first k, in [0,
// 1], or among all of a shorter ranking.
func Unjudged(ranking []string, grades map[string]float64, k int) float64 {
	first := ranking[:min(k, len(ranking))]
	unknown := 0.0
	for _, id := range first {
		if _, ok := grades[id]; !ok {
			unknown++
		}
	}
	return share(unknown, float64(len(first)))
}

func relevantIn(ranking []string, grades map[string]float64, k int) float64 {
	found := 0.0
	for _, id := range ranking[:min(k, len(ranking))] {
		if grades[id] > 0 {
			found++
		}
	}
	return found
}

// Overlap is the share of documents that the first k of two rankings have in
// common, in [0, 1], relative to the longer of the two. It is 1 for two empty
// rankings.
func Overlap(a, b []string, k int) float64 {
	a, b = a[:min(k, len(a))], b[:min(k, len(b))]
	longer := max(len(a), len(b))
	if longer == 0 {
		return 1
	}
	common := 0
	for _, id := range b {
		if slices.Contains(a, id) {
			common++
		}
	}
	return float64(common) / float64(longer)
}

// share returns part/whole, or 0 if whole is 0.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// Relevant returns the grades above zero, in descending order.
func Relevant(grades map[string]float64) []float64 {
	var relevant []float64
	for _, g := range grades {
		if g > 0 {
			relevant = append(relevant, g)
		}
	}
	slices.SortFunc(relevant, func(a, b float64) int { return cmp.Compare(b, a) })
	return relevant
}

// DefaultMeasures returns the default measures.
func DefaultMeasures() []string { return []string{"nDCG@10", "MAP", "MRR", "P@10", "recall@100"} }

// A Measure says how good a ranking is, in [0, 1].
type Measure struct {
	Name string
	K    int // how many ranks it uses; 0 for all
	of   func(ranking []string, grades map[string]float64) float64
}

// ParseMeasures returns the measures with the given names: MAP, MRR, and nDCG,
// MRR, P and recall followed by @ and a number of ranks.
func ParseMeasures(names []string) ([]Measure, error) {
	measures := make([]Measure, len(names))
	for i, name := range names {
		var err error
		if measures[i], err = parseMeasure(strings.TrimSpace(name)); err != nil {
			return nil, err
		}
		for _, m := range measures[:i] {
			if m.Name == measures[i].Name {
				return nil, fmt.Errorf("the measure %s is given twice", m.Name)
			}
		}
	}
	return measures, nil
}

func parseMeasure(name string) (Measure, error) {
	type atK = func(ranking []string, grades map[string]float64, k int) float64
	m := Measure{Name: name}
	kind, ranks, cut := strings.Cut(name, "@")
	k, err := strconv.Atoi(ranks)
	of := map[string]atK{"nDCG": NDCG, "MRR": ReciprocalRank, "P": Precision, "recall": Recall}[kind]
	switch {
	case name == "MAP":
		m.of = AveragePrecision
	case name == "MRR":
		m.of = func(r []string, g map[string]float64) float64 { return of(r, g, len(r)) }
	case of == nil || !cut || err != nil || k < 1 || strconv.Itoa(k) != ranks:
		return m, fmt.Errorf("%q is no measure: want MAP, MRR, or nDCG, MRR, P or recall with a number, such as nDCG@10", name)
	default:
		m.K = k
		m.of = func(r []string, g map[string]float64) float64 { return of(r, g, k) }
	}
	return m, nil
}

// A condition is a requirement for a measure of an arm.
type condition struct {
	text, measure string
	least         float64
	over          bool // least is a change in percent of the first arm's mean
}

// Conditions are requirements for arms.
type Conditions []condition

var conditionPattern = regexp.MustCompile(`^(.+)=(?:([0-9.]+)|([+-][0-9.]+)%)$`)

// ParseConditions parses conditions such as "nDCG@10=0.35", the least mean, and
// "nDCG@10=-1%", the least change from the first arm.
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
			return nil, fmt.Errorf("%s: want a measure of --measures with its least mean, nDCG@10=0.35, or its least change from the first arm, nDCG@10=-1%%", text)
		}
	}
	return all, nil
}

// NeedSecondArm reports whether a condition is about a change from the first
// arm, which needs another arm.
func (all Conditions) NeedSecondArm() bool {
	return slices.ContainsFunc(all, func(c condition) bool { return c.over })
}

// A BelowError lists the arms that miss a condition.
type BelowError struct{ error }

// Check returns a [BelowError] for the arms that miss a condition. It checks
// all arms but the first, or the first if it is the only one.
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
