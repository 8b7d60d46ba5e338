package simmatrix

import (
	"strconv"
	"strings"
)

// evidencePrefix begins the names of the origins of what was learned from
// clicks or judgments.
const evidencePrefix = "learned: "

// EvidenceOrigin returns the name of the origin of an entry that was learned
// from a number of units, such as "learned: 2 clicks". The unit is in the
// singular.
func EvidenceOrigin(count int, unit string) string {
	if count != 1 {
		unit += "s"
	}
	return evidencePrefix + strconv.Itoa(count) + " " + unit
}

// DescribeOrigins returns what the names of an entry's origins say: one of
// "learned: 31 clicks" stands for all that add up to it.
func DescribeOrigins(origins []string) []string {
	var said []string
	count, unit := 0, ""
	for _, name := range origins {
		number, of, _ := strings.Cut(strings.TrimPrefix(name, evidencePrefix), " ")
		if n, err := strconv.Atoi(number); strings.HasPrefix(name, evidencePrefix) && err == nil {
			count, unit = count+n, strings.TrimSuffix(of, "s")
		} else {
			said = append(said, name)
		}
	}
	if count > 0 {
		said = append(said, EvidenceOrigin(count, unit))
	}
	return said
}
