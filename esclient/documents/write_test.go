package documents

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/akin-search/akin/esclient"
)

// writing returns a client of a cluster that answers with handle.
func writing(t *testing.T, handle http.HandlerFunc) API {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c, err := esclient.New(esclient.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return API{c}
}

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
		t.Run(name, func(t *testing.T) {
			var got string
			c := writing(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.URL.Path + " " + string(body)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			})
			created, err := c.CreateIndex(t.Context(), "docs", []byte(`{"mappings":{}}`))
			var refused *esclient.Error
			if errors.As(err, &refused) != tt.refused || (err == nil) == tt.refused || created != (tt.status == 200) {
				t.Errorf("created %t, error %v", created, err)
			}
			if want := `PUT /docs {"mappings":{}}`; got != want {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

func TestDocumentsAreIndexedInBulk(t *testing.T) {
	var sent strings.Builder
	refuse := false
	c := writing(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&sent, r.Body)
		if refuse {
			fmt.Fprint(w, `{"errors":true,"items":[{"index":{"_id":"1","status":201}},{"index":{"_id":"2","status":400,"error":{"type":"mapper_parsing_exception","reason":"failed to parse"}}}]}`)
			return
		}
		fmt.Fprint(w, `{"errors":false,"items":[{"index":{"_id":"1","status":201}},{"index":{"_id":"2","status":201}}]}`)
	})
	docs := []Document{{"1", map[string]string{"body": "a car"}}, {"2", map[string]string{"body": "line\nbreak"}}}
	if err := c.Index(t.Context(), "docs", docs); err != nil {
		t.Fatal(err)
	}
	want := `{"index":{"_id":"1"}}` + "\n" + `{"body":"a car"}` + "\n" + `{"index":{"_id":"2"}}` + "\n" + `{"body":"line\nbreak"}` + "\n"
	if sent.String() != want {
		t.Errorf("sent\n%s\nwant\n%s", sent.String(), want)
	}
	refuse = true
	err := c.Index(t.Context(), "docs", docs)
	var refused *esclient.Error
	if !errors.As(err, &refused) || refused.Status != 400 || !strings.Contains(err.Error(), `document "2"`) {
		t.Errorf("error %v, want the refusal of document 2", err)
	}
	if err := c.Index(t.Context(), "docs", []Document{{"1", func() {}}}); err == nil {
		t.Error("a source that is not JSON was taken")
	}
}
