package expand

import "slices"

// retriever reads a retriever, {"kind": …}, or an entry of a list of them that
// has one in its member "retriever".
func (s *scanner) retriever(depth int) error {
	if depth > maxQueryDepth {
		return errTooDeep
	}
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	pathLen := len(s.path)
	err := s.object(func(name []byte) error {
		inside := retrievers[string(name)]
		s.path = append(append(s.path[:pathLen], '.'), name...)
		if string(name) == "retriever" {
			return s.retriever(depth + 1)
		}
		if inside == nil || s.dec.PeekKind() != '{' {
			return s.dec.SkipValue()
		}
		memberLen := len(s.path)
		return s.object(func(name []byte) error {
			s.scan.minScore = s.scan.minScore || string(name) == "min_score"
			if string(name) == "collapse" {
				return s.collapse()
			}
			if !slices.Contains(inside, string(name)) {
				return s.dec.SkipValue()
			}
			s.path = append(append(s.path[:memberLen], '.'), name...)
			if string(name) == "query" {
				at, err := s.place(func() error { return s.query(depth) })
				s.scan.standards = append(s.scan.standards, at)
				return err
			}
			return s.list(func() error { return s.retriever(depth + 1) })
		})
	})
	s.path = s.path[:pathLen]
	return err
}

// rescore reads one rescorer of the body's own.
func (s *scanner) rescore() error {
	if !s.rescores || s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	pathLen := len(s.path)
	err := s.object(func(name []byte) error {
		if string(name) != "query" || s.dec.PeekKind() != '{' {
			return s.dec.SkipValue()
		}
		return s.object(func(name []byte) error {
			if string(name) != "rescore_query" {
				return s.dec.SkipValue()
			}
			s.path = append(s.path[:pathLen], ".query.rescore_query"...)
			return s.query(1)
		})
	})
	s.path = s.path[:pathLen]
	return err
}
