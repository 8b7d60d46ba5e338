package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/recovery"
)

// A sealed search is valid JSON whose parameter is the search, byte for byte,
// and it keeps the options of the template.
func FuzzSeal(f *testing.F) {
	f.Add(`{"id":"a","params":{"q":"car"}}`, `{"query":{"match":{"body":"car"}}}`)
	f.Add(`{"source":{"size":"{{n}}"},"profile":false,"explain":null}`, "{\"a\":\"}}}{{{akin}}} <&> \u2028 \\\"\n\"}")
	f.Add(`{"id":1,"params":{"explain":true}}`, "")
	f.Fuzz(func(t *testing.T, template, search string) {
		options, ok := templateOptions([]byte(template))
		body, err := sealOne(nil, []byte(template), []byte(search))
		if !ok || err != nil {
			return
		}
		var got, want struct {
			Source           string
			Params           struct{ Akin string }
			Explain, Profile json.RawMessage
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%q is no JSON: %v (options %q)", body, err, options)
		}
		if got.Source != sealed || got.Params.Akin != search {
			t.Errorf("%q does not hold %q", body, search)
		}
		// A second decoder for the options; parameters may have any type there.
		var plain map[string]json.RawMessage
		if err := json.Unmarshal([]byte(template), &plain); err != nil {
			return // jsontext allows a little more, such as very deep nesting
		}
		want.Explain, want.Profile = plain["explain"], plain["profile"]
		if !bytes.Equal(got.Explain, want.Explain) || !bytes.Equal(got.Profile, want.Profile) {
			t.Errorf("%q has other options than %q", body, template)
		}
	})
}

// Several templates are rendered at the same time.
func TestPanicWhileATemplateIsRenderedIsAnError(t *testing.T) {
	guard := recovery.New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	ask := func(context.Context, esclient.Call) (int, []byte, error) { panic("a mistake") }
	_, _, err := renderAll(t.Context(), [][]byte{[]byte("{}"), []byte(`{"id":"a"}`)}, guard, ask)
	if !errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
}
