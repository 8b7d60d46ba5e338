package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/evaluate"
)

const measured = 10

// A tuneBench scores searches under settings: by an akin in this process,
// before an engine that has the terms of the documents.
type tuneBench struct {
	// URL is that of an engine that [loadDocuments] has filled.
	URL    string
	Matrix *simmatrix.Matrix
	// Bodies are the searches, and Grades those of the documents of each, by id.
	Bodies [][]byte
	Grades []map[string]int
	// Kept has the scores of earlier runs, the nDCG@10 of the searches in the place
	// of hits; nil is for none.
	Kept *evaluate.Kept
	plan string // what the scores depend on besides the setting
}

// Score returns the nDCG@10 of each search under a setting, nil for direct
// search.
func (b *tuneBench) Score(ctx context.Context, s *expand.Profile) ([]float64, error) {
	scored, err := b.Kept.Answer(fmt.Sprintf("%s %+v", b.plan, s), func() (scored evaluate.Answer, err error) {
		rankings, err := b.Rank(ctx, s)
		for i, hits := range rankings {
			var ids []string
			for _, h := range evaluate.Ranking(hits) {
				ids = append(ids, h.ID)
			}
			scored.Hits = append(scored.Hits, evaluate.Hit{Score: evaluate.NDCG(ids, b.Grades[i], measured)})
		}
		return scored, err
	})
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(scored.Hits))
	for i, h := range scored.Hits {
		scores[i] = h.Score
	}
	return scores, nil
}

// Rank returns the hits of each search under a setting, nil for direct search.
func (b *tuneBench) Rank(ctx context.Context, s *expand.Profile) ([][]evaluate.Hit, error) {
	if s == nil {
		client, err := esclient.New(esclient.Options{URL: b.URL})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		return rank(ctx, directArm(client, loadedIndex), b.Bodies)
	}
	arm, end, err := candidateArm(ctx, armOptions{Cluster: cli.Cluster{URL: b.URL, Index: loadedIndex}, Anonymous: true, Log: io.Discard}, *s, b.Matrix)
	defer end()
	if err != nil {
		return nil, err
	}
	return rank(ctx, arm, b.Bodies)
}

func rank(ctx context.Context, arm evaluate.Arm, bodies [][]byte) ([][]evaluate.Hit, error) {
	rankings := make([][]evaluate.Hit, len(bodies))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, body := range bodies {
		group.Go(func() error {
			answer, err := arm.Search(ctx, body)
			if err == nil && answer.FailedOpen {
				err = fmt.Errorf("akin failed open for the search %s", body)
			}
			rankings[i] = answer.Hits
			return err
		})
	}
	return rankings, group.Wait()
}

// Difference returns how far the scores of the first searches lie from those
// that the cluster gives at the same ranks: the largest difference, as a share
// of the cluster's score.
func (b *tuneBench) Difference(ctx context.Context, client *esclient.Client, index string, searches int) (worst float64, err error) {
	first := *b
	first.Bodies = b.Bodies[:min(searches, len(b.Bodies))]
	ours, err := first.Rank(ctx, nil)
	if err != nil {
		return 0, err
	}
	theirs, err := rank(ctx, directArm(client, index), first.Bodies)
	for i, hits := range theirs {
		if len(ours[i]) != len(hits) {
			worst = max(worst, 1)
			continue
		}
		for k, h := range hits {
			worst = max(worst, math.Abs(ours[i][k].Score-h.Score)/max(h.Score, math.SmallestNonzeroFloat32))
		}
	}
	return worst, err
}
