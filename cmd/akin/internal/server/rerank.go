package server

import (
	"context"
	"strings"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/rerank"
)

var (
	_ rerank.Vectors = vectors{}
	_ proxy.Reranker = reranker{}
)

// vectors answers rerank from esclient.
type vectors struct{ *esclient.Client }

// maxNames is how many bytes of names of indices go in one request: the engines
// take a request line of 4 KiB, in which a byte may take three.
const maxNames = 1000

// UUIDs implements [rerank.Vectors].
func (v vectors) UUIDs(ctx context.Context, indices, ids []string) error {
	byName := make(map[string]string, len(indices))
	for rest := indices; len(rest) > 0; {
		n, length := 1, len(rest[0])
		for n < len(rest) && length+len(rest[n]) < maxNames {
			length += len(rest[n]) + 1
			n++
		}
		found, err := v.Indices(ctx, strings.Join(rest[:n], ","))
		if err != nil {
			return err
		}
		for _, i := range found {
			byName[i.Name] = i.UUID
		}
		rest = rest[n:]
	}
	for k, name := range indices {
		ids[k] = byName[name]
	}
	return nil
}

// reranker scores the hits of the proxy's searches.
type reranker struct{ *rerank.Reranker }

func (r reranker) Scores(ctx context.Context, how *expand.Rerank, hits []answer.Hit) ([]float64, error) {
	own := make([]rerank.Hit, len(hits))
	for i, h := range hits {
		own[i] = rerank.Hit(h)
	}
	return r.Reranker.Scores(ctx, how.Fields, own)
}

// ranks reports whether searches may be ranked in a mode.
func ranks(cfg *configs.Config, mode string) bool {
	for _, p := range cfg.Profiles {
		if p.Mode == mode {
			return true
		}
	}
	return cfg.Expansion.Mode == mode
}
