package demo

import (
	"strconv"
	"strings"
)

// An explanation says how a score came about, in the shape in which the
// engines answer explain: true.
type explanation struct {
	Value       float32        `json:"value"`
	Description string         `json:"description"`
	Details     []*explanation `json:"details"`
}

func explained(value float32, description string, details ...*explanation) *explanation {
	return &explanation{Value: value, Description: description, Details: details}
}

// floatText writes f as Java does, with at least one decimal.
func floatText(f float32) string {
	s := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
