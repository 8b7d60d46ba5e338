package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/demo"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix"
)

// maxTerms bounds the terms of all documents together, each term of a field
// counted once: they take some 35 bytes each, and Go as much again.
const maxTerms = 20_000_000

// ErrTooLarge says that the documents have too many terms.
var ErrTooLarge = fmt.Errorf("the documents have more than %d million different terms each, together: "+
	"tune on an index with fewer documents, the judged ones among them", maxTerms/1_000_000)

// An Index ranks searches of the documents of an index as the cluster would,
// without it: by the terms that the documents had when they were read. The
// cluster only analyzes texts, each once.
type Index struct {
	name       string
	engine     *demo.Engine
	cluster    *esclient.Cached
	documents  map[string]*document // by id
	order      []string
	statistics map[string]*statistics // by field
	reranker   *rerank.Reranker
}

type document struct {
	number int64
	fields map[string]expand.FieldTerms
}

type statistics struct {
	esclient.FieldStatistics

	docFreqs map[string]int64
}

// Read reads the terms of all documents of an index in some fields. The
// documents should not change meanwhile. The error wraps [ErrTooLarge] where
// there are too many.
func Read(ctx context.Context, client *esclient.Client, index string, fields []string, progress simmatrix.Progress) (*Index, error) {
	x := &Index{
		name: index, engine: demo.NewEngine(), documents: map[string]*document{}, statistics: map[string]*statistics{},
	}
	x.cluster = esclient.NewCached(client, esclient.CacheOptions{ //nolint:contextcheck // What it loads ends with Close.
		AnalysisBytes: 64 << 20, StatisticsBytes: 1 << 20, TTL: 24 * time.Hour,
	})
	x.reranker = rerank.New(rerank.Options{Vectors: x, Bytes: 256 << 20, TTL: 24 * time.Hour})
	loaded := map[string]demo.Field{}
	for _, field := range fields {
		x.statistics[field] = &statistics{docFreqs: map[string]int64{}}
	}
	err := x.scan(ctx, documents.API{Client: client}, fields, progress)
	for _, field := range fields {
		if err == nil {
			loaded[field], err = x.describe(ctx, client, field)
		}
	}
	if err == nil {
		err = x.engine.Load(index, loaded, x.frequencies)
	}
	if err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// Has reports whether a document was read.
func (x *Index) Has(id string) bool { return x.documents[id] != nil }

// Close ends what Read started.
func (x *Index) Close() {
	x.reranker.Close()
	x.cluster.Close()
}

// scan reads the documents.
func (x *Index) scan(ctx context.Context, api documents.API, fields []string, progress simmatrix.Progress) error {
	total, err := api.Count(ctx, x.name, nil)
	if err != nil {
		return err
	}
	terms, same := 0, map[string]string{} // a term is kept once
	err = api.ScanRefs(ctx, documents.RefOptions{Index: x.name}, func(refs []documents.DocRef) error {
		page := make([]documents.VectorRequest, len(refs))
		for i, r := range refs {
			page[i] = documents.VectorRequest{Index: r.Index, ID: r.ID, Routing: r.Routing, Fields: fields}
		}
		vectors, err := readVectors(ctx, api, page)
		if err != nil {
			return err
		}
		for i, v := range vectors {
			if v.Err != nil {
				return fmt.Errorf("the terms of document %q: %w", refs[i].ID, v.Err)
			}
			if x.documents[refs[i].ID] != nil {
				return fmt.Errorf("two documents have the id %q: name one index", refs[i].ID)
			}
			if terms += x.add(refs[i].ID, v.Fields, same); terms > maxTerms {
				return ErrTooLarge
			}
		}
		if progress != nil {
			progress("reading documents", len(x.order), int(total))
		}
		return nil
	})
	if err == nil && terms == 0 {
		err = fmt.Errorf("the documents of %q have no terms in %q that the cluster tells", x.name, fields)
	}
	return err
}

// add keeps the terms of a document, each as it is in same, and returns how
// many there are.
func (x *Index) add(id string, fields map[string][]documents.TermFreq, same map[string]string) (terms int) {
	d := &document{int64(len(x.order)), map[string]expand.FieldTerms{}}
	x.documents[id], x.order = d, append(x.order, id)
	for field, freqs := range fields {
		var f expand.FieldTerms
		for _, t := range freqs {
			if _, ok := same[t.Term]; !ok {
				same[t.Term] = t.Term
			}
			f.Terms, f.Freqs = append(f.Terms, same[t.Term]), append(f.Freqs, float64(t.Freq))
			x.statistics[field].docFreqs[same[t.Term]]++
		}
		x.statistics[field].DocCount++
		d.fields[field] = f
		terms += len(freqs)
	}
	return terms
}

// readVectors reads the terms of documents, in several calls where one answer
// would be too large.
func readVectors(ctx context.Context, api documents.API, page []documents.VectorRequest) ([]documents.DocTerms, error) {
	all, err := api.DocVectors(ctx, page)
	if half := len(page) / 2; half > 0 && errors.Is(err, esclient.ErrTooLarge) {
		if all, err = readVectors(ctx, api, page[:half]); err == nil {
			var rest []documents.DocTerms
			rest, err = readVectors(ctx, api, page[half:])
			all = append(all, rest...)
		}
	}
	return all, err
}

// describe asks the cluster how a field scores.
func (x *Index) describe(ctx context.Context, client *esclient.Client, field string) (demo.Field, error) {
	schema, err := client.Schema(ctx, x.name, field)
	if err != nil {
		return demo.Field{}, err
	}
	s, common := x.statistics[field], ""
	for term, n := range s.docFreqs {
		if most := s.docFreqs[common]; n > most || n == most && term < common {
			common = term
		}
	}
	told, err := x.cluster.Statistics(ctx, esclient.Indices{Expression: x.name}, field, []string{common}, make([]int64, 1))
	if err == nil && told.Scale == 0 {
		err = fmt.Errorf("field %q of %q is not scored by BM25: tune ranks by nothing else", field, x.name)
	}
	s.Scale, s.Scripts = told.Scale, told.Scripts
	return demo.Field{
		K1: schema.K1, B: schema.B, Scale: told.Scale,
		Analyze: func(text string) ([]string, error) { //nolint:contextcheck // The engine has none; the answer is remembered.
			analysis, err := x.Analyze(context.Background(), esclient.Indices{Expression: x.name}, field, "", text)
			if err != nil {
				return nil, err
			}
			return analysis.Terms, nil
		},
	}, err
}

// frequencies yields the documents as the engine takes them.
func (x *Index) frequencies(yield func(id string, fields map[string]map[string]int) bool) {
	for _, id := range x.order {
		fields := map[string]map[string]int{}
		for field, f := range x.documents[id].fields {
			fields[field] = make(map[string]int, len(f.Terms))
			for k, term := range f.Terms {
				fields[field][term] = int(f.Freqs[k])
			}
		}
		if !yield(id, fields) {
			return
		}
	}
}

// search returns the hits of a search body, as akin with the expander would
// have the cluster answer; nil is the cluster itself.
func (x *Index) search(ctx context.Context, e *expand.Expander, body []byte) (hits []demo.Hit, err error) {
	req, res := &expand.Request{Index: x.name, Body: body}, &expand.Result{}
	if e != nil {
		res, err = e.Expand(ctx, req)
	}
	if err == nil && len(res.FirstPasses) > 0 {
		if req.FirstHits, err = x.firstHits(res.FirstPasses[0]); err == nil && len(req.FirstHits[0]) > 0 {
			if again, failed := e.Expand(ctx, req); failed != nil || again.Rewritten {
				res, err = again, failed
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if res.Rewritten {
		body = res.Body
	}
	hits, err = x.engine.Search(x.name, body)
	if err == nil && len(res.Reranks) > 0 && res.Reranks[0] != nil && len(hits) > 0 {
		return x.rerank(ctx, res.Reranks[0], hits)
	}
	return hits, err
}

// firstHits answers a first pass, of which scores above 0 count.
func (x *Index) firstHits(pass *expand.FirstPass) ([][]expand.FirstHit, error) {
	hits, err := x.engine.Search(x.name, pass.Body)
	first := make([]expand.FirstHit, 0, len(hits))
	for _, h := range hits {
		if h.Score > 0 {
			first = append(first, expand.FirstHit{ID: h.ID, Score: shortest(h.Score), Fields: x.documents[h.ID].fields})
		}
	}
	return [][]expand.FirstHit{first}, err
}

// shortest returns the score as who reads it in an answer has it.
func shortest(score float32) (v float64) {
	text, _ := json.Marshal(score)
	_ = json.Unmarshal(text, &v)
	return v
}

// rerank orders hits as the proxy orders those of the cluster's answer.
func (x *Index) rerank(ctx context.Context, as *expand.Rerank, found []demo.Hit) ([]demo.Hit, error) {
	type object = map[string]any
	list := make([]object, len(found))
	for i, h := range found {
		list[i] = object{
			"_index": x.name, "_id": h.ID, "_score": h.Score, "_seq_no": x.documents[h.ID].number, "_primary_term": 1, "_version": 1,
		}
	}
	whole, err := json.Marshal(object{"hits": object{"hits": list}})
	if err != nil {
		return nil, err
	}
	r := *as
	r.KeepSeqNo, r.KeepVersion = true, true
	pages, err := answer.ReadHitLists(whole, expand.EndpointSearch, []*expand.Rerank{&r})
	if err != nil {
		return nil, err
	}
	hits, _ := pages[0].Hits()
	scores, err := x.reranker.Scores(ctx, r.Fields, hits)
	if err != nil {
		return nil, err
	}
	pages[0].SetScores(scores)
	ordered, blended, err := answer.ReadHits(answer.WriteHitLists(whole, pages), r.Asked())
	out := make([]demo.Hit, len(ordered))
	for i, h := range ordered {
		out[i] = demo.Hit{ID: h.ID, Score: float32(blended[i])}
	}
	return out, err
}

// Analyze implements [expand.Cluster].
func (x *Index) Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	return x.cluster.Analyze(ctx, indices, field, analyzer, text)
}

// Fields implements [expand.Cluster].
func (x *Index) Fields(ctx context.Context, indices esclient.Indices, pattern string) ([]string, error) {
	return x.cluster.Fields(ctx, indices, pattern)
}

// Statistics implements [expand.Cluster] by the documents that were read.
func (x *Index) Statistics(_ context.Context, _ esclient.Indices, field string, terms []string, docFreqs []int64) (esclient.FieldStatistics, error) {
	s := x.statistics[field]
	if s == nil {
		return esclient.FieldStatistics{}, fmt.Errorf("field %q was not read", field)
	}
	for k, term := range terms {
		docFreqs[k] = s.docFreqs[term]
	}
	return s.FieldStatistics, nil
}

// DocVectors implements [rerank.TermVectors].
func (x *Index) DocVectors(_ context.Context, docs []documents.VectorRequest) ([]documents.DocTerms, error) {
	out := make([]documents.DocTerms, len(docs))
	for i, d := range docs {
		out[i] = documents.DocTerms{Found: true, Version: 1, Fields: map[string][]documents.TermFreq{}}
		for _, field := range d.Fields {
			f := x.documents[d.ID].fields[field]
			for k, term := range f.Terms {
				out[i].Fields[field] = append(out[i].Fields[field], documents.TermFreq{Term: term, Freq: int64(f.Freqs[k])})
			}
		}
	}
	return out, nil
}

// UUIDs implements [rerank.TermVectors].
func (*Index) UUIDs(_ context.Context, indices, ids []string) error {
	copy(ids, indices)
	return nil
}

// Readable implements [rerank.TermVectors].
func (*Index) Readable(context.Context, string, string) (bool, error) { return true, nil }

// Difference returns how far the scores of searches lie from those that the
// cluster gives at the same ranks: the largest difference, as a share of the
// cluster's score.
func (x *Index) Difference(ctx context.Context, client *esclient.Client, bodies [][]byte) (worst float64, err error) {
	for _, body := range bodies {
		var told struct {
			Hits struct {
				Hits []struct {
					Score float64 `json:"_score"`
				} `json:"hits"`
			} `json:"hits"`
		}
		if err := client.Call(ctx, esclient.Request{
			Method: http.MethodPost, Path: esclient.IndexPath(x.name, "/_search?filter_path=hits.hits._score"), Body: jsontext.Value(body),
		}, &told); err != nil {
			return 0, err
		}
		ours, err := x.engine.Search(x.name, body)
		if err != nil {
			return 0, fmt.Errorf("the searches cannot be ranked without the cluster: %w", err)
		}
		if len(ours) != len(told.Hits.Hits) {
			return 1, nil
		}
		for i, h := range told.Hits.Hits {
			worst = max(worst, math.Abs(float64(ours[i].Score)-h.Score)/max(h.Score, math.SmallestNonzeroFloat32))
		}
	}
	return worst, nil
}
