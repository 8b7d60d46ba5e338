// Package settings checks numeric settings and formats them for
// simmatrix.Meta.Params.
package settings

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
)

// InRange returns an error if value is not in [1, highest].
func InRange(name string, value, highest int) error {
	if value < 1 || value > highest {
		return fmt.Errorf("%s: %d not in [1, %d]", name, value, highest)
	}
	return nil
}

// InUnit returns an error if v is not in an interval such as "[0, 1)".
func InUnit(name string, v float64, interval string) error {
	if (v > 0 && v < 1) || (v == 0 && interval[0] == '[') || (v == 1 && strings.HasSuffix(interval, "]")) {
		return nil
	}
	return fmt.Errorf("%s: %v not in %s", name, v, interval)
}

// NotNegative returns an error if v is negative.
func NotNegative[T int | int64](name string, v T) error {
	if v < 0 {
		return fmt.Errorf("%s: %d is negative", name, v)
	}
	return nil
}

// Positive returns an error if v is not above 0 and finite.
func Positive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: %v is not above 0", name, v)
	}
	return nil
}

// FormatFloat formats a setting with the fewest digits that restore v.
func FormatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// With returns a copy of params with values, prefixed, except "0" and "false".
func With(params map[string]string, prefix string, values map[string]string) map[string]string {
	with := maps.Clone(params)
	if with == nil {
		with = make(map[string]string)
	}
	for name, value := range values {
		if value != "0" && value != "false" {
			with[prefix+name] = value
		}
	}
	return with
}
