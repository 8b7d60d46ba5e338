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
			if !slices.Contains(inside, string(name)) {
				return s.dec.SkipValue()
			}
			s.path = append(append(s.path[:memberLen], '.'), name...)
			if string(name) == "query" {
				return s.query(depth)
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
