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
	"github.com/akin-search/akin/internal/recovery"
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
	due     prometheus.Counter
}

// newNormWrites returns norms by the weights of store. close ends them.
func newNormWrites(
	client *esclient.Client, ttl time.Duration, store *rowstore.Store, registry prometheus.Registerer, guard *recovery.Guard, log *slog.Logger,
) *normWrites {
	repairs := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "akin_norm_repairs_total",
		Help: "Documents whose norms were to be computed after they were written, by what became of that.",
	}, []string{"result"})
	due := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "akin_norms_backfill_due_total",
		Help: "Documents that may hold the norms of their old text since theirs could not be computed, and bulk requests, each once, that may hold such documents. When it rises, run akin norms backfill --all.",
	})
	registry.MustRegister(repairs, due)
	n := &normWrites{client: client, targets: esclient.NewWriteTargets(client, ttl), due: due}
	bound := func(index, field string) (norms.FrozenWeights, bool) {
		snapshot := store.Pin()
		if rows := snapshot.For(index, field); rows != nil {
			return weights{rows}, true
		}
		return nil, snapshot.Bound(index, field) // not a weights of nil
	}
	n.repairs = norms.NewRepairer(n, n, bound, norms.RepairOptions{
		OnResult: func(result string) {
			repairs.WithLabelValues(result).Inc()
			if lost(result) {
				due.Inc()
			}
		},
		OnError: func(err error) { log.Debug("documents were not given their norms", "err", err) },
		Guard:   guard,
	})
	n.keeper = norms.NewKeeper(n, n, bound, n.repairs, guard)
	return n
}

// close ends the repairs and the calls under way.
func (n *normWrites) close() {
	n.repairs.Close()
	n.targets.Close()
}

// lost reports whether a document may be left with the norms of its old
// text, by what became of its repair, or of itself.
func lost(result string) bool {
	switch result {
	case norms.RepairOverflow, norms.RepairFailed, norms.RepairDropped, norms.DocumentLeft, norms.DocumentUnread:
		return true
	default:
		return false
	}
}

// count notes the documents of a write that are lost.
func (n *normWrites) count(documents map[string]int) map[string]int {
	for result, number := range documents {
		if lost(result) {
			n.due.Add(float64(number))
		}
	}
	return documents
}

// Write implements [proxy.Norms].
func (n *normWrites) Write(ctx context.Context, w *proxy.Write) (*proxy.Written, error) {
	ended := false
	defer func() {
		if !ended { // a panic, which the proxy makes an error of
			n.due.Inc()
		}
	}()
	in := norms.Write(*w)
	kept, err := n.keeper.Write(ctx, &in)
	ended = true
	if kept == nil {
		return nil, err
	}
	written := &proxy.Written{Body: kept.Body, Documents: n.count(kept.Documents)}
	if kept.Done != nil {
		written.Done = func(a proxy.WriteAnswer) map[string]int { return n.count(kept.Done(norms.Answer(a))) }
	}
	return written, err
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
		Index: found.Index, Routing: found.Routing, Aliases: found.Aliases,
		Pipelines: found.Pipelines, PartialSource: found.PartialSource,
	}
	named := map[string]int{}
	for _, f := range found.Texts {
		named[norms.Name(f.Name)]++
	}
	for _, f := range found.Texts { // two of one name have no norms, as in a backfill
		if named[norms.Name(f.Name)] == 1 && found.Stores(norms.NormPath(f.Name), norms.WeightsPath(f.Name)) {
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
			all[i].Fields[field] = normTerms(terms)
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
	return norms.ReadTerms(ctx, &normsIndex{client: n.client, field: field}, docs)
}

// Update implements [norms.Documents].
func (n *normWrites) Update(ctx context.Context, updates []norms.Update) ([]norms.Outcome, error) {
	return (&normsIndex{client: n.client}).Update(ctx, updates)
}
