package enrich

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
)

func windows() *Filling {
	return &Filling{Cut: Cut{By: Windows, Words: 2, Overlap: 1}, Field: "body", Source: "body", Path: "parts.segments", Limit: 3}
}

func TestDocumentsAreFilled(t *testing.T) {
	task := windows().Task()
	parts, err := task.Fill(t.Context(), []documents.DocRef{
		{ID: "1", Texts: []string{"a <b> c", "d"}}, {ID: "2", Texts: []string{" "}}, {ID: "3", Texts: []string{"a b c d e"}}, {ID: "4"},
	})
	if err != nil || len(parts) != 4 {
		t.Fatal(parts, err)
	}
	want := `{"parts":{"segments":[{"godwin":0.54545456,"position":1,"share":0.4,"text":"a <b>"},{"godwin":0.27272728,"position":2,"share":0.4,"text":"<b> c"},` +
		`{"godwin":0.18181819,"position":3,"share":0.2,"text":"d"}],"segments_by":"body:windows:2:1"}}`
	got := string(parts[0].JSON)
	check.That(t, got == want && !parts[0].Empty, "%s, want %s", got, want)
	for _, i := range []int{1, 3} {
		want := `{"parts":{"segments":[],"segments_by":"body:windows:2:1:blank"}}`
		check.That(t, string(parts[i].JSON) == want && parts[i].Empty, "%+v, want %s", parts[i], want)
	}
	r := parts[2].Result
	check.That(t, parts[2].JSON == nil && r.Status == documents.Refused && errors.Is(r.Err, ErrTooMany), "four segments of three: %+v", parts[2])
	for _, want := range []string{`"parts.segments_by":{"value":"body:windows:2:1"}`, `"path":"parts.segments"`, `"ignore_unmapped":true`} {
		missing, err := task.Query(false)
		check.That(t, strings.Contains(string(missing), want), "%s is not in %s, %v", want, missing, err)
	}
	all, err := task.Query(true)
	if want := `{"prefix":{"parts.segments_by":{"value":"body:"}}}`; !strings.Contains(string(all), want) { // their texts may be gone
		t.Errorf("%s is not in %s, %v", want, all, err)
	}
}

// inspect checks a filling against the properties of an index.
func inspect(f *Filling, settings, properties string) (string, error) {
	var m mapping.Index
	if err := json.Unmarshal([]byte(`{"mappings":{"properties":{"body":{"type":"text","analyzer":"english","similarity":"boolean"},`+properties+`"x":{"type":"long"}}}}`), &m); err != nil {
		return "", err
	}
	if settings != "" {
		m.Settings = mapping.Settings{LimitSetting: []byte(settings)}
	}
	i, err := mapping.Inspect(map[string]mapping.Index{"i": m}, "body")
	if err != nil {
		return "", err
	}
	lacking, err := f.Check(&i[0])
	return string(lacking), err
}

func TestMappingThatLacksSegmentsIsPrinted(t *testing.T) {
	const nested = `{"properties":{"parts":{"properties":{"segments":{"properties":`
	for name, tt := range map[string]struct{ there, want string }{
		"nothing": {"", nested + `{"godwin":{"type":"float"},"position":{"type":"integer"},"share":{"type":"float"},` +
			`"text":{"analyzer":"english","similarity":"boolean","type":"text"}},"type":"nested"},"segments_by":{"type":"keyword"}}}}}`},
		"the text": {
			`"parts":{"properties":{"segments":{"type":"nested","properties":{"text":{"type":"text"}}}}},`,
			nested + `{"godwin":{"type":"float"},"position":{"type":"integer"},"share":{"type":"float"}},"type":"nested"},"segments_by":{"type":"keyword"}}}}}`,
		},
		"all": {
			`"parts":{"properties":{"segments":{"type":"nested","properties":{"text":{"type":"text"},"position":{"type":"short"},` +
				`"share":{"type":"double"},"godwin":{"type":"half_float"}}},"segments_by":{"type":"keyword"}}},`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := inspect(windows(), "", tt.there)
			check.That(t, got == tt.want && err == nil, "%s, %v\nwant %s", got, err, tt.want)
		})
	}
}

func TestFieldsThatCannotHoldSegmentsAreRefused(t *testing.T) {
	for there, want := range map[string]string{
		`"parts":{"properties":{"segments":{"properties":{"text":{"type":"text"}}}}},`:                    "parts.segments is mapped as object",
		`"parts":{"properties":{"segments":{"type":"text"}}},`:                                            "parts.segments is mapped as text",
		`"parts":{"type":"nested","properties":{"segments":{"type":"nested"}}},`:                          "in the nested documents of parts",
		`"parts":{"properties":{"segments":{"type":"nested","properties":{"text":{"type":"keyword"}}}}},`: "parts.segments.text is mapped as keyword",
		`"parts":{"properties":{"segments_by":{"type":"text"}}},`:                                         "parts.segments_by is mapped as text",
		`"parts":{"properties":{"segments":{"type":"nested"},"n":{"type":"long"}}},`:                      "parts has other fields, such as parts.n",
	} {
		lacking, err := inspect(windows(), "", there)
		check.That(t, err != nil && strings.Contains(err.Error(), want) && lacking == "", "%s: %s, %v", there, lacking, err)
	}
}

func TestLimitIsThatOfTheIndex(t *testing.T) {
	f := windows()
	for _, tt := range []struct {
		setting string
		before  int
		want    int
	}{{"", 0, 10_000}, {`"20000"`, 0, 20000}, {`"50"`, 100, 50}, {`"50"`, 20, 20}} {
		f.Limit = tt.before
		_, err := inspect(f, tt.setting, "")
		check.That(t, err == nil && f.Limit == tt.want, "%s after %d: %d, %v", tt.setting, tt.before, f.Limit, err)
	}
	check.That(t, check.ErrOf(inspect(f, `"many"`, "")) != nil, "a limit that is no number is taken")
}

// A document of the other index would be taken for one without text, and be
// stamped as done.
func TestIndicesWithTheTextUnderDifferentNamesAreRefused(t *testing.T) {
	f := windows()
	f.Source = "text"
	_, err := inspect(f, "", "")
	check.That(t, err != nil && strings.Contains(err.Error(), "under the name body") && f.Source == "text", "source %s, %v", f.Source, err)
	f.Source = ""
	_, err = inspect(f, "", "")
	check.That(t, err == nil && f.Source == "body", "source %q, %v", f.Source, err)
}
