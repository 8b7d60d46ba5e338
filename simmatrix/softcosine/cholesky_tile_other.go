//go:build !amd64

package softcosine

// fastestSubtraction returns the subtraction for this processor.
func fastestSubtraction() subtraction { return subtractPortable }

// fastestSpread returns the spread for this processor.
func fastestSpread() spread { return spreadPortable }
