package expand

import (
	"bytes"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A search is a parsed search of a request, with the options for its expansion.
type search struct {
	req        *Request
	profile    *Profile
	parameters dsl.Parameters
	*dsl.Search
	// indices are the indices searched. pitShards is how many of their shards the
	// point in time has, 0 without one.
	indices   esclient.Indices
	pitShards int
	discloses Disclosure // how the answer would show added terms
	order     bool       // related words only put its hits in order
	unscored  bool       // nothing in the answer depends on scores
	mode      Mode       // that of the profile, and in ModeAuto from settleMode on another
	embeds    bool       // vectors of a language model put its first hits in order
	nested    bool       // it has nested clauses for segments
	named     bool       // added clauses get names
}

// parse parses the search. It returns why the search is left alone, or "".
func parse(req *Request, profile *Profile, parser *dsl.Parser) (*search, reason.Reason) {
	s := &search{req: req, profile: profile, mode: profile.Mode, embeds: profile.embeds(req.Embeddings)}
	var why reason.Reason
	if s.parameters, why = dsl.ReadParameters(req.RawQuery); why != "" {
		return s, why
	}
	body, why := s.parameters.Body(req.Body, len(bytes.TrimSpace(req.Body)) == 0)
	if why != "" {
		return s, why
	}
	s.indices = esclient.Indices{Expression: req.Index, Options: s.parameters.IndexOptions()}
	parser.Phrases = profile.Phrases
	parser.MoreLikeThis = profile.MoreLikeThis && (profile.Mode == ModeBM25 || profile.Mode == ModeAuto)
	parser.Rescores = profile.RescoreQueries
	parser.Hybrid = profile.Hybrid
	parser.Readings = profile.Expressions && profile.Mode.adds()
	parser.Apart = (profile.Mode == ModeBM25 || profile.Mode == ModeAuto) && len(profile.Segments) == 0
	parser.Same = profile.Matching == Same
	parser.Filters = parser.Readings && profile.Filters
	if s.Search, why = parser.Parse(body, &s.parameters); why != "" {
		return s, why
	}
	if s.FieldCount() > dsl.MaxFields {
		s.LeavePhrases()
	}
	s.discloses = discloses(req, s.Body)
	switch {
	case s.PIT.Has && !s.usePIT():
		return s, reason.PIT
	case s.discloses&profile.HideFrom != 0, s.discloses != 0 && profile.HideFrom&DiscloseSecured != 0 && req.Allowed != nil:
		return s, reason.Hidden
	case s.Scores.Min && (!profile.NormalizeScores || s.Hybrid): // min_score cuts the scores of each sub-query
		return s, reason.MinScore
	case s.Hybrid && req.Endpoint == EndpointRankEval: // it runs hybrid queries without pipeline
		return s, reason.Hybrid
	case !s.Expandable():
		return s, reason.NoClause
	case s.FieldCount() > dsl.MaxFields:
		return s, reason.TooManyClauses
	case s.Crowded():
		return s, reason.TooManyHighlights
	}
	s.unscored = (req.Endpoint == EndpointCount || s.Hits.None && !s.Scores.Aggregated) && !s.Scores.Min
	s.order = profile.Matching == Same || profile.Matching == Auto && profile.When == Always && req.Again == nil
	if profile.Matching == Same && (s.unscored || !s.Scores.Computed()) {
		return s, reason.NoScores
	}
	s.named = s.namesAdded()
	return s, ""
}

// namesAdded reports whether added clauses get names, which the answer then
// shows. With security and feedback they do not: terms of the first hits may
// come from fields that the client may not see.
func (s *search) namesAdded() bool {
	p, secured := s.profile, s.req.Allowed != nil
	switch {
	case !p.NameAdded && !s.req.NameAdded, s.Hits.None, s.Hits.Completed, s.req.Endpoint != EndpointSearch && s.req.Endpoint != EndpointMultiSearch:
		return false
	case p.HideFrom&^DiscloseSecured != 0, secured && (p.HideFrom != 0 || p.Feedback.documents(s.req.Feedback) > 0):
		return false
	}
	likeAdded := []string{`"` + form.AddedName, `\u003`, `\u004`, `\u005`, `\u006`, `\u007`} // something like a name of an added clause
	return !namesQueries(s.Body) || !slices.ContainsFunc(likeAdded, func(name string) bool { return bytes.Contains(s.Body, []byte(name)) })
}

// usePIT takes the indices from the point in time and reports whether they are
// known. Engines allow no index expression with a point in time.
func (s *search) usePIT() bool {
	p := readPIT(s.PIT.ID)
	if p == nil || s.req.Index != "" {
		return false
	}
	names := p.names()
	s.indices, s.pitShards = esclient.Indices{Expression: strings.Join(names, ",")}, p.shards
	return len(names) > 0
}

func (s *search) notes() (out []Explanation) {
	if s.Search == nil {
		return nil
	}
	for i := range s.Clauses {
		if c := &s.Clauses[i]; c.Role == dsl.Note && !c.Expanded() {
			out = append(out, Explanation{Path: c.Path, Reason: c.Reason, Left: c.Left})
		}
	}
	return out
}

// shardReason returns why not all shards score by global statistics, or "" if
// they do or can be made to. _explain asks only one shard, and Elasticsearch
// searches for retrievers inside others without the search_type.
func (s *search) shardReason(a *esclient.Analysis) reason.Reason {
	fixed := s.parameters.Get("search_type")
	switch {
	case a.Shards <= 1:
	case s.Hybrid: // its pipeline does not run with a search_type (neural-search, issue 1490)
		return reason.Hybrid
	case a.Routed || s.parameters.Routed() || s.pitShards > 0 && s.pitShards < a.Shards:
		return reason.Routing
	case fixed != "" && fixed != dsl.DFS || s.Compound || s.req.Endpoint == EndpointExplain:
		return reason.SearchType
	}
	return ""
}

// rawQuery returns the parameters of the rewritten search. needsDFS says that
// the engine must gather the statistics of all shards, reranked that akin
// reranks the hits.
func (s *search) rawQuery(needsDFS, reranked bool) string {
	endpoint := s.req.Endpoint // two endpoints know no search_type
	needsDFS = needsDFS && endpoint != EndpointValidate && endpoint != EndpointExplain && !s.KNN && !s.Hybrid
	return s.parameters.Rewritten(s.req.RawQuery, needsDFS, reranked)
}

// fixedOrder returns why the search does not allow its first hits to be
// reordered, or "".
func (s *search) fixedOrder() reason.Reason {
	switch {
	case s.PIT.Has:
		return reason.PointInTime // the pages after the first have a search_after
	case s.NoRescore != "":
		return s.NoRescore
	case s.Scores.Min:
		return reason.MinScore
	case s.Hits.None:
		return reason.NoScores
	}
	return ""
}

// namesQueries reports whether a query may have named queries or inner hits,
// whose scores the engines take from the query. Names with escapes count, too.
func namesQueries(query []byte) bool {
	names := []string{`"_name"`, `"inner_hits"`, `\u004`, `\u005`, `\u006`, `\u007`}
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(query, []byte(name)) })
}

// searchesVectors reports whether a query contains a vector query, also as a
// filter or in a function. A field with such a name can look the same; then the
// search only loses its rescore.
func searchesVectors(query []byte) bool {
	const space = " \t\r\n"
	for _, name := range []string{`"knn"`, `"neural"`, `"neural_sparse"`, `"hybrid"`, `"semantic"`, `"sparse_vector"`, `"text_expansion"`} {
		for _, rest, found := bytes.Cut(query, []byte(name)); found; _, rest, found = bytes.Cut(rest, []byte(name)) {
			value, isMember := bytes.CutPrefix(bytes.TrimLeft(rest, space), []byte(":"))
			if isMember && bytes.HasPrefix(bytes.TrimLeft(value, space), []byte("{")) {
				return true
			}
		}
	}
	return false
}

// besideVectors reports whether text scores are mixed with vector scores, so
// that another range of text scores would change the mixture.
func (s *search) besideVectors() bool {
	query := s.Query.Of(s.Body)
	if s.Query.IsZero() { // retrievers
		query = s.Body
	}
	return s.Hybrid || s.Fused || s.KNN || s.NoRescore == reason.Vectors || searchesVectors(query)
}

// discloses returns in which ways the answer to a search would show the added
// terms.
func discloses(req *Request, body []byte) Disclosure {
	d := req.Discloses
	switch req.Endpoint {
	case EndpointExplain:
		d |= DiscloseExplain
	case EndpointValidate:
		if asksFor(req.RawQuery, "explain", "rewrite", "all_shards") {
			d |= DiscloseValidate
		}
	default:
		if asksFor(req.RawQuery, "explain") {
			d |= DiscloseExplain
		}
		// "profile" is at the top of a body, "explain" also in inner hits and
		// aggregations. A field with such a name may be mistaken for the option; then
		// a search is not expanded.
		if slices.ContainsFunc([]string{`"explain"`, `"profile"`, `\u`}, func(s string) bool { return bytes.Contains(body, []byte(s)) }) {
			var r jsonspan.Reader
			r.Reset(body)
			_ = d.read(&r, body, DiscloseExplain|DiscloseProfile) // the body was read before
		}
	}
	return d
}

// asksFor reports whether one of the parameters is set and not "false".
func asksFor(rawQuery string, parameters ...string) bool {
	for part := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if value != "false" && slices.Contains(parameters, name) {
			return true
		}
	}
	return false
}

// read adds the disclosures in a value. ways are those possible at its top
// level.
func (d *Disclosure) read(r *jsonspan.Reader, body []byte, ways Disclosure) error {
	if r.Kind() == '[' {
		return r.List(func(int) error { return d.read(r, body, DiscloseExplain) })
	}
	if r.Kind() != '{' {
		return r.Skip()
	}
	return r.Object(func(name []byte) error {
		var way Disclosure
		switch string(name) {
		case "explain":
			way = DiscloseExplain
		case "profile":
			way = DiscloseProfile
		}
		if kind := r.Kind(); way&ways == 0 || kind != 't' && kind != '"' {
			return d.read(r, body, DiscloseExplain)
		}
		at, err := r.Value()
		on := at.Of(body)
		if err == nil && on[0] == '"' {
			on, err = jsonspan.Unquote(on)
		}
		if string(on) == "true" {
			*d |= way
		}
		return err
	})
}
