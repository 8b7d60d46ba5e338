package advise

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestPropertyIsFoundWithTheKeysThatLeadToIt(t *testing.T) {
	const body = `{"analyzer":"english","fields":{"akin":{"type":"text"},"raw":{"type":"keyword"}},"ignore_above":9007199254740993,"type":"text"}`
	for name, tt := range map[string]struct {
		properties string
		keys       []string
	}{
		"objects":       {`{"o":{"properties":{"body":` + body + `}}}`, []string{"o", "body"}},
		"no objects":    {`{"o.body":` + body + `}`, []string{"o.body"}},
		"both":          {`{"o":{"properties":{"title":{}}},"o.body":` + body + `}`, []string{"o.body"}},
		"it is missing": {`{"o":{"type":"text","fields":{"body":{}}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			keys, property := find(decode(jsontext.Value(tt.properties)), "o.body")
			if !slices.Equal(keys, tt.keys) || keys != nil && string(encode(property)) != body {
				t.Errorf("%q: %s", keys, encode(property))
			}
		})
	}
}
