package answer

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// manyHits are enough for every search: engines count so far by default.
const manyHits = 10_000

// A Total says how much a search finds.
type Total struct {
	Hits    int64 // -1 if the answer does not say
	AtLeast bool  // it finds so many hits or more, as the total says or the hits that were read
	Page    int   // how many hits the answer has, -1 if that was not read
	Failed  bool  // the search failed, at least on one shard, or timed out
}

// ReadTotals returns the totals in the answer to a search, a count or several
// searches. Of a single search it reads only the beginning: up to the total,
// or to the end of the hits where the total is missing or "at least" less
// than manyHits.
func ReadTotals(answer io.Reader, endpoint expand.Endpoint) (totals []Total, err error) {
	d := newDecoder(answer)
	if endpoint != expand.EndpointMultiSearch {
		t, err := readTotal(d, errSeen)
		if errors.Is(err, errSeen) {
			err = nil
		}
		return []Total{t}, err
	}
	err = jsonspan.EachMember(d, func(name string) error {
		if name != "responses" {
			return d.SkipValue()
		}
		return jsonspan.EachElement(d, func() error {
			t, err := readTotal(d, nil)
			totals = append(totals, t)
			return err
		})
	})
	return totals, err
}

// readTotal reads the answer to one search at d. Behind its total it returns
// seen.
func readTotal(d *jsontext.Decoder, seen error) (t Total, err error) {
	t = Total{Hits: -1, Page: -1}
	number := func() (n int64, err error) {
		token, err := d.ReadToken()
		if err == nil {
			n, err = strconv.ParseInt(token.String(), 10, 64)
		}
		return n, err
	}
	err = jsonspan.EachMember(d, func(name string) (err error) {
		kind := d.PeekKind()
		switch {
		case name == "error", name == "timed_out" && kind == 't':
			t.Failed = true
		case name == "count" && kind == '0':
			t.Hits, err = number()
			return err
		case name == "_shards" && kind == '{':
			return jsonspan.EachMember(d, func(name string) error {
				if name != "failed" || d.PeekKind() != '0' {
					return d.SkipValue()
				}
				n, err := number()
				t.Failed = t.Failed || n > 0
				return err
			})
		case name == "hits" && kind == '{':
			return jsonspan.EachMember(d, func(name string) error {
				switch kind := d.PeekKind(); {
				case name == "total" && kind == '0':
					t.Hits, err = number()
				case name == "total" && kind == '{':
					err = jsonspan.EachMember(d, func(name string) (err error) {
						switch {
						case name == "value":
							t.Hits, err = number()
							return err
						case name == "relation" && d.PeekKind() == '"':
							relation, err := d.ReadToken()
							t.AtLeast = err == nil && relation.String() == "gte"
							return err
						}
						return d.SkipValue()
					})
				case name == "hits" && kind == '[': // the total comes before them
					n := 0
					err = jsonspan.EachElement(d, func() error {
						if d.PeekKind() == '{' {
							n++
						}
						return d.SkipValue()
					})
					if err == nil {
						t.Page = n
					} else if seen != nil { // only the beginning is here
						t.Hits, t.AtLeast = max(t.Hits, int64(n)), true
						return seen
					}
				default:
					return d.SkipValue()
				}
				if err == nil && (t.Page >= 0 || t.Hits >= 0 && !t.AtLeast || t.Hits >= manyHits) {
					err = seen
				}
				return err
			})
		}
		return d.SkipValue()
	})
	return t, err
}

// ReplaceSearches replaces the answers to some of several searches by those in
// others. It returns nil if one of the two is not such an answer.
func ReplaceSearches(answer, others []byte, some []int) []byte {
	at, by := answersAt(answer), answersAt(others)
	if len(by) != len(some) || len(some) == 0 || some[len(some)-1] >= len(at) {
		return nil
	}
	edits := make([]jsonspan.Edit, 0, len(some))
	for i, k := range some {
		edits = append(edits, jsonspan.Edit{At: at[k], Text: string(by[i].Of(others))})
	}
	return jsonspan.AppendEdited(make([]byte, 0, len(answer)+len(others)), answer, 0, len(answer), edits)
}

// answersAt returns the places of the answers to the searches of a request.
func answersAt(answer []byte) (at []jsonspan.Span) {
	var r jsonspan.Reader
	r.Reset(answer)
	err := r.Object(func(name []byte) error {
		if string(name) != "responses" || at != nil {
			return r.Skip()
		}
		return r.List(func(int) error {
			span, err := r.Value()
			at = append(at, span)
			return err
		})
	})
	if err != nil {
		return nil
	}
	return slices.Clip(at)
}
