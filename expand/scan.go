package expand

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxQueryDepth is the deepest nesting of queries that is followed. The
// engines refuse more than 30 (Elasticsearch) and 20 (OpenSearch) levels of
// their own.
const maxQueryDepth = 30

// Errors of a scan that say why a whole body is left alone.
var (
	errTooDeep = errors.New("queries nested too deep")
	errNotJSON = errors.New("not a JSON object")
)

// A span is the range [start, end) of bytes of the body.
type span struct{ start, end int }

func (s span) of(body []byte) []byte { return body[s.start:s.end] }

func (s span) isZero() bool { return s.end == 0 }

// A scan is what a search body says that matters to its expansion.
type scan struct {
	// clauses are the clauses found, in the order of the body.
	clauses []clause
	// query is the value of "query", zero where there is none.
	query span
	// standards are the queries of the standard retrievers, and highlights the
	// places that have words marked, both in the order of the body.
	standards  []span
	highlights []highlight
	// runtimeMappings is the value of "runtime_mappings".
	runtimeMappings span
	// pit is the id of the body's point in time; the flag says that it has one.
	pit    string
	hasPIT bool
	// What the body says of scores and hits.
	minScore, sorted, trackScores bool
	// terminates says that only the first matches are looked at, in the order of
	// the index: more matches could take their places.
	terminates bool
	// noHits says that the size of the page is 0.
	noHits bool
	// scoredAggregations says that the body has aggregations which may depend on
	// scores.
	scoredAggregations bool
	// unscored says that nothing in the answer depends on scores.
	unscored bool
	// bar is why the hits cannot be rescored, "" where they can; hasRescore says
	// that the body has a rescore of its own, whatever else bars another.
	bar        Reason
	hasRescore bool
	// page says which hits come back, and with what.
	page page
	// otherScores says that queries score which are no texts to compare.
	otherScores bool
	// leaves estimates from above how many clauses the queries have that are
	// not in clauses.
	leaves int
}

// fields returns the number of fields of all clauses to expand; one that names
// none has at least one.
func (s *scan) fields() int {
	n := 0
	for i := range s.clauses {
		if s.clauses[i].reason == "" {
			n += max(len(s.clauses[i].targets), 1)
		}
	}
	return n
}

// A scanner reads a body once from front to back.
type scanner struct {
	body   []byte
	buffer bytes.Buffer
	dec    jsontext.Decoder
	path   []byte
	// nameStart is where the name of the member being read begins.
	nameStart int
	// phrases and rescores say that phrases and the body's own rescore queries
	// are expanded.
	phrases, rescores bool
	// texts is the number of clauses to expand, notes that of the others, which
	// only tell why they are left alone.
	texts, notes int
	scan         scan
}

// run reads body, which must be one JSON object. It returns [errNotJSON] or
// [errTooDeep].
func (s *scanner) run(body []byte) error {
	s.body = body
	s.path, s.texts, s.notes = s.path[:0], 0, 0
	s.scan = scan{clauses: s.scan.clauses[:0]}
	s.buffer = *bytes.NewBuffer(body) // the decoder reads it in place
	s.dec.Reset(&s.buffer)
	err := s.object(s.member)
	if errors.Is(err, errTooDeep) {
		return err
	}
	if err != nil {
		return errNotJSON
	}
	if _, err := s.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errNotJSON
	}
	s.scan.markHits()
	return nil
}

// object reads an object and calls f for each member with the name, quotes and
// escapes taken off. f has to read exactly the value.
func (s *scanner) object(f func(name []byte) error) error {
	if s.dec.PeekKind() != '{' {
		return errNotJSON
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for s.dec.PeekKind() != '}' {
		name, err := s.value()
		if err != nil {
			return err
		}
		s.nameStart = name.start
		n, err := plainName(name.of(s.body))
		if err != nil {
			return err
		}
		if err := f(n); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

// plainName returns a name without its quotes and escapes.
func plainName(quoted []byte) ([]byte, error) {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, nil
	}
	return jsontext.AppendUnquote(nil, quoted)
}

// value reads any value whole and returns where it stands.
func (s *scanner) value() (span, error) {
	v, err := s.dec.ReadValue()
	if err != nil {
		return span{}, err
	}
	end := int(s.dec.InputOffset())
	return span{end - len(v), end}, nil
}

// member takes one member of the body.
func (s *scanner) member(name []byte) error {
	switch string(name) {
	case "query":
		return s.topQuery()
	case "highlight":
		return s.highlight()
	case "retriever":
		s.scan.bar = ReasonRetriever
		s.path = append(s.path, name...)
		err := s.retriever(0)
		s.path = s.path[:0]
		return err
	case "rescore":
		s.scan.bar, s.scan.hasRescore = ReasonRescore, true
		s.path = append(s.path, name...)
		err := s.list(s.rescore)
		s.path = s.path[:0]
		return err
	case "collapse":
		s.scan.bar = ReasonCollapse
		return s.collapse()
	case "aggs", "aggregations":
		at, err := s.place(func() error { return s.aggregations(0) })
		s.scan.scoredAggregations = showsScores(at.of(s.body))
		return err
	}
	v, err := s.value()
	if err != nil {
		return err
	}
	return s.scan.option(name, v, v.of(s.body))
}

// option takes a member of the body that holds no query to expand.
func (s *scan) option(name []byte, at span, raw []byte) (err error) {
	switch string(name) {
	case "runtime_mappings":
		s.runtimeMappings = at
	case "min_score":
		s.minScore = true
	case "terminate_after":
		s.terminates = string(raw) != "0"
	case "pit":
		err = members(raw, func(name, value []byte) (err error) {
			if string(name) == "id" {
				s.pit, err = text(value)
			}
			return err
		})
		s.hasPIT = true
	case "size":
		s.noHits = string(raw) == "0"
		s.page.size = at
	case "sort":
		if string(raw) != "[]" && string(raw) != "null" {
			s.bar = ReasonSort
			s.sorted = !bytes.Contains(raw, []byte(`"_score"`))
		}
	case "indices_boost":
		s.bar = ReasonIndicesBoost
	case "search_after":
		s.bar = ReasonSearchAfter
	case "knn", "rank", "sub_searches":
		s.bar = ReasonVectors
	case "track_scores":
		s.trackScores = string(raw) == "true"
	default:
		s.page.option(name, at, raw)
	}
	if err != nil {
		return errNotJSON
	}
	return nil
}

// showsScores reports whether aggregations may depend on the scores of hits.
func showsScores(aggregations []byte) bool {
	for _, name := range []string{"top_hits", "top_metrics", "sampler", "_score", "script", `\u`} {
		if bytes.Contains(aggregations, []byte(name)) {
			return true
		}
	}
	return false
}

func (s *scanner) topQuery() error {
	s.path = append(s.path, "query"...)
	at, err := s.place(func() error { return s.query(0) })
	s.scan.query = at
	s.path = s.path[:0]
	return err
}

// place returns where the value of a member stands that f reads.
func (s *scanner) place(f func() error) (span, error) {
	s.dec.PeekKind()
	before := int(s.dec.InputOffset())
	if err := f(); err != nil {
		return span{}, err
	}
	end := int(s.dec.InputOffset())
	// What lies between a name and its value is white space and one colon.
	start := before + bytes.IndexAny(s.body[before:end], "{[\"tfn-0123456789")
	return span{start, end}, nil
}

// query reads one query, {"kind": …}, and notes the clauses in it.
func (s *scanner) query(depth int) error {
	if depth > maxQueryDepth {
		return errTooDeep
	}
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	first, marked, kinds := len(s.scan.clauses), len(s.scan.highlights), 0
	pathLen := len(s.path)
	var start int
	err := s.object(func(name []byte) error {
		if kinds == 0 {
			// The object began before the name; only white space lies between.
			start = bytes.LastIndexByte(s.body[:s.nameStart], '{')
		}
		kinds++
		s.path = append(append(s.path[:pathLen], '.'), name...)
		return s.kind(name, depth)
	})
	s.path = s.path[:pathLen]
	if err != nil {
		return err
	}
	if kinds != 1 { // not a query that an engine takes
		s.scan.clauses, s.scan.highlights = s.scan.clauses[:first], s.scan.highlights[:marked]
		return nil
	}
	if n := len(s.scan.clauses); n == first+1 && s.scan.clauses[first].at.isZero() {
		s.scan.clauses[first].at = span{start, int(s.dec.InputOffset())}
	}
	return nil
}

// kind reads the value of a query of the kind named.
func (s *scanner) kind(name []byte, depth int) error {
	k, known := kinds[string(name)]
	s.scan.otherScores = s.scan.otherScores || k.read == nil && !k.sums
	switch {
	case !known:
		return s.leave(ReasonUnknown)
	case k.alone != "":
		return s.leave(k.alone)
	case k.read != nil:
		return s.clause(k, depth)
	case s.dec.PeekKind() != '{':
		return s.dec.SkipValue()
	}
	first := len(s.scan.clauses)
	same, err := s.compound(k, depth)
	for i := first; same && i < len(s.scan.clauses); i++ {
		s.scan.clauses[i].same = true
	}
	return err
}

// compound reads the members of a query that holds others. It reports whether
// one more match inside could lower a hit or lose it: where scores are averaged
// or the least is taken, and where the number of matches has a bound.
func (s *scanner) compound(k kind, depth int) (same bool, err error) {
	pathLen := len(s.path)
	mode := k.scoreMode
	var query span
	marked := len(s.scan.highlights)
	s.scan.leaves++ // such as the filters of functions
	err = s.object(func(name []byte) error {
		s.path = append(append(s.path[:pathLen], '.'), name...)
		switch {
		case slices.Contains(k.inside, string(name)):
			at, err := s.place(func() error { return s.list(func() error { return s.query(depth + 1) }) })
			if string(name) == "query" {
				query = at
			}
			return err
		case string(name) == "inner_hits":
			return s.hits()
		case slices.Contains(k.outside, string(name)):
			return s.leave(ReasonNotScoring)
		case string(name) == "max_children":
			same = true
		case string(name) == "min_score":
			s.scan.minScore = true
		case string(name) == "score_mode" && s.dec.PeekKind() == '"':
			v, err := s.value()
			if err == nil {
				mode, err = text(v.of(s.body))
			}
			return err
		}
		v, err := s.value()
		s.scan.leaves += queriesIn(v.of(s.body))
		s.scan.otherScores = s.scan.otherScores || string(name) == "boost" && !isOne(v.of(s.body))
		return err
	})
	s.path = s.path[:pathLen]
	s.scan.mark(marked, query)
	return same || mode == "avg" || mode == "min", err
}

// clause reads a clause that looks for text. Behind the last one that can be
// expanded with the others they are only counted.
func (s *scanner) clause(k kind, depth int) error {
	v, err := s.value()
	if err != nil {
		return err
	}
	if s.texts > maxTargets {
		return nil
	}
	s.scan.clauses = append(s.scan.clauses, clause{path: string(s.path), depth: depth, boost: 1, plain: true})
	c := &s.scan.clauses[len(s.scan.clauses)-1]
	if err := k.read(c, v.of(s.body)); err != nil {
		return err
	}
	if c.phrase && !s.phrases && c.reason == "" {
		c.reason = ReasonPhrase
	}
	s.scan.otherScores = s.scan.otherScores || c.reason != "" || c.prefix || c.fuzzy
	switch {
	case c.reason == "":
		s.texts++
	case s.notes < maxNotes:
		s.notes++
	default:
		s.scan.clauses = s.scan.clauses[:len(s.scan.clauses)-1]
	}
	return nil
}

// maxNotes bounds the queries of which a scan notes why they are left alone.
const maxNotes = 64

// leave passes over the value of a query, or a list of queries, and notes why.
func (s *scanner) leave(reason Reason) error {
	v, err := s.value()
	if err != nil {
		return err
	}
	s.scan.leaves += queriesIn(v.of(s.body))
	if s.notes < maxNotes && string(v.of(s.body)) != "[]" {
		s.notes++
		s.scan.clauses = append(s.scan.clauses, clause{path: string(s.path), note: true, reason: reason})
	}
	return nil
}

// queriesIn estimates from above the number of leaf queries in a value: each
// takes two objects, {"kind": {…}}, or one in the object of its parent.
func queriesIn(raw []byte) int { return 1 + bytes.Count(raw, []byte("{"))/2 }

// list reads what f reads once, or a list of it.
func (s *scanner) list(f func() error) error {
	if s.dec.PeekKind() != '[' {
		return f()
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	pathLen := len(s.path)
	for i := 0; s.dec.PeekKind() != ']'; i++ {
		s.path = strconv.AppendInt(append(s.path[:pathLen], '['), int64(i), 10)
		s.path = append(s.path, ']')
		if err := f(); err != nil {
			return err
		}
	}
	s.path = s.path[:pathLen]
	_, err := s.dec.ReadToken()
	return err
}

// release forgets the body, so that the memory can wait for the next.
func (s *scanner) release() {
	s.body = nil
	s.buffer = bytes.Buffer{}
	s.dec.Reset(&s.buffer)
	s.scan = scan{clauses: s.scan.clauses[:0]}
}
