package combine

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestEntriesOfAThesaurusAreCountedByKind(t *testing.T) {
	words := expressed(t, 0, nil, "heart attack > infarct 1", "infarct > heart attack 1", "car > auto 1", "gone > car 1",
		"motor car > car 0.5", "car > motor car 0.5", "big car > car 0.5", "car > bus 0.2", "cars > the car 0.5")
	left := expressed(t, 0, nil, "heart attack > infarct 1", "infarct > heart attack 1", "car > auto 1", "motor car > car 0.5", "car > motor car 0.5")
	exact, similar := TallyThesaurus(words, left, func(word string) []string {
		switch simmatrix.Spelled(word) {
		case "gone":
			return nil
		case "cars", "the car":
			return []string{"car"}
		}
		return []string{word}
	})
	check.Equal(t, "exact synonyms: 2 kept, such as heart attack – infarct, car – auto; 1 left out, such as gone – car", exact.String())
	check.Equal(t, "similar expressions: 1 kept, such as motor car – car; 2 left out, such as big car – car, cars – the car", similar.String())
	m := check.Got(WithTallies(left, exact, similar))(t)
	check.Equal(t, []string{exact.String(), similar.String()}, simmatrix.Tallies(m.Meta().Params))
	check.Equal(t, spelledRows(left), spelledRows(m))
}
