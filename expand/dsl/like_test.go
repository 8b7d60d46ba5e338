package dsl

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestPartsOfAMoreLikeThis(t *testing.T) {
	const options = `,"min_term_freq":1,"boost":2`
	for like, want := range map[string][]string{
		`"fields":["a"],"like":"x"`:               {},
		`"fields":["a"],"like":{"doc":{"b":"x"}}`: {},
		`"fields":["a"],"like":[{"_id":"1"}]`:     {},
		`"like":["x",{"_id":"1"}]`:                {},
		`"fields":["a","b"],"like":["x",{"_id":"1"}],"unlike":"u"`: {
			`"like":["x"],"unlike":["u"],"fields":["a","b"]`,
			`"like":[{"_id":"1"}],"unlike":["u"],"fields":["a"]`, `"like":[{"_id":"1"}],"fields":["b"]`,
		},
		`"like":[{"doc":{"b":"x","c.d":["y"],"n":1,"e":null}},{"doc":{"c":{"d":"z"}}}]`: {
			`"like":["x"],"fields":["b"]`, `"like":["y","z"],"fields":["c.d"]`,
		},
		`"fields":["a","b"],"analyzer":"w\"s","like":["x\n",{"doc":{"a":"y","b":"z"}}],"unlike":"u"`: {
			`"like":["x\n"],"unlike":["u"],"fields":["a","b"],"analyzer":"w\"s"`,
			`"like":["y"],"unlike":["u"],"fields":["a"]`, `"like":["z"],"fields":["b"]`,
		},
	} {
		query := `{"more_like_this":{` + like + options + `}}`
		s, why := (&Parser{Apart: true, MoreLikeThis: true}).Parse([]byte(`{"query":`+query+`}`), new(Parameters))
		check.Must(t, why == "", "%s: %s", query, why)
		if len(want) > 0 {
			for i := range want {
				want[i] = `{"more_like_this":{` + want[i] + options + `}}`
			}
			query = `{"bool":{"filter":[` + query + `],"should":[{"bool":{"should":[` + strings.Join(want, ",") + `]}}]}}`
		}
		check.Equal(t, `{"query":`+query+`}`, string(s.Body), like)
	}
}

// FuzzLike holds that a more_like_this stays as it came whatever it is like.
func FuzzLike(f *testing.F) {
	for _, like := range []string{
		`"car"`, `["car",{"doc":{"title":"red","o":{"body":["a",{"b":"c"}]}}}]`, `{"_id":"1"}`, `[[]]`, `{"doc":5}`, `{"doc":{"":""}}`, `null`,
	} {
		f.Add(like, `"car"`)
		f.Add(`{"doc":{"title":"a","body":"b"}}`, like)
	}
	f.Fuzz(func(t *testing.T, like, unlike string) {
		if !json.Valid([]byte(like)) || !json.Valid([]byte(unlike)) {
			return // the body would be no JSON
		}
		query := `{"more_like_this":{"fields":["body"],"like":` + like + `,"unlike":` + unlike + `}}`
		s, why := (&Parser{Apart: true, MoreLikeThis: true}).Parse([]byte(`{"query":`+query+`}`), new(Parameters))
		if !strings.Contains(string(s.Body), query) || why == "" && !json.Valid(s.Body) {
			t.Fatalf("%s became %s", query, s.Body)
		}
	})
}
