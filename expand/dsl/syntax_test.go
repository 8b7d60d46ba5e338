package dsl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// shown returns a part as a text in which + stands for must and - for must_not.
func (p *part) shown() string {
	var b strings.Builder
	b.WriteString(map[occur]string{must: "+", mustNot: "-"}[p.occur])
	switch {
	case p.parts != nil:
		var parts []string
		for i := range p.parts {
			parts = append(parts, p.parts[i].shown())
		}
		fmt.Fprintf(&b, "(%s)", strings.Join(parts, " "))
	case p.words != "":
		fmt.Fprintf(&b, "%s[%s]", p.field, p.words)
	default:
		b.WriteString(p.field + "<" + p.raw + ">")
	}
	if p.boost != 1 && p.boost != 0 {
		fmt.Fprintf(&b, "^%v", p.boost)
	}
	return b.String()
}

// That parts in such places find the same documents with the same scores is
// tested on real engines by e2e.
func TestTextsWithOperatorsAreTakenApart(t *testing.T) {
	for syntax, tests := range map[string]map[string]string{
		"query_string": {
			`car rental`:                   `([car rental])`,
			`car AND rental`:               `(+[car] +[rental])`,
			`a b c AND d e f`:              `([a b] +[c] +[d] [e f])`,
			`a OR b AND c`:                 `([a] +[b] +[c])`,
			`+a -b NOT c !d`:               `(+[a] -<b> -<c> -<d>)`,
			`a && b || c`:                  `(+[a] +[b] [c])`,
			`title:car^2 (a OR b)^3`:       `(title[car]^2 ([a] [b])^3)`,
			`title:(a body:b)`:             `((title[a] body[b]))`,
			`"a b"~2 c* /d/ [1 TO 2] e~ f`: `(<"a b"~2> <c*> </d/> <[1 TO 2]> <e~> [f])`,
			`wi\-fi\: c\*`:                 `([wi-fi: c*])`,
			`t*\*:a b`:                     ``,
			`_exists_:a b`:                 `(<_exists_:a> [b])`,
			`a\ b c`:                       `([a b c])`,
			`a - b`:                        `([a] <\-> [b])`,
			`a:- b`:                        ``,
			`>10 a`:                        `(<>10 a>)`,
			`a n:>10`:                      `([a] <n:>10>)`,
			`a n:(>10)`:                    ``,
			`a n:(\>10 c)`:                 ``,
			`R&D a=b x|y AND c`:            `([R&D a=b] +[x|y] +[c])`,
			`a (-b)`:                       `([a] <(-b)>)`,
			`a (b`:                         ``,
			`a) b`:                         ``,
			`a AND`:                        ``,
			`AND a`:                        ``,
			`"a`:                           ``,
			`a^x b`:                        ``,
			`a~2b`:                         ``,
			`+-a`:                          ``,
			`a OR -b AND c`:                ``,
			`\u0041 b`:                     ``,
			`a\`:                           ``,
		},
		"query_string and": {
			`a b`:        `(+[a b])`,
			`a OR b c`:   `([a] [b] +[c])`,
			`a b OR +c`:  `(+[a] [b] [c])`,
			`a -b (c d)`: `(+[a] -<b> +(+[c d]))`,
		},
		"simple_query_string": {
			`car rental`:       `[car rental]`,
			`a + b | c`:        `((+[a] +[b]) [c])`,
			`a b + c d`:        `((+[a b] +[c]) [d])`,
			`a | b c`:          `([a] [b] [c])`,
			`-a b`:             `(<-a> [b])`,
			`a - b`:            `[a b]`,
			`a --- b -- | c`:   `([a b] [c])`,
			`(a | b) + "c d"`:  `(+([a] [b]) +<"c d">)`,
			`a~2 b* c\+ d`:     `(<a~2> <b*> [c+ d])`,
			`a "b c"~2 d`:      `([a] <"b c"~2> [d])`,
			`("a b"~) "c d"~`:  `(<"a b"~> <"c d"~>)`,
			`-"a b"~ "c d"~ e`: `(<-"a b"~2> <"c d"~2> [e])`,
			`(car)`:            `[car]`,
			`a AND title:b`:    `[a AND title:b]`,
			`a "b c"~2d`:       ``,
			`a (b`:             ``,
			`a) b`:             ``,
			`a () b`:           ``,
			`"a b`:             ``,
			`* a`:              ``,
			`a\`:               ``,
			`(a "(" b)`:        ``,
		},
		"simple_query_string and": {
			`a b | c d`: `(+([a b] [c]) +[d])`,
		},
	} {
		kind, and := strings.CutSuffix(syntax, " and")
		for text, want := range tests {
			parts := map[string]func(string, bool) (*part, error){"query_string": queryParts, "simple_query_string": simpleParts}[kind]
			top, err := parts(text, and)
			got := ""
			if err == nil {
				got = top.shown()
			}
			check.Equal(t, want, got, syntax, text)
		}
	}
}

func TestPartsAreQueriesBesideTheClients(t *testing.T) {
	const text = `{"query_string":{"query":"title:car^2 AND (rental OR \"hire\") -bmw","fields":["a","b^2"],"_name":"n","boost":3,"lenient":true}}`
	const parts = `{"bool":{"must":[{"query_string":{"query":"car","fields":["title"],"lenient":true,"boost":6}},` +
		`{"bool":{"should":[{"query_string":{"query":"rental","fields":["a","b^2"],"lenient":true,"boost":3}},{"query_string":{"query":"\"hire\"","fields":["a","b^2"],"lenient":true,"boost":3}}]}}],` +
		`"must_not":[{"query_string":{"query":"bmw","fields":["a","b^2"],"lenient":true,"boost":3}}]}}`
	const counted = `{"simple_query_string":{"query":"car | rental","fields":["a"],"minimum_should_match":2}}`
	const countedParts = `{"bool":{"should":[{"simple_query_string":{"query":"car","fields":["a"]}},{"simple_query_string":{"query":"rental","fields":["a"]}}]}}`
	for _, tt := range []struct {
		name, query, want string
		same              bool
		clauses           []string
	}{
		{
			"finding", text, `{"dis_max":{"queries":[` + text + `,` + parts + `]}}`, false,
			[]string{"query.query_string query_syntax", "query.query_string.query", "query.query_string.query"},
		},
		{
			"same", text, `{"bool":{"filter":[` + text + `],"should":[` + parts + `]}}`, true,
			[]string{"query.query_string query_syntax", "query.query_string.query", "query.query_string.query"},
		},
		{
			"counted", counted, `{"bool":{"filter":[` + counted + `],"should":[` + countedParts + `]}}`, false,
			[]string{"query.simple_query_string query_syntax", "query.simple_query_string.query", "query.simple_query_string.query"},
		},
		{"one word", `{"query_string":{"query":"(car)"}}`, `{"query_string":{"query":"(car)"}}`, false, []string{"query.query_string"}},
		{"no word", `{"query_string":{"query":"car*"}}`, `{"query_string":{"query":"car*"}}`, false, []string{"query.query_string query_syntax"}},
	} {
		s, why := (&Parser{Apart: true, Same: tt.same}).Parse([]byte(`{"highlight":{},"query":`+tt.query+`}`), new(Parameters))
		check.Must(t, why == "", "%s: %s", tt.name, why)
		check.Equal(t, tt.want, string(s.Query.Of(s.Body)), tt.name)
		check.Equal(t, tt.clauses, found(s), tt.name)
		check.Equal(t, tt.query, string(s.Highlights[0].Query(0, s.Body)), tt.name+" highlighted")
	}
}

func TestWordsJoinedByOneOperatorAreWordsInARow(t *testing.T) {
	for query, want := range map[string]string{
		`{"query_string":{"query":"(car AND rental)","default_field":"a"}}`:                             "car rental true",
		`{"query_string":{"query":"(car || rental)^2","default_field":"a","default_operator":"and"}}`:   "car rental false",
		`{"query_string":{"query":"+car +rental","fields":["a^2"],"type":"best_fields"}}`:               "car rental true",
		`{"simple_query_string":{"query":"car + rental","fields":["a"]}}`:                               "car rental true",
		`{"simple_query_string":{"query":"car | rental van","fields":["a"]}}`:                           "car rental van false",
		`{"query_string":{"query":"(car rental) AND van","default_field":"a","default_operator":"or"}}`: "",
		`{"query_string":{"query":"car AND rental OR van","default_field":"a"}}`:                        "",
		`{"query_string":{"query":"car AND wi-fi","default_field":"a"}}`:                                "",
		`{"query_string":{"query":"car AND 日本","default_field":"a"}}`:                                   "",
		`{"query_string":{"query":"car AND rental^2","default_field":"a"}}`:                             "",
		`{"query_string":{"query":"car AND b:rental","default_field":"a"}}`:                             "",
		`{"query_string":{"query":"car AND rental","fields":["a","b"]}}`:                                "",
		`{"query_string":{"query":"car AND rental","fields":["a*"]}}`:                                   "",
		`{"query_string":{"query":"car AND rental","default_field":"a","type":"phrase"}}`:               "",
		`{"simple_query_string":{"query":"car + rental","fields":["a"],"minimum_should_match":1}}`:      "",
	} {
		s, _ := new(Parser).Parse([]byte(`{"query":`+query+`}`), new(Parameters))
		c, got := &s.Clauses[0], ""
		if c.Reason == "" {
			got = fmt.Sprint(c.Text, " ", c.OperatorAnd)
		}
		check.Equal(t, want, got, query)
	}
}

func TestWhatIsLeftOfATextIsSaid(t *testing.T) {
	for query, want := range map[string]string{
		`{"query_string":{"query":"car AND \"red car\" NOT bmw OR big*"}}`:                     `"red car", -bmw, big*`,
		`{"query_string":{"query":"car AND (red"}}`:                                            `car AND (red`,
		`{"query_string":{"query":"car [1 TO"}}`:                                               `[1 TO`,
		`{"query_string":{"query":"car AND red","escape":true}}`:                               `escape`,
		`{"query_string":{"query":"car AND red","minimum_should_match":1}}`:                    `minimum_should_match`,
		`{"simple_query_string":{"query":"car + red","flags":"OR"}}`:                           `flags`,
		`{"simple_query_string":{"query":"car + red","flags":"all"}}`:                          ``,
		`{"simple_query_string":{"query":"` + strings.Repeat("a + b | ", 5) + `c"}}`:           strings.Repeat("a + b | ", 5) + "c",
		`{"simple_query_string":{"query":"car + red | big"}}`:                                  `+`,
		`{"query_string":{"query":"` + strings.Repeat("a* ", 20) + `b"}}`:                      strings.Repeat("a*, ", maxLeft-1) + "a*",
		`{"query_string":{"query":"car AND ` + strings.Repeat("(", 100) + `car` + `"}}`:        strings.Repeat("(", 91) + "car",
		`{"query_string":{"query":"` + strings.Repeat("car AND ", maxSyntax/8) + `red"}}`:      strings.Repeat("car AND ", 13)[:maxLeftPart],
		`{"simple_query_string":{"query":"` + strings.Repeat("car +a", maxParts) + ` \"a\""}}`: `a "a"`,
	} {
		s, _ := (&Parser{Apart: true}).Parse([]byte(`{"query":`+query+`}`), new(Parameters))
		check.Equal(t, want, strings.Join(s.Clauses[0].Left, ", "), query[:min(len(query), 100)])
	}
}

// FuzzQueryStrings holds that any text is taken apart or left alone, that the
// client's query stays as it came, and that bare words are read again as such.
func FuzzQueryStrings(f *testing.F) {
	for _, text := range []string{`car AND (red OR "big boat"~2) -t:[1 TO 2}^2`, `a + b | -c "d" e~1 f*`, `((((`, `\`, `a\"b^`, "a\u3000b !", `+ - ! && ||`} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, and bool) {
		quoted, _ := json.Marshal(text)
		for kind, parts := range map[string]func(string, bool) (*part, error){"query_string": queryParts, "simple_query_string": simpleParts} {
			query := `{"` + kind + `":{"query":` + string(quoted) + `}}`
			s, why := (&Parser{Apart: true}).Parse([]byte(`{"query":`+query+`}`), new(Parameters))
			if why != "" {
				t.Fatalf("%s: %s", query, why)
			}
			if !json.Valid(s.Body) || !strings.Contains(string(s.Body), query) {
				t.Fatalf("%s became %s", query, s.Body)
			}
			top, err := parts(text, and)
			if err != nil {
				continue
			}
			top.each(func(p *part) {
				if p.words == "" {
					return
				}
				again, err := parts(p.raw, and)
				if err != nil || again.alone().words != p.words {
					t.Fatalf("%q: %q is read as %v, %v", text, p.raw, again, err)
				}
			})
		}
	})
}
