package documents

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
)

func TestAnIndexThatIsThereAlreadyIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		answer  string
		refused bool
	}{
		"created":       {200, `{"acknowledged":true}`, false},
		"there already": {400, `{"error":{"root_cause":[{"type":"resource_already_exists_exception","reason":"index [a/x] already exists"}],"type":"resource_already_exists_exception"},"status":400}`, false},
		"refused":       {400, `{"error":{"root_cause":[{"type":"mapper_parsing_exception","reason":"no handler for type [tekst]"}],"type":"mapper_parsing_exception"},"status":400}`, true},
	} {
		f := clustertest.New().Reply("PUT /docs", tt.status, tt.answer)
		created, err := client(t, f).CreateIndex(t.Context(), "docs", []byte(`{"mappings":{}}`))
		var refused *esclient.Error
		check.That(t, errors.As(err, &refused) == tt.refused && (err == nil) != tt.refused && created == (tt.status == 200), "%s: created %t, error %v", name, created, err)
		check.Equal(t, 1, f.Asked(`PUT /docs {"mappings":{}}`), name, f.Calls())
	}
}

func TestDocumentsAreIndexedInBulk(t *testing.T) {
	f := clustertest.New().Reply("POST /docs/_bulk", http.StatusOK, `{"errors":false,"items":[{"index":{"_id":"1","status":201}},{"index":{"_id":"2","status":201}}]}`)
	c := client(t, f)
	docs := []Document{{"1", map[string]string{"body": "a car"}}, {"2", map[string]string{"body": "line\nbreak"}}}
	check.OK(t, c.Index(t.Context(), "docs", docs))
	want := `{"index":{"_id":"1"}}` + "\n" + `{"body":"a car"}` + "\n" + `{"index":{"_id":"2"}}` + "\n" + `{"body":"line\nbreak"}` + "\n"
	_, sent, _ := strings.Cut(f.Calls()[0], " {")
	check.That(t, "{"+sent == want, "sent\n%s\nwant\n%s", f.Calls()[0], want)
	f.Reply("POST /docs/_bulk", http.StatusOK,
		`{"errors":true,"items":[{"index":{"_id":"1","status":201}},{"index":{"_id":"2","status":400,"error":{"type":"mapper_parsing_exception","reason":"failed to parse"}}}]}`)
	err := c.Index(t.Context(), "docs", docs)
	var refused *esclient.Error
	check.That(t, errors.As(err, &refused) && refused.Status == 400 && strings.Contains(err.Error(), `document "2"`), "error %v, want the refusal of document 2", err)
	check.That(t, c.Index(t.Context(), "docs", []Document{{"1", func() {}}}) != nil, "a source that is not JSON was taken")
}
