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
	// highlight is the place behind the "{" of a highlight object that has no
	// highlight_query of its own; 0 where there is none. The flag says whether
	// the object is empty.
	highlight      int
	highlightEmpty bool
	// runtimeMappings is the value of "runtime_mappings".
	runtimeMappings span
	// What the body says of scores and hits.
	minScore, pit, sizeZero, sorted, trackScores bool
}

// fields returns the number of fields of all clauses.
func (s *scan) fields() int {
	n := 0
	for i := range s.clauses {
		n += len(s.clauses[i].targets)
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
	scan      scan
}

// run reads body, which must be one JSON object. It returns [errNotJSON] or
// [errTooDeep].
func (s *scanner) run(body []byte) error {
	s.body = body
	s.path = s.path[:0]
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
	// function_score and script_score have it too, at any depth.
	s.scan.minScore = s.scan.minScore || bytes.Contains(body, []byte(`"min_score"`))
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
	}
	v, err := s.value()
	if err != nil {
		return err
	}
	raw := v.of(s.body)
	switch string(name) {
	case "runtime_mappings":
		s.scan.runtimeMappings = v
	case "min_score":
		s.scan.minScore = true
	case "pit":
		s.scan.pit = true
	case "size":
		s.scan.sizeZero = string(raw) == "0"
	case "sort":
		s.scan.sorted = !bytes.Contains(raw, []byte(`"_score"`)) && string(raw) != "[]"
	case "track_scores":
		s.scan.trackScores = string(raw) == "true"
	}
	return nil
}

func (s *scanner) topQuery() error {
	s.path = append(s.path, "query"...)
	s.dec.PeekKind()
	before := int(s.dec.InputOffset())
	if err := s.query(0); err != nil {
		return err
	}
	end := int(s.dec.InputOffset())
	// What lies between a name and its value is white space and one colon.
	start := before + bytes.IndexAny(s.body[before:end], "{[\"tfn-0123456789")
	s.scan.query = span{start, end}
	s.path = s.path[:0]
	return nil
}

// highlight notes where a highlight_query may be put in.
func (s *scanner) highlight() error {
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	has, empty, inside := false, true, 0
	err := s.object(func(name []byte) error {
		if empty {
			inside = s.nameStart
		}
		empty = false
		has = has || string(name) == "highlight_query"
		return s.dec.SkipValue()
	})
	if err != nil || has {
		return err
	}
	if empty {
		inside = int(s.dec.InputOffset()) - 1
	}
	s.scan.highlight, s.scan.highlightEmpty = inside, empty
	return nil
}

// query reads one query, {"kind": …}, and notes the clauses in it.
func (s *scanner) query(depth int) error {
	if depth > maxQueryDepth {
		return errTooDeep
	}
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	first, kinds := len(s.scan.clauses), 0
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
		s.scan.clauses = s.scan.clauses[:first]
		return nil
	}
	if n := len(s.scan.clauses); n == first+1 && s.scan.clauses[first].at.isZero() {
		s.scan.clauses[first].at = span{start, int(s.dec.InputOffset())}
	}
	return nil
}

// kind reads the value of a query of the kind named.
func (s *scanner) kind(name []byte, depth int) error {
	k, known := kindOf(name)
	if !known {
		return s.dec.SkipValue()
	}
	if k.read != nil {
		v, err := s.value()
		if err != nil {
			return err
		}
		s.scan.clauses = append(s.scan.clauses, clause{path: string(s.path), boost: 1, plain: true})
		return k.read(&s.scan.clauses[len(s.scan.clauses)-1], v.of(s.body))
	}
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	pathLen, first := len(s.path), len(s.scan.clauses)
	mode := ""
	err := s.object(func(name []byte) error {
		switch {
		case slices.Contains(k.inside, string(name)):
			s.path = append(append(s.path[:pathLen], '.'), name...)
			return s.queries(depth + 1)
		case string(name) == "score_mode":
			v, err := s.value()
			mode = string(v.of(s.body))
			return err
		}
		return s.dec.SkipValue()
	})
	s.path = s.path[:pathLen]
	if k.averages && mode != `"max"` && mode != `"sum"` && mode != `"none"` {
		for i := first; i < len(s.scan.clauses); i++ {
			s.scan.clauses[i].same = true
		}
	}
	return err
}

// queries reads one query or a list of them.
func (s *scanner) queries(depth int) error {
	if s.dec.PeekKind() != '[' {
		return s.query(depth)
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	pathLen := len(s.path)
	for i := 0; s.dec.PeekKind() != ']'; i++ {
		s.path = strconv.AppendInt(append(s.path[:pathLen], '['), int64(i), 10)
		s.path = append(s.path, ']')
		if err := s.query(depth); err != nil {
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
