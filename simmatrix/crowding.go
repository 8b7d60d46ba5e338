package simmatrix

import (
	"fmt"
	"strconv"
)

// Names, in [Meta.Params], of what a matrix learned from documents says about
// its vectors. Their crowding is the mean similarity of the 30th neighbors of
// some words, by the documents alone. A matrix of an older akin lacks it.
const (
	DimensionsParam = "dimensions"
	CrowdingParam   = "crowding"
	// WantedDimensionsParam is how many dimensions the crowding asks for, where
	// there are fewer: they were given, or memory does not suffice for more.
	WantedDimensionsParam = "dimensions_wanted"
)

// LargestCrowding is the crowding above which judged collections ranked worse.
const LargestCrowding = 0.07

// Vectors describes the vectors of a matrix that was learned from documents, ""
// for others.
func (m *Meta) Vectors() string {
	if m.Params[CrowdingParam] == "" {
		return ""
	}
	dimensions := m.Params[DimensionsParam] + " dimensions"
	if wanted := m.Params[WantedDimensionsParam]; wanted != "" {
		dimensions += " in place of " + wanted
	}
	return dimensions + ", crowding " + m.Params[CrowdingParam]
}

// CrowdingWarning returns what to tell people about a matrix whose words crowd,
// "" if they do not, or it is unknown.
func (m *Meta) CrowdingWarning() string {
	crowding, err := strconv.ParseFloat(m.Params[CrowdingParam], 64)
	if err != nil || crowding <= LargestCrowding {
		return ""
	}
	advice := "More documents, or a language model, may help"
	if m.Params[WantedDimensionsParam] != "" {
		advice = "Build with --dimensions auto, or if it was built so, with a larger --max-memory"
	}
	return fmt.Sprintf("the words crowd in %s dimensions: the 30th neighbor of a word has a similarity of %.2f on average, and searches get worse above %v. %s",
		m.Params[DimensionsParam], crowding, LargestCrowding, advice)
}
