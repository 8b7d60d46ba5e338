package esclient

import (
	"errors"
	"fmt"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
)

func TestNineTenthsOfTheDocumentsMustHaveVectors(t *testing.T) {
	other := errors.New("another")
	for name, test := range map[string]struct {
		failed, others, foreign, stamped int
		want                             error // other for one that is not ErrNoVectors
	}{
		"all":                          {0, 0, 0, 5, nil},
		"no documents":                 {0, 0, 0, 0, ErrNoVectors},
		"half a backfill":              {0, 50, 50, 50, ErrNoVectors},
		"as many as are let pass":      {0, 100, 0, 900, nil},
		"one of them of another model": {0, 100, 1, 900, nil},
		"a few more than are let pass": {0, 101, 0, 899, ErrNoVectors},
		"a shard failed":               {1, 0, 0, 5, other},
	} {
		t.Run(name, func(t *testing.T) {
			f := clustertest.New().Reply("POST /_search", 200, fmt.Sprintf(
				`{"_shards":{"failed":%d},"aggregations":{"stamped":{"doc_count":%d},"others":{"doc_count":%d},"foreign":{"doc_count":%d}}}`,
				test.failed, test.stamped, test.others, test.foreign))
			c := cached(t, f)
			for range 2 { // the second time from memory
				mixed, err := c.Vectors(t.Context(), at("i"), "body", "akin_vector_model.body", "0123456789abcdef")
				check.That(t, (err == nil) == (test.want == nil) && errors.Is(err, ErrNoVectors) == errors.Is(test.want, ErrNoVectors), "%v, want %v", err, test.want)
				check.Equal(t, err == nil && test.foreign > 0, mixed)
			}
			check.Equal(t, 1, f.Asked(`"akin_vector_model.body":{"value":"0123456789abcdef"`), f.Calls(), "asked times")
		})
	}
}
