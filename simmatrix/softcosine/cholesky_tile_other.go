//go:build !amd64

package softcosine

func fastestSubtraction() subtraction { return subtractPortable }

func fastestSpread() spread { return spreadPortable }
