package expand

import (
	"context"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// noPipeline is the name with which a search asks for no search pipeline.
const noPipeline = "_none"

// pipeline returns reason.SearchPipeline if a request processor of the search's
// pipeline (OpenSearch) may read the query. For example, ml_inference reads
// query.match.text.query by JSON path; on a rewritten query it fails, or does
// nothing without a message if ignore_missing is set. A pipeline that the
// search names and akin may not read counts as one that reads the query. A
// default pipeline of an index that akin may not read does not count; akin
// check warns about it.
func (a *expansion) pipeline(ctx context.Context) (why reason.Reason, err error) {
	named := []string{a.s.parameters.Get("search_pipeline")}
	if at := a.s.Pipeline; !at.IsZero() {
		switch raw := at.Of(a.s.Body); {
		case raw[0] == '{' && !esclient.ReadsQuery(raw):
			return "", nil
		case raw[0] != '"': // an object that reads the query, or no name, which the cluster rejects
			return reason.SearchPipeline, nil
		default:
			name, _ := jsonspan.Unquote(raw) // it was read before
			named = append(named, string(name))
		}
	}
	named = slices.DeleteFunc(named, func(name string) bool { return name == "" })
	byDefault := len(named) == 0
	if byDefault {
		for _, t := range a.open {
			if t.Analysis != nil {
				named = append(named, t.Analysis.Pipelines...)
			}
		}
		slices.Sort(named)
		named = slices.Compact(named)
	}
	for _, name := range named {
		if name == noPipeline {
			continue
		}
		reads := false
		err := run(ctx, StageFields, func(ctx context.Context) (err error) {
			reads, err = a.cluster.ReadsQuery(ctx, name)
			return err
		})
		switch denied := esclient.IsDenied(err); {
		case denied && byDefault:
		case denied, err == nil && reads:
			return reason.SearchPipeline, nil
		case err != nil:
			return reasonOf(err)
		}
	}
	return "", nil
}
