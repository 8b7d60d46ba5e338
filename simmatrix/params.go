package simmatrix

import (
	"strconv"
	"strings"
)

// OriginOverrides is the name, in [Meta.Origins], of the entries that overrides
// set.
const OriginOverrides = "overrides"

// OverridesParam is the name, in [Meta.Params], of what tells which rules were
// applied.
const OverridesParam = "overrides"

// SparsifyPrefix begins the names of the settings in [Meta.Params].
const SparsifyPrefix = "sparsify_"

// MaxOverrideLines is the largest number of lines of a file of overrides.
const MaxOverrideLines = 100_000

// OverridesSeparator stands between what tells of overrides applied one after
// the other.
const OverridesSeparator = "; "

// AppliedOverrides returns what tells of each application of overrides.
func AppliedOverrides(param string) []string {
	if param == "" {
		return nil
	}
	return strings.Split(param, OverridesSeparator)
}

// OverrideRules returns how many rules addTo tells of.
func OverrideRules(param string) int {
	rules := 0
	for _, applied := range AppliedOverrides(param) {
		number, _, _ := strings.Cut(applied, " ")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			rules += min(n, MaxOverrideLines)
		}
	}
	return rules
}
