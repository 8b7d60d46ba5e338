package jsonspan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/jsonspan"
)

func TestPlacesOfMembersAndElements(t *testing.T) {
	const text = " {\"a\" : [1, {\"b\\u0063\":null}] ,\n\"d\":\"e\"} "
	var r jsonspan.Reader
	r.Reset([]byte(text))
	var got []string
	note := func(what string, at jsonspan.Span) {
		got = append(got, what+"="+string(at.Of([]byte(text))))
	}
	err := r.Object(func(name []byte) error {
		note(string(name), r.Name())
		at, err := r.Place(func() error {
			if r.Kind() != '[' {
				return r.Skip()
			}
			return r.List(func(i int) error {
				if i == 0 {
					at, err := r.Value()
					note("0", at)
					return err
				}
				return r.Object(func(name []byte) error {
					note(string(name), r.Name())
					return r.Skip()
				})
			})
		})
		note("value", at)
		return err
	})
	want := `a="a" 0=1 bc="b\u0063" value=[1, {"b\u0063":null}] d="d" value="e"`
	joined := strings.Join(got, " ")
	check.That(t, err == nil && joined == want && r.End(), "%s, %v; want %s", joined, err, want)
}

func TestOtherKindsAndBrokenTextsAreErrors(t *testing.T) {
	ignore := func(_, _ []byte) error { return nil }
	for _, text := range []string{`[]`, `"a"`, `1`} {
		check.Error(t, jsonspan.ErrKind, jsonspan.Members([]byte(text), ignore), text)
	}
	check.Error(t, jsonspan.ErrKind, jsonspan.Elements([]byte(`{}`), func([]byte) error { return nil }), "an object as a list")
	for _, text := range []string{``, `{"a":`, `{"a":1,"a":2}`, `{"a"}`, `{"a":01}`} {
		check.That(t, jsonspan.Members([]byte(text), ignore) != nil, "%q is read", text)
	}
}

func TestSpans(t *testing.T) {
	outer, inner := jsonspan.Span{Start: 2, End: 9}, jsonspan.Span{Start: 2, End: 5}
	check.That(t, outer.Holds(inner) && !inner.Holds(outer) && outer.Len() == 7 && !outer.IsZero() && (jsonspan.Span{}).IsZero(), "spans hold others, or not")
}

// FuzzMembers holds what is read against encoding/json, and an edit of nothing
// against the text itself.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[{"c":"d\n"}]}`, ` {"\u0061" : null } `, `[1]`, `{"a":1}{`, "{}\f"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		got := map[string]string{}
		var edits []jsonspan.Edit
		var r jsonspan.Reader
		r.Reset(text)
		err := r.Object(func(name []byte) error {
			at, err := r.Place(r.Skip)
			got[string(name)] = string(at.Of(text))
			edits = append(edits, jsonspan.Edit{At: at, Text: string(at.Of(text))})
			return err
		})
		if err != nil || !r.End() {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q is read, but encoding/json says %v", text, err)
		}
		check.Must(t, len(want) == len(got), "%q: %d members, want %d", text, len(got), len(want))
		for name, value := range want {
			check.Equal(t, string(value), got[name], text, name, value)
		}
		same := jsonspan.AppendEdited(nil, text, 0, len(text), edits)
		check.That(t, bytes.Equal(same, text) && bytes.Equal(text, before), "%q became %q", text, same)
	})
}

func ExampleAppendEdited() {
	text := []byte(`{"size":10,"query":{}}`)
	edits := []jsonspan.Edit{{At: jsonspan.Span{Start: 1, End: 1}, Text: `"from":0,`}, {At: jsonspan.Span{Start: 8, End: 10}, Text: "100"}}
	fmt.Printf("%s\n", jsonspan.AppendEdited(nil, text, 0, len(text), edits))
	// Output: {"from":0,"size":100,"query":{}}
}
