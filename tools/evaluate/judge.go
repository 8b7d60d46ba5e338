package evaluate

import (
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

const confidence = 0.95

// Judge measures the answers of arms by the judgments. answered has the judged
// queries of set in their order.
func Judge(set *Set, arms []Arm, answered []Answered, measures []Measure) *Result {
	r := &Result{LeftOut: LeftOut{Unknown: set.Unknown(), Ungraded: set.Ungraded}}
	for _, q := range set.Queries {
		if len(set.Grades[q.ID]) == 0 {
			r.LeftOut.Unjudged = append(r.LeftOut.Unjudged, q.ID)
		}
	}
	for _, m := range measures {
		r.Measures = append(r.Measures, m.Name)
	}
	for i, q := range set.Judged() {
		result := QueryResult{Query: q}
		for _, a := range answered[i].Answers {
			result.Arms = append(result.Arms, judge(a, set.Grades[q.ID], measures))
		}
		r.Queries = append(r.Queries, result)
	}
	for k, arm := range arms {
		r.Arms = append(r.Arms, sumUp(arm, k, r, answered))
	}
	for _, name := range r.Measures {
		compare(r, name)
	}
	return r
}

func judge(a Answer, grades map[string]float64, measures []Measure) Ranked {
	hits := Ranking(a.Hits)
	ranking := idsOf(hits)
	ranked := Ranked{
		Measures: map[string]float64{}, Unjudged: Unjudged(ranking, grades, ShownHits),
		Added: a.Added, TookMillis: millis(a.Took), Hits: slices.Clone(hits[:min(ShownHits, len(hits))]),
	}
	for _, m := range measures {
		ranked.Measures[m.Name] = m.of(ranking, grades)
	}
	for i := range ranked.Hits {
		if grade, ok := grades[ranked.Hits[i].ID]; ok {
			ranked.Hits[i].Grade = &grade
		}
	}
	return ranked
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func sumUp(arm Arm, k int, r *Result, answered []Answered) ArmResult {
	sum := ArmResult{Name: arm.Name, Measures: map[string]Estimate{}}
	took := make([]float64, len(r.Queries))
	added, known := 0, 0
	for i, q := range r.Queries {
		took[i] = q.Arms[k].TookMillis
		sum.Unjudged += q.Arms[k].Unjudged / float64(len(r.Queries))
		if q.Arms[k].Added != nil {
			added += len(q.Arms[k].Added)
			known++
		}
		sum.Add(answered[i].Answers[k])
	}
	if known > 0 {
		mean := float64(added) / float64(known)
		sum.AddedTerms = &mean
	}
	sum.Latency = latency(took)
	return sum
}

func latency(took []float64) Latency {
	if len(took) == 0 {
		return Latency{}
	}
	slices.Sort(took)
	percentile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, took, nil) }
	return Latency{percentile(0.50), percentile(0.95), percentile(0.99)}
}

func compare(r *Result, name string) {
	var chance []float64
	estimates := make([]Estimate, len(r.Arms))
	for k := range r.Arms {
		values, gains := make([]float64, len(r.Queries)), make([]float64, len(r.Queries))
		for i, q := range r.Queries {
			values[i] = q.Arms[k].Measures[name]
			gains[i] = values[i] - q.Arms[0].Measures[name]
		}
		estimates[k].Mean, estimates[k].Interval = estimate(values)
		if k > 0 {
			gain := &Gain{P: Randomization(gains)}
			gain.Mean, gain.Interval = estimate(gains)
			estimates[k].Gain = gain
			chance = append(chance, gain.P)
		}
	}
	for k, p := range Holm(chance) {
		estimates[k+1].Gain.Holm = p
	}
	for k := range r.Arms {
		r.Arms[k].Measures[name] = estimates[k]
	}
}

func estimate(values []float64) (mean float64, i Interval) {
	i.Low, i.High = Bootstrap(values, confidence)
	return floats.Sum(values) / float64(max(len(values), 1)), i
}
