package expand

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
)

// A search is one search of a request as it was read.
type search struct {
	req        *Request
	parameters dsl.Parameters
	*dsl.Search
	// indices are those that the search goes to; pitShards is how many of their
	// shards its point in time has, 0 without one.
	indices   esclient.Indices
	pitShards int
	discloses Disclosure // how the answer would show the added terms
	unscored  bool       // nothing in the answer depends on scores
	nested    bool       // clauses have nested ones for segments
}

// parse reads the search, and returns why it is left alone, or "".
func (e *Expander) parse(req *Request, m *memory) (*search, reason.Reason) {
	s := &search{req: req}
	var why reason.Reason
	if s.parameters, why = dsl.ReadParameters(req.RawQuery); why != "" {
		return s, why
	}
	body, why := s.parameters.Body(req.Body, len(bytes.TrimSpace(req.Body)) == 0)
	if why != "" {
		return s, why
	}
	s.indices = esclient.Indices{Expression: req.Index, Options: s.parameters.IndexOptions()}
	m.parser.Phrases, m.parser.Rescores = e.options.Phrases, e.options.RescoreQueries
	if s.Search, why = m.parser.Parse(body, &s.parameters); why != "" {
		return s, why
	}
	switch {
	case s.PIT.Has && !s.usePIT():
		return s, reason.PIT
	case s.disclosed()&e.options.HideFrom != 0, s.discloses != 0 && e.options.HideSecured && req.Allowed != nil:
		return s, reason.Hidden
	case s.Scores.Min && !e.options.NormalizeScores:
		return s, reason.MinScore
	case !s.Expandable():
		return s, reason.NoClause
	case s.FieldCount() > dsl.MaxFields:
		return s, reason.TooManyClauses
	case s.Crowded():
		return s, reason.TooManyHighlights
	}
	s.unscored = (req.Endpoint == EndpointCount || s.Hits.None && !s.Scores.Aggregated) && !s.Scores.Min
	if e.options.SameMatches && (s.unscored || s.Scores.Sorted && !s.Scores.Tracked) {
		return s, reason.NoScores
	}
	return s, ""
}

// usePIT takes the indices from the point in time, if it knows them. Engines
// allow no index expression with it.
func (s *search) usePIT() bool {
	p := readPIT(s.PIT.ID)
	if p == nil || s.req.Index != "" {
		return false
	}
	names := p.names()
	s.indices, s.pitShards = esclient.Indices{Expression: strings.Join(names, ",")}, p.shards
	return len(names) > 0
}

// allowed returns the reason where the client may not search the indices.
func (s *search) allowed(ctx context.Context) (reason.Reason, error) {
	if s.req.Allowed == nil {
		return "", nil
	}
	switch err := s.req.Allowed(ctx, s.indices); {
	case errors.Is(err, ErrNotAuthorized):
		return reason.NotAuthorized, nil
	case errors.Is(err, ErrUnknown):
		return reason.UnknownToCluster, nil
	default:
		return "", failed(StageAccess, err)
	}
}

func (s *search) notes() (out []Explanation) {
	if s.Search == nil {
		return nil
	}
	for i := range s.Clauses {
		if c := &s.Clauses[i]; c.Note {
			out = append(out, Explanation{Path: c.Path, Reason: c.Reason})
		}
	}
	return out
}

// shardReason returns why shards do not all score by the statistics of all, or
// "" where they do or can be made to. _explain asks one shard.
func (s *search) shardReason(a *esclient.Analysis) reason.Reason {
	fixed := s.parameters.Get("search_type")
	switch {
	case a.Shards <= 1:
	case a.Routed || s.parameters.Routed() || s.pitShards > 0 && s.pitShards < a.Shards:
		return reason.Routing
	case fixed != "" && fixed != dsl.DFS || s.req.Endpoint == EndpointExplain:
		return reason.SearchType
	}
	return ""
}
