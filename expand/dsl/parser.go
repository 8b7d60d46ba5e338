package dsl

import (
	"bytes"
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// Errors for bodies that are left alone.
var (
	errTooDeep = errors.New("queries nested too deep")
	errNotJSON = errors.New("not a JSON object")
)

// Parse parses a body, which must be one JSON object, with the parameters of
// its request, which override it. It returns the reason to leave the body
// alone, or "", and what was read so far. The result is valid until the next
// call.
func (p *Parser) Parse(body []byte, parameters *Parameters) (*Search, reason.Reason) {
	p.wholes = nil
	s, why := p.parse(body, parameters)
	if why != "" || !p.Apart {
		return s, why
	}
	if apart := p.parseApart(parameters); apart != nil {
		return apart, ""
	}
	if p.wholes == nil {
		return s, ""
	}
	p.wholes = nil
	return p.parse(body, parameters)
}

func (p *Parser) parse(body []byte, parameters *Parameters) (*Search, reason.Reason) {
	p.path = p.path[:0]
	p.texts = 0
	p.phrases = 0
	p.notes = 0
	p.standards = p.standards[:0]
	p.filtering = false
	p.search = Search{Body: body, Clauses: p.search.Clauses[:0]}
	p.json.Reset(body)
	if !p.isObject() {
		return &p.search, reason.NotJSON
	}
	switch err := p.members(p.member); {
	case errors.Is(err, errTooDeep):
		return &p.search, reason.TooDeep
	case err != nil || !p.json.End():
		return &p.search, reason.NotJSON
	}
	s := &p.search
	s.markHits(p.standards)
	parameters.apply(s)
	for i := range s.Clauses {
		if s.Scores.FirstOnly {
			s.Clauses[i].Matches = Fixed
		}
	}
	return s, ""
}

// Release drops the last body but keeps the memory for the next.
func (p *Parser) Release() {
	p.json.Reset(nil)
	clear(p.search.Clauses)
	p.search = Search{Clauses: p.search.Clauses[:0]}
}

func (p *Parser) member(name []byte) (err error) {
	s := &p.search
	switch string(name) {
	case "query":
		s.Query, err = p.json.Place(func() error { return p.query(0) })
		return err
	case "highlight":
		return p.highlight()
	case "retriever":
		s.NoRescore = reason.Retriever
		return p.retriever(0)
	case "rescore":
		s.NoRescore, s.OwnRescore = reason.Rescore, true
		return p.oneOrMore(p.rescore)
	case "collapse":
		s.NoRescore, s.Hits.Collapsed = reason.Collapse, true
		return p.collapse()
	case "aggs", "aggregations":
		at, err := p.json.Place(func() error { return p.aggregations(0) })
		s.Scores.Aggregated = slices.ContainsFunc([]string{"top_hits", "top_metrics", "sampler", "_score", "script", `\u`},
			func(name string) bool { return bytes.Contains(at.Of(s.Body), []byte(name)) })
		return err
	}
	v, err := p.json.Value()
	if err != nil {
		return err
	}
	return s.option(string(name), v)
}

// lowestFirst matches a sort whose first key is the ascending score.
var lowestFirst = regexp.MustCompile(`^[\s\[{]*"_score"\s*:\s*(\{\s*"order"\s*:\s*)?"(?i:asc)"`)

// option reads a member of the body without a query to expand.
func (s *Search) option(name string, at jsonspan.Span) (err error) {
	raw := at.Of(s.Body)
	switch name {
	case "runtime_mappings":
		s.RuntimeMappings = at
	case "min_score":
		s.Scores.Min = true
	case "terminate_after":
		s.Scores.FirstOnly = string(raw) != "0"
	case "pit":
		s.PIT.Has = true
		err = jsonspan.Members(raw, func(name, value []byte) (err error) {
			if string(name) == "id" {
				s.PIT.ID, err = text(value)
			}
			return err
		})
	case "sort":
		if string(raw) != "[]" && string(raw) != "null" {
			s.NoRescore = reason.Sort
			_, first, _ := bytes.Cut(raw, []byte(`"`)) // the name of the first key, alone or in an object
			s.Scores.Sorted = !bytes.HasPrefix(first, []byte(`_score"`)) || lowestFirst.Match(raw)
			s.Scores.Key = bytes.Contains(raw, []byte(`"_score"`))
		}
	case "indices_boost":
		s.NoRescore = reason.IndicesBoost
	case "search_after":
		s.NoRescore, s.Hits.After = reason.SearchAfter, true
	case "knn", "rank", "sub_searches":
		s.NoRescore, s.KNN = reason.Vectors, s.KNN || name == "knn"
	case "track_scores":
		s.Scores.Tracked = string(raw) == isTrue
	case "size":
		s.Hits.Size, s.Hits.None = at, string(raw) == "0"
	case "slice":
		s.Hits.Sliced = true
	case "from":
		s.Hits.From = at
	case "stored_fields": // with "_none_" there are no ids
		s.Hits.Bare = s.Hits.Bare || bytes.Contains(raw, []byte("_none_"))
	case "suggest":
		s.Hits.Completed = bytes.Contains(raw, []byte(`"completion"`))
		s.Hits.Bare = s.Hits.Bare || s.Hits.Completed
	case "search_pipeline": // of OpenSearch, which may do anything
		s.Hits.Bare, s.Pipeline = true, at
	case "ext":
		s.Hits.Ext = true
	}
	if err != nil {
		return errNotJSON
	}
	return nil
}

// query reads one query, {"kind": …}, and records its clauses.
func (p *Parser) query(depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	s := &p.search
	first := len(s.Clauses)
	marked := len(s.Highlights)
	kinds := 0
	start := 0
	err := p.members(func(name []byte) error {
		if kinds == 0 {
			// Only white space precedes the name in the object.
			start = bytes.LastIndexByte(s.Body[:p.json.Name().Start], '{')
		}
		kinds++
		return p.kind(string(name), depth)
	})
	switch {
	case err != nil:
		return err
	case kinds != 1: // no engine accepts such a query
		s.Clauses, s.Highlights = s.Clauses[:first], s.Highlights[:marked]
	case len(s.Clauses) == first+1 && s.Clauses[first].At.IsZero():
		s.Clauses[first].At = jsonspan.Span{Start: start, End: p.json.Offset()}
	}
	return nil
}

func (p *Parser) kind(name string, depth int) error {
	s := &p.search
	k, known := kinds[name]
	like := name == "more_like_this"
	s.Scores.Others = s.Scores.Others || (k.read == nil && !k.sums || like) && !p.filtering
	switch {
	case !known:
		return p.leave(cmp.Or(leftAlone[name], reason.Unknown))
	case name == "hybrid" && (!p.Hybrid || string(p.path) != "query.hybrid"): // elsewhere no pipeline sees its scores
		return p.leave(reason.Hybrid)
	case like && !p.MoreLikeThis:
		return p.leave(reason.Other)
	case k.read != nil:
		return p.clause(k, depth)
	case !p.isObject():
		return p.json.Skip()
	}
	if name == "hybrid" {
		s.Hybrid, s.NoRescore = true, reason.Hybrid
	}
	first := len(s.Clauses)
	same, err := p.compound(k, depth)
	for i := first; same && i < len(s.Clauses); i++ {
		s.Clauses[i].Matches = Fixed
	}
	return err
}

// compound reads the members of a query with queries inside. It reports whether
// one more match inside could lower a hit (average, minimum) or lose it.
func (p *Parser) compound(k kind, depth int) (same bool, err error) {
	s, mode := &p.search, k.scoreMode
	boostMode, ofScore := k.boostMode, false
	var query jsonspan.Span
	marked := len(s.Highlights)
	s.ClauseCount++ // such as filters of functions
	err = p.members(func(name []byte) error {
		member := string(name)
		switch {
		case slices.Contains(k.inside, member), p.Filters && member == "filter" && slices.Contains(k.outside, "must_not"):
			outer := p.filtering
			p.filtering = outer || member == "filter"
			defer func() { p.filtering = outer }()
			at, err := p.json.Place(func() error {
				return p.oneOrMore(func() error { return p.inside(depth + 1) })
			})
			if member == "query" {
				query = at
			}
			return err
		case member == "inner_hits":
			return p.hits()
		case slices.Contains(k.outside, member):
			return p.leave(reason.NotScoring)
		case member == "max_children":
			same = true
		case member == "min_score":
			s.Scores.Min = true
		case member == "score_mode" && k.scoreMode != "" && p.json.Kind() == '"': // that of a function_score is of its functions
			return p.word(&mode)
		case member == "boost_mode" && p.json.Kind() == '"':
			return p.word(&boostMode)
		}
		v, err := p.json.Value()
		ofScore = ofScore || scoreInScript.Match(v.Of(s.Body))
		s.ClauseCount += queriesIn(v.Of(s.Body))
		if member == "boost" {
			boost, err := number(v.Of(s.Body))
			s.Scores.Others = s.Scores.Others || err != nil || boost != 1
		}
		return err
	})
	s.mark(marked, query)
	if boostMode == replaces && !ofScore && !p.filtering {
		s.NoRescore = reason.Values
	}
	return same || !p.filtering && (mode == "avg" || mode == "min"), err
}

// scoreInScript finds the score of a text in functions and scripts.
var scoreInScript = regexp.MustCompile(`(^|[^A-Za-z0-9_])_score\b`)

// word reads a string, in which case does not count.
func (p *Parser) word(into *string) error {
	v, err := p.json.Value()
	if err == nil {
		*into, err = text(v.Of(p.search.Body))
		*into = strings.ToLower(*into)
	}
	return err
}

// inside reads a query that stands in another one.
func (p *Parser) inside(depth int) error {
	s, texts := &p.search, p.texts
	at, err := p.json.Place(func() error { return p.query(depth) })
	if s.Hybrid && depth == 1 && s.SubQuery.IsZero() && p.texts > texts {
		s.SubQuery = at
	}
	return err
}

// clause reads a clause that looks for text. Behind the last one that can be
// expanded with the others they are only counted.
func (p *Parser) clause(k kind, depth int) error {
	s := &p.search
	v, err := p.json.Value()
	if err != nil {
		return err
	}
	if p.texts > MaxFields {
		return nil
	}
	s.Clauses = append(s.Clauses, Clause{Path: string(p.path), Depth: depth, Boost: 1, Additive: true})
	c := &s.Clauses[len(s.Clauses)-1]
	k.read(c, v.Of(s.Body))
	if w := p.wholeAt(v); w != nil {
		c.Part, c.Path = true, w.path+".query"
		c.Matches = max(c.Matches, w.matches)
		if c.Reason == reason.Syntax || c.Reason == reason.LikeDocuments { // the client's query, or a part that is not expanded
			s.Clauses = s.Clauses[:len(s.Clauses)-1]
			s.noteWhole(w, v, c.textClauses())
			return nil
		}
	}
	switch {
	case p.filtering:
		c.Role = InFilter
	case c.Phrase && !p.Phrases:
		c.Role = OnlyReadings
	}
	if !p.Readings || c.Prefix && !c.Phrase || p.phrases == maxPhrases {
		c.Reason = cmp.Or(c.Reason, c.Unrelated())
	}
	s.Scores.Others = s.Scores.Others || !p.filtering && (c.Reason != "" || c.Prefix || c.Fuzzy || c.Role == OnlyReadings)
	switch {
	case c.Reason == "" && c.Unrelated() != "":
		p.phrases++
	case c.Reason == "":
		p.texts++
	case p.notes < maxNotes:
		p.notes++
	default:
		s.Clauses = s.Clauses[:len(s.Clauses)-1]
	}
	return nil
}

// leave skips a query, or a list of queries, and records why.
func (p *Parser) leave(why reason.Reason) error {
	s := &p.search
	v, err := p.json.Value()
	if err != nil {
		return err
	}
	s.ClauseCount += queriesIn(v.Of(s.Body))
	if w := p.wholeAt(v); w != nil {
		s.noteWhole(w, v, 0)
		return nil
	}
	if p.notes < maxNotes && string(v.Of(s.Body)) != "[]" {
		p.notes++
		s.Clauses = append(s.Clauses, Clause{Path: string(p.path), Reason: why, Role: Note})
	}
	return nil
}

// queriesIn is an upper estimate of the number of innermost queries in a value:
// each takes two objects, {"kind": {…}}, or one in its parent's object.
func queriesIn(raw []byte) int { return 1 + bytes.Count(raw, []byte("{"))/2 }

// retriever reads a retriever, {"kind": …}, or a list entry with one in its
// member "retriever".
func (p *Parser) retriever(depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	return p.members(func(name []byte) error {
		if string(name) == "retriever" {
			return p.retriever(depth + 1)
		}
		inside := retrievers[string(name)]
		p.search.Fused = p.search.Fused || inside == "retrievers"
		p.search.Compound = p.search.Compound || inside != "" && inside != "query"
		return p.members(func(name []byte) error {
			p.search.Scores.Min = p.search.Scores.Min || inside != "" && string(name) == "min_score"
			switch {
			case inside == "":
				return p.json.Skip()
			case inside == "retrievers" && string(name) == "query": // with "fields": the engine makes the retrievers
				return p.leave(reason.RetrieverFields)
			case string(name) == "collapse":
				p.search.Hits.Collapsed = true
				return p.collapse()
			case inside == "query" && string(name) != inside: // such as sort and search_after, which act as in a body
				at, err := p.json.Value()
				if err != nil {
					return err
				}
				return p.search.option(string(name), at)
			case string(name) != inside:
				return p.json.Skip()
			case inside == "query":
				at, err := p.json.Place(func() error { return p.query(depth) })
				p.standards = append(p.standards, at)
				return err
			}
			return p.oneOrMore(func() error { return p.retriever(depth + 1) })
		})
	})
}

// rescore reads one of the body's own rescorers.
func (p *Parser) rescore() error {
	if !p.Rescores {
		return p.json.Skip()
	}
	return p.only("query", func() error {
		return p.only("rescore_query", func() error { return p.query(1) })
	})
}
