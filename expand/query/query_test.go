package query

import (
	"encoding/json"
	"testing"
)

func TestNumbersFitInto32Bits(t *testing.T) {
	for _, v := range []float64{0, 1e300, 1e39, 5e-324, 0.1} {
		var written buffer
		written.put(v)
		var back float32
		if err := json.Unmarshal(written, &back); err != nil {
			t.Errorf("%v is written %s: %v", v, written, err)
		}
	}
}
