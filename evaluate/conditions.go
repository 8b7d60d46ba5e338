package evaluate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

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
