package main

import (
	"context"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/rerank"
)

var (
	_ rerank.Vectors = vectors{}
	_ proxy.Reranker = reranker{}
)

// vectors answers rerank from esclient.
type vectors struct{ client *esclient.Client }

func (v vectors) Vectors(ctx context.Context, docs []rerank.Document) ([]rerank.Vector, error) {
	asked := make([]esclient.VectorRequest, len(docs))
	for i, d := range docs {
		asked[i] = esclient.VectorRequest(d)
	}
	answer, err := v.client.DocVectors(ctx, asked)
	if err != nil {
		return nil, err
	}
	out := make([]rerank.Vector, len(answer))
	for i, a := range answer {
		out[i] = rerank.Vector{Found: a.Found, Version: a.Version, Fields: make([][]rerank.Term, len(a.Fields))}
		for k, terms := range a.Fields {
			own := make([]rerank.Term, len(terms))
			for n, t := range terms {
				own[n] = rerank.Term{Text: t.Term, Freq: t.Freq}
			}
			out[i].Fields[k] = own
		}
	}
	return out, nil
}

// reranker scores the hits of the proxy's searches.
type reranker struct{ *rerank.Reranker }

func (r reranker) Scores(ctx context.Context, how *expand.Rerank, hits []proxy.Hit) ([]float64, error) {
	fields := make([]rerank.Field, len(how.Fields))
	for i, f := range how.Fields {
		fields[i] = rerank.Field{
			Name: f.Field, Boost: f.Boost, Terms: f.Terms, Freqs: f.Freqs, Similarities: f.Similarities,
		}
		if f.Weights != nil { // else an interface that is not nil would hold none
			fields[i].Weights = f.Weights
		}
	}
	own := make([]rerank.Hit, len(hits))
	for i, h := range hits {
		own[i] = rerank.Hit(h)
	}
	return r.Reranker.Scores(ctx, fields, own)
}

// softly reports whether searches may be ranked in the mode soft.
func softly(cfg *configs.Config) bool {
	for _, p := range cfg.Profiles {
		if p.Mode == configs.ModeSoft {
			return true
		}
	}
	return cfg.Expansion.Mode == configs.ModeSoft
}
