package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/norms"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

var (
	_ proxy.Norms     = (*normWrites)(nil)
	_ norms.Targets   = (*normWrites)(nil)
	_ norms.Analyzer  = (*normWrites)(nil)
	_ norms.Documents = (*normWrites)(nil)
)

// normWrites keeps the norms of documents that are written through the
// proxy.
type normWrites struct {
	client  *esclient.Client
	targets *esclient.WriteTargets
	repairs *norms.Repairer
	keeper  *norms.Keeper
}

// newNormWrites returns norms by the weights of store. close ends them.
func newNormWrites(
	client *esclient.Client, ttl time.Duration, store *rowstore.Store, registry prometheus.Registerer, log *slog.Logger,
) *normWrites {
	repairs := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "akin_norm_repairs_total",
		Help: "Documents whose norms were to be computed after they were written, by what became of that.",
	}, []string{"result"})
	registry.MustRegister(repairs)
	n := &normWrites{client: client, targets: esclient.NewWriteTargets(client, ttl)}
	bound := func(index, field string) norms.FrozenWeights {
		if rows := store.Pin().For(index, field); rows != nil {
			return weights{rows}
		}
		return nil // not a weights of nil
	}
	n.repairs = norms.NewRepairer(n, n, bound, norms.RepairOptions{
		OnResult: func(result string) { repairs.WithLabelValues(result).Inc() },
		OnError:  func(err error) { log.Debug("documents were not given their norms", "err", err) },
	})
	n.keeper = norms.NewKeeper(n, n, bound, n.repairs)
	return n
}

// close ends the repairs and the calls under way.
func (n *normWrites) close() {
	n.repairs.Close()
	n.targets.Close()
}

// Write implements [proxy.Norms].
func (n *normWrites) Write(ctx context.Context, w *proxy.Write) (*proxy.Written, error) {
	in := norms.Write(*w)
	kept, err := n.keeper.Write(ctx, &in)
	if kept == nil {
		return nil, err
	}
	written := proxy.Written(*kept)
	return &written, err
}

// Target implements [norms.Targets].
func (n *normWrites) Target(ctx context.Context, name string) (*norms.Target, error) {
	found, err := n.targets.Target(ctx, name)
	var refused *esclient.Error
	switch {
	case errors.Is(err, esclient.ErrNoTarget):
		return nil, fmt.Errorf("%w: %w", norms.ErrNoTarget, err)
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return nil, fmt.Errorf("%w: %w", norms.ErrNoIndex, err)
	case err != nil:
		return nil, err
	}
	target := &norms.Target{
		Index: found.Index, Routing: found.Routing, Pipelines: found.Pipelines, PartialSource: found.PartialSource,
	}
	for _, f := range found.Texts {
		if found.Stores(norms.NormPath(f.Name), norms.WeightsPath(f.Name)) {
			target.Fields = append(target.Fields, norms.TextField(f))
		}
	}
	return target, nil
}

// Forget implements [norms.Targets].
func (n *normWrites) Forget(name string) { n.targets.Forget(name) }

// Unstored implements [norms.Analyzer].
func (n *normWrites) Unstored(ctx context.Context, docs []norms.Unstored) ([]norms.UnstoredTerms, error) {
	asked := make([]esclient.UnstoredDoc, len(docs))
	for i := range docs {
		asked[i] = esclient.UnstoredDoc(docs[i])
	}
	found, err := n.client.UnstoredTerms(ctx, asked)
	if err != nil {
		return nil, err
	}
	all := make([]norms.UnstoredTerms, len(found))
	for i := range found {
		all[i] = norms.UnstoredTerms{Fields: make(map[string][]norms.TermFreq, len(found[i].Fields)), Err: found[i].Err}
		for field, terms := range found[i].Fields {
			own := make([]norms.TermFreq, len(terms))
			for k, t := range terms {
				own[k] = norms.TermFreq(t)
			}
			all[i].Fields[field] = own
		}
	}
	return all, nil
}

// Read implements [norms.Documents].
func (n *normWrites) Read(ctx context.Context, docs []norms.Doc) ([]norms.Stored, error) {
	refs := make([]esclient.DocRef, len(docs))
	for i := range docs {
		refs[i] = docRef(&docs[i])
	}
	found, err := n.client.ReadDocs(ctx, refs, []string{norms.Object, norms.WeightsObject})
	if err != nil {
		return nil, err
	}
	all := make([]norms.Stored, len(found))
	for i := range found {
		all[i] = norms.Stored{
			Found: found[i].Found, Members: found[i].Source,
			Doc: norms.Doc{
				Index: found[i].Index, ID: found[i].ID, Routing: found[i].Routing, SeqNo: found[i].SeqNo,
				PrimaryTerm: found[i].PrimaryTerm, Version: found[i].Version,
			},
		}
	}
	return all, nil
}

// FieldTerms implements [norms.Documents].
func (n *normWrites) FieldTerms(ctx context.Context, field string, docs []norms.Doc) ([]norms.DocTerms, error) {
	return (&normsIndex{client: n.client, field: field}).Terms(ctx, docs)
}

// Update implements [norms.Documents].
func (n *normWrites) Update(ctx context.Context, updates []norms.Update) ([]norms.Outcome, error) {
	return (&normsIndex{client: n.client}).Update(ctx, updates)
}
