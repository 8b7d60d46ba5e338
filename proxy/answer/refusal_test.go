package answer

import (
	"net/http"
	"strings"
	"testing"
)

func TestCausesOfARefusalAreBounded(t *testing.T) {
	deep := strings.Repeat(`{"type":"x","caused_by":`, 1000) + "{}" + strings.Repeat("}", 1000)
	for name, body := range map[string]string{
		"deep": deep, "many": `{"root_cause":[` + strings.Repeat(`{"type":"x"},`, 1000) + `{}]}`,
		"long": `{"type":"` + strings.Repeat("x", 10_000) + `"}`, "wide": `{"type":"x","failed_shards":[` + strings.Repeat(`{"reason":`+deep[:120], 1000),
	} {
		r := ReadRefusal(strings.NewReader(`{"error":`+body+`}`), http.StatusBadRequest, false)
		if len(r.Causes) == 0 || len(r.Causes) > maxCauses || len(r.Causes[0].Type) > maxReasonBytes {
			t.Errorf("%s: %d causes", name, len(r.Causes))
		}
	}
}
