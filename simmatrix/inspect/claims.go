package inspect

import (
	"fmt"
	"math"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// A Claim is one thing that a header says.
type Claim struct {
	// Name is what it is about; for a setting of [shape.Sparsify], its name in
	// [simmatrix.Meta.Params].
	Name             string
	Claimed, Counted string
	// Holds says that the two are the same; for a setting, that the count keeps
	// to it or that Note excuses it.
	Holds bool
	// Note says why a setting holds though the count goes beyond it: overrides
	// have set those entries, or no more others are left than rules that pin
	// and ban can explain.
	Note string
}

func (in *inspector) claims() {
	r, meta := in.report, in.report.Meta
	number := func(name string, claimed, counted uint64) {
		in.claim(name, strconv.FormatUint(claimed, 10), strconv.FormatUint(counted, 10))
	}
	truth := func(name string, claimed, counted bool) {
		in.claim(name, strconv.FormatBool(claimed), strconv.FormatBool(counted))
	}
	number("terms", meta.Terms, uint64(len(in.m.Terms)))
	number("non-zeros", meta.NonZeros, uint64(len(in.m.Sims)))
	number("longest row", uint64(meta.MaxNeighbors), uint64(r.RowLengths.Max))
	truth("symmetric", meta.Symmetric, r.OneWay == 0 && r.Unequal == 0)
	truth("dominant", meta.Dominant, r.RowsNotDominant == 0)
	inRange := len(in.m.Sims) == 0 || (r.Similarities.Min > 0 && r.Similarities.Max <= 1)
	truth("similarities in (0, 1]", true, inRange)
}

// claim adds a claim that holds if both are the same.
func (in *inspector) claim(name, claimed, counted string) {
	in.report.Claims = append(in.report.Claims, Claim{Name: name, Claimed: claimed, Counted: counted, Holds: claimed == counted})
}

// settings checks the settings of [shape.Sparsify] that Params names.
func (in *inspector) settings() {
	r := in.report
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"neighbors"]; ok {
		limit, err := strconv.Atoi(claimed)
		over, unexplained := in.beyond(limit)
		in.setting("neighbors", strconv.FormatFloat(r.RowLengths.Max, 'f', 0, 64), err == nil, over, unexplained)
	}
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"threshold"]; ok {
		threshold, ok := lines.ParseDecimal(claimed, 64)
		under, unexplained := in.upTo(threshold)
		in.setting("threshold", strconv.FormatFloat(r.Similarities.Min, 'g', 4, 64), ok, under, unexplained)
	}
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"symmetric"]; ok {
		in.setting("symmetric", strconv.FormatBool(in.skewed == 0), claimed == "true", in.skewed, in.skewed-in.skewSet)
	}
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"dominant"]; ok {
		in.setting("dominant", strconv.FormatBool(r.RowsNotDominant == 0), claimed == "true", r.RowsNotDominant, in.notDominant())
	}
}

// setting adds a setting with so many violations, of which so many are
// unexplained by overrides. One that is not readable does not hold.
func (in *inspector) setting(name, counted string, readable bool, violations, unexplained int) {
	c := Claim{Name: simmatrix.SparsifyPrefix + name, Claimed: in.report.Meta.Params[simmatrix.SparsifyPrefix+name], Counted: counted}
	rules := simmatrix.OverrideRules(in.report.Meta.Params[simmatrix.OverridesParam])
	c.Holds = readable && unexplained <= 2*rules // a rule sets at most two entries
	if c.Holds && violations > 0 {
		var set uint64
		for _, o := range in.report.Origins {
			if o.Name == simmatrix.OriginOverrides {
				set = o.Entries
			}
		}
		c.Note = fmt.Sprintf("by overrides: %d entries are theirs, of %d rules", set, rules)
	}
	in.report.Claims = append(in.report.Claims, c)
}

// beyond counts the entries of rows beyond a limit: all, and those that
// overrides have not set.
func (in *inspector) beyond(limit int) (all, others int) {
	for i := range in.m.Terms {
		cols, _ := in.m.Row(i)
		own := 0
		for k := range cols {
			if in.isSet(i, k) {
				own++
			}
		}
		all += max(0, len(cols)-limit)
		others += max(0, len(cols)-own-limit)
	}
	return all, others
}

// upTo counts the entries up to a threshold: all, and those that overrides have
// not set.
func (in *inspector) upTo(threshold float64) (all, others int) {
	floor := math.Round(threshold * simmatrix.UnitsOfOne)
	for i := range in.m.Terms {
		_, sims := in.m.Row(i)
		for k, s := range sims {
			if float64(s) > floor {
				continue
			}
			all++
			if !in.isSet(i, k) {
				others++
			}
		}
	}
	return all, others
}

// notDominant counts the rows that sum up to 1 even without what overrides set.
func (in *inspector) notDominant() int {
	rows := 0
	for i := range in.m.Terms {
		_, sims := in.m.Row(i)
		sum := 0
		for k, s := range sims {
			if !in.isSet(i, k) {
				sum += int(s)
			}
		}
		if sum >= simmatrix.UnitsOfOne {
			rows++
		}
	}
	return rows
}
