package simmatrix

import (
	"strconv"
	"strings"
)

// OriginOverrides names, in [Meta.Origins], the entries that overrides set.
const OriginOverrides = "overrides"

// OverridesParam names, in [Meta.Params], the descriptions of the overrides
// applied.
const OverridesParam = "overrides"

// SparsifyPrefix begins the names of the settings in [Meta.Params].
const SparsifyPrefix = "sparsify_"

// MaxOverrideLines is the largest number of lines of a file of overrides.
const MaxOverrideLines = 100_000

// OverridesSeparator separates the descriptions of overrides applied one after
// the other.
const OverridesSeparator = "; "

// AppliedOverrides splits an [OverridesParam] into one description per
// application.
func AppliedOverrides(param string) []string {
	if param == "" {
		return nil
	}
	return strings.Split(param, OverridesSeparator)
}

// OverrideRules returns the number of rules that an [OverridesParam] describes.
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
