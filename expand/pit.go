package expand

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/jsonspan"
)

// How points in time work: all pages reuse the expansion of the first page,
// even if the matrix or the statistics change meanwhile. So scores stay stable
// and search_after finds its place. If the first page failed and went out
// unchanged, all pages do.

const (
	// maxPITBytes is about how much memory the remembered pages use: some thousand
	// searches.
	maxPITBytes = 16 << 20
	// pitTime is how long a page is remembered after its last use. Clients renew a
	// point in time with every page, mostly for some minutes.
	pitTime = 30 * time.Minute
)

// A pitKey identifies a search on a point in time by a hash of the rewritten
// members of its body. Pages differ in other members, such as search_after.
type pitKey struct {
	expander any
	search   [sha256.Size]byte
	// feedback says that the first hits were known.
	feedback bool
}

// A firstPage is the result of the first search on a point in time. It is
// immutable and keeps no memory of the request.
type firstPage struct {
	// failed says that the search was sent unchanged because of an error.
	failed bool
	// members are the rewritten body members by name, nil if nothing was
	// rewritten; then reason says why.
	members map[string]string
	reason  reason.Reason
	// needsDFS says that the search needs the statistics of all shards. filtered
	// says that an alias shows the client only some documents.
	needsDFS, filtered bool
	how                string
	enough             Enough
	clauseCount        int
	// clauses is the JSON of the explanations.
	clauses []byte
}

// newPITs returns the cache of first pages.
func newPITs() *cache.Cache[pitKey] {
	return cache.New(cache.Options[pitKey]{
		Bytes: maxPITBytes,
		Cost: func(_ pitKey, page any) int {
			p := page.(*firstPage)
			n := len(p.clauses)
			for name, text := range p.members {
				n += len(name) + len(text)
			}
			return n
		},
		Idle: func(any) time.Duration { return pitTime },
	})
}

// A member is a top-level member of a body.
type member struct {
	name string
	at   jsonspan.Span
}

// membersOf returns the members of a body that was parsed before.
func membersOf(body []byte) (members []member) {
	var r jsonspan.Reader
	r.Reset(body)
	_ = r.Object(func(name []byte) error {
		m := member{name: string(name)}
		var err error
		m.at, err = r.Value()
		members = append(members, m)
		return err
	})
	return members
}

// pageKey identifies a search by everything that its rewriting depends on.
// White space and the order of members do not count. With feedback each slice
// has its own key, because slices arrive at the same time and the first pass of
// one may fail.
func pageKey(expander any, s *search, feedback bool) pitKey {
	rewritten := func(at jsonspan.Span) bool {
		for i := range s.Clauses {
			if at.Holds(s.Clauses[i].At) && s.Clauses[i].Role != dsl.Note {
				return true
			}
		}
		for i := range s.Highlights {
			if h := s.Highlights[i].At; at.Start < h && h <= at.End {
				return true
			}
		}
		return false
	}
	members := membersOf(s.Body)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var raw []byte
	add := func(text []byte) { raw = append(binary.AppendUvarint(raw, uint64(len(text))), text...) }
	add([]byte(s.PIT.ID))
	for _, m := range members {
		if m.name == "runtime_mappings" || m.name == "slice" && feedback || rewritten(m.at) {
			value := jsontext.Value(slices.Clone(m.at.Of(s.Body)))
			_ = value.Canonicalize() // else the value counts as written
			add([]byte(m.name))
			add(value)
		}
	}
	noTotal := s.req.Fixed == reason.Endpoint
	for _, flag := range []bool{
		s.unscored, s.Scores.Min, s.Scores.Sorted, s.Scores.FirstOnly, s.KNN, s.besideVectors(), s.OwnRescore, s.named, s.order, noTotal,
	} {
		if flag {
			raw = append(raw, '1')
		} else {
			raw = append(raw, '0')
		}
	}
	return pitKey{expander: expander, search: sha256.Sum256(raw), feedback: feedback}
}

// newPage returns what to remember of a search and its result.
func newPage(s *search, res *Result, needsDFS, filtered bool) *firstPage {
	p := &firstPage{reason: res.Reason, needsDFS: needsDFS, filtered: filtered, how: res.Parts[0].How, enough: res.Parts[0].Enough, clauseCount: res.ClauseCount}
	p.enough.Page = 0                        // every page has the total
	p.clauses, _ = json.Marshal(res.Clauses) // marshaling these types cannot fail
	if !res.Rewritten {
		return p
	}
	p.members = map[string]string{}
	for _, m := range membersOf(res.Body) { // all members, rewritten or not
		p.members[m.name] = string(m.at.Of(res.Body))
	}
	for _, m := range membersOf(s.Body) {
		if p.members[m.name] == string(m.at.Of(s.Body)) {
			delete(p.members, m.name)
		}
	}
	return p
}

// result returns the result for a later page.
func (p *firstPage) result(s *search) *Result {
	res := &Result{Rewritten: p.members != nil, Parts: []Part{{Index: s.req.Index, How: p.how, Enough: p.enough}}, Reason: p.reason, ClauseCount: p.clauseCount}
	if s.Hits.Sliced { // its total tells nothing of the others
		res.Parts[0].Enough = Enough{}
	}
	_ = json.Unmarshal(p.clauses, &res.Clauses)
	if !res.Rewritten {
		return res
	}
	var edits []jsonspan.Edit
	for _, m := range membersOf(s.Body) {
		if text, ok := p.members[m.name]; ok {
			edits = append(edits, jsonspan.Edit{At: m.at, Text: text})
		}
	}
	res.Body = jsonspan.AppendEdited(nil, s.Body, 0, len(s.Body), edits)
	res.RawQuery = s.rawQuery(p.needsDFS, false)
	return res
}
