// Package settings checks numbers that users set and writes them as
// simmatrix.Meta.Params have them.
package settings

import (
	"fmt"
	"math"
	"strconv"
)

// InRange returns an error where value is not in [1, highest].
func InRange(name string, value, highest int) error {
	if value < 1 || value > highest {
		return fmt.Errorf("%s: %d not in [1, %d]", name, value, highest)
	}
	return nil
}

// Positive returns an error where v is not above 0 and finite.
func Positive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: %v is not above 0", name, v)
	}
	return nil
}

// FormatFloat writes a setting as Meta.Params have it: with the fewest digits
// that give v again.
func FormatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
