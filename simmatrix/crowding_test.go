package simmatrix

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestCrowdingWarningSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		params map[string]string
		want   string
	}{
		{nil, ""}, // of an older akin, or not learned from documents
		{map[string]string{"dimensions": "100", "crowding": "much"}, ""},
		{map[string]string{"dimensions": "480", "crowding": "0.049"}, ""},
		{map[string]string{"dimensions": "300", "crowding": "0.096", "dimensions_wanted": "480"}, "Build with --dimensions auto, or if it was built so, with a larger --max-memory"},
		{map[string]string{"dimensions": "1000", "crowding": "0.096"}, "in 1000 dimensions: the 30th neighbor of a word has a similarity of 0.10"},
	} {
		meta := Meta{Params: tt.params}
		got := meta.CrowdingWarning()
		if tt.want == "" {
			check.Equal(t, "", got, tt.params)
		} else {
			check.That(t, strings.Contains(got, tt.want), "%v: %q lacks %q", tt.params, got, tt.want)
		}
	}
	learned := Meta{Params: map[string]string{"dimensions": "480", "crowding": "0.049"}}
	check.Equal(t, "480 dimensions, crowding 0.049", learned.Vectors())
	learned.Params["dimensions_wanted"] = "500" // memory did not suffice
	check.Equal(t, "480 dimensions in place of 500, crowding 0.049", learned.Vectors())
	check.Equal(t, "", (&Meta{}).Vectors())
}
