package expand

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/internal/jsonspan"
)

// AtOnce is the value in the result of [Expander.Below] for a search that is
// expanded however many hits the original finds.
const AtOnce = math.MaxInt

// Below returns, for each search of a request, a number of hits: the search is
// expanded if the original finds fewer. 0 means never, [AtOnce] always. The
// result is nil if all searches are expanded at once.
func (e *Expander) Below(req *Request) []int {
	if e.profile.When != FewHits || !slices.Contains([]Endpoint{EndpointSearch, EndpointCount, EndpointMultiSearch}, req.Endpoint) {
		return nil
	}
	parts := []dsl.Part{{At: jsonspan.Span{End: len(req.Body)}, RawQuery: req.RawQuery}}
	if req.Endpoint == EndpointMultiSearch {
		parts, _ = partsOf(req)
	}
	below := make([]int, len(parts))
	for k, p := range parts {
		below[k] = AtOnce
		if !p.Odd {
			below[k] = e.below(p.At.Of(req.Body), p.RawQuery)
		}
	}
	if !slices.ContainsFunc(below, func(n int) bool { return n != AtOnce }) {
		return nil
	}
	return below
}

// below returns the number for one search. A search is expanded at once if its
// hits come in several requests, if its total is not counted that far, or if
// its answer may hide that a shard failed. A search that also searches vectors
// finds enough hits by them, so it is never expanded.
func (e *Expander) below(body []byte, rawQuery string) int {
	parameters, why := dsl.ReadParameters(rawQuery)
	if why == "" {
		body, why = parameters.Body(body, len(bytes.TrimSpace(body)) == 0)
	}
	tracked := func(value string) bool { // reports whether the total is exact up to e.profile.Below
		n, err := strconv.Atoi(value)
		return value == "" || value == "true" || err == nil && n >= e.profile.Below
	}
	if why != "" || parameters.Get("scroll") != "" || parameters.Get("filter_path") != "" || !tracked(parameters.Get("track_total_hits")) {
		return AtOnce
	}
	vectors, atOnce := false, parameters.Get("terminate_after") != ""
	if err := jsonspan.Members(body, func(name, value []byte) error {
		switch string(name) {
		case "pit", "aggs", "aggregations", "terminate_after":
			atOnce = true
		case "track_total_hits":
			atOnce = atOnce || !tracked(string(value))
		case "knn", "retriever", "rank":
			vectors = true
		case "query":
			vectors = vectors || searchesVectors(value)
		}
		return nil
	}); err != nil {
		return AtOnce
	}
	switch {
	case vectors:
		return 0
	case atOnce:
		return AtOnce
	}
	return e.profile.Below
}

// Only returns a body with some searches of req, an _msearch request, selected
// by their numbers.
func Only(req *Request, some []int) []byte {
	parts, _ := partsOf(req)
	var body []byte
	for _, k := range some {
		if len(body) == 0 && parts[k].Header.Len() == 0 {
			body = append(body, "{}"...) // a body must not begin with an empty line
		}
		body = append(append(body, req.Body[parts[k].Header.Start:parts[k].At.End]...), '\n')
	}
	return body
}
