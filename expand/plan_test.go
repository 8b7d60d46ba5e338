package expand

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand/form"
)

// shown returns a line for each clause and field of a plan, with its form and
// the terms that are added.
func shown(p *form.Plan) string {
	var b strings.Builder
	for i := range p.Clauses {
		c := &p.Clauses[i]
		b.WriteString(c.Parsed.Path)
		switch {
		case c.Reason != "":
			fmt.Fprintf(&b, " (%s)", c.Reason)
		case c.Changed():
			b.WriteString(" " + c.Scoring.String())
		}
		if c.Rescored {
			b.WriteString(" rescored")
		}
		b.WriteByte('\n')
		for k := range c.Fields {
			f := &c.Fields[k]
			b.WriteString("  " + f.Name)
			if f.Reason != "" {
				fmt.Fprintf(&b, " (%s)\n", f.Reason)
				continue
			}
			for n := range f.Added {
				fmt.Fprintf(&b, " %s^%.4g", f.Added[n].Term, p.Boost(c.Scoring, f, &f.Added[n]))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestPlansAreValues compares what is planned with how the plan is shown.
func TestPlansAreValues(t *testing.T) {
	for name, tt := range map[string]struct {
		body   string
		change func(o *Profile)
		want   string
	}{
		"saturated": {carRental, func(o *Profile) { o.NoRescore = true }, `query.match saturated
  body automobile^0.2806 lease^0.1243 hire^0.1094
`},
		"rescored": {carRental, func(*Profile) {}, `query.match saturated rescored
  body automobile^0.2806 lease^0.1243 hire^0.1094
`},
		"linear": {carRental, func(o *Profile) { o.Scoring = form.Linear }, `query.match linear
  body automobile^0.1471 lease^0.07429 hire^0.09752
`},
		"found for a rerank": {carRental, soft, `query.match linear
  body automobile^0.5884 lease^0.2972 hire^0.3901
`},
		"several clauses": {
			`{"query":{"bool":{"must":[{"match":{"body":"car"}},{"multi_match":{"query":"cheap","fields":["title","sku"]}}],"filter":{"term":{"a":1}}}}}`,
			func(o *Profile) { o.Scoring = form.Grouped }, `query.bool.must[0].match grouped
  body automobile^0.361 lease^0.00528
query.bool.must[1].multi_match grouped
  title hire^0.08297
  sku (not_text)
query.bool.filter (not_scoring)
`,
		},
		"nothing to add": {`{"query":{"match":{"body":"zebra"}}}`, func(*Profile) {}, `query.match
  body (no_neighbors)
`},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			e := New(c, m, with(tt.change))
			mem := new(memory)
			s, why := parse(&Request{Body: []byte(tt.body)}, &e.profile, &mem.parser)
			if why != "" {
				t.Fatal(why)
			}
			a := &asker{sources: e.sources, s: s, m: mem, pins: e.pin(e.profile.Mode), together: 1}
			_, plan, err := a.rewrite(t.Context(), e.measure(a))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shown(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
