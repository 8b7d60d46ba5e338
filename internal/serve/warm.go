package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/store"
)

const (
	askTimeout = time.Second            // of asking the cluster what it is
	askAgain   = 200 * time.Millisecond // pause between attempts while no node answers
	warmLimit  = 5 * time.Second        // of the warm-up; after it akin is ready anyway
	maxWarm    = 32                     // fields to warm up: a second or two on a cluster just started
	sideBySide = 4                      // of them
)

// awaitNode waits until some node answers, whatever the answer. If ctx ends
// first, it returns the last error, of a call that ctx did not end if there is
// one.
func (a *App) awaitNode(ctx context.Context) error {
	var last error
	for {
		asked, cancel := context.WithTimeout(ctx, askTimeout)
		err := a.nodes.Reach(asked)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(askAgain):
		}
	}
}

func (a *App) ask(ctx context.Context) (esclient.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return a.client.Info(ctx)
}

// binding is a matrix, or weights, in the start-up line.
type binding struct {
	Name    string   `json:"name"`
	Indices []string `json:"indices"`
	Fields  []string `json:"fields"`
	Source  string   `json:"source"`
	Version string   `json:"version"`
	Terms   uint64   `json:"terms"`
}

// announce logs the start, once, and what is missing for akin to do its work.
func (a *App) announce(ctx context.Context, info esclient.Info, err error) {
	cluster := info.String()
	level := slog.LevelInfo
	missing := []string{}
	if a.store == nil {
		missing = append(missing, "no matrices: searches are forwarded unexpanded")
	}
	if d, ok := degradation(err); ok {
		cluster = "unknown"
		missing = append(missing, d.Detail+": "+err.Error())
	}
	for _, d := range a.incomplete() {
		missing = append(missing, d.Detail)
	}
	if len(missing) > 0 {
		level = slog.LevelWarn // what follows is configured so
	}
	e := &a.cfg.Expansion
	if !e.Enabled {
		missing = append(missing, "expansion.enabled is false: only searches that name a profile are expanded")
	}
	if a.cfg.Admin.Exposed() && a.cfg.Admin.Token.Reveal() == "" {
		missing = append(missing, "admin.token_file or "+configs.EnvAdminToken+": without a token /playground and /_akin answer 403 on this address")
	}
	if e.Shadow > 0 {
		missing = append(missing, "expansion.shadow is set: clients get the answers to their original searches")
	}
	keys := configs.Keys(&e.Profile)
	a.log.Log(ctx, level, "started", "akin", a.process.build.String(), "cluster", cluster,
		"mode", keys["mode"], "scoring", keys["scoring"], "matching", keys["matching"],
		"matrices", bindings(a.cfg.Matrices, a.store), "weights", bindings(a.cfg.Weights, a.weights), "missing", missing)
}

func bindings(entries []configs.Matrix, of *store.Store) []binding {
	all := make([]binding, 0, len(entries))
	for _, m := range entries {
		b := binding{Name: m.Name, Indices: m.Indices, Fields: m.Fields}
		for _, s := range of.State() {
			if s.Name == m.Name {
				b.Source = s.Source
				b.Version = s.Version
				b.Terms = s.Terms
			}
		}
		all = append(all, b)
	}
	return all
}

// boundField is a field of an index or alias with a bound matrix.
type boundField struct{ index, field string }

// warmUp asks the cluster for what the first searches need: mappings,
// analyzers, statistics, and whether scripts run. That fills the caches, opens
// connections, and makes the cluster load its code. Then akin is ready.
func (a *App) warmUp(ctx context.Context) {
	defer a.warm.Store(true)
	if a.expander == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmLimit)
	defer cancel()
	began := time.Now()
	const what = "warming up"
	var fields []boundField
	err := a.process.guard.Do(what, func() (err error) {
		fields, err = a.boundFields(ctx, a.Expression(), maxWarm)
		return err
	})
	var done atomic.Int64
	warmed := recovery.InParallel(len(fields), sideBySide, func(i int) error {
		err := a.process.guard.Do(what, func() error { return a.warmField(ctx, fields[i]) })
		if err == nil {
			done.Add(1)
		}
		return err
	})
	if err = errors.Join(err, warmed); err != nil { // log only the cause: the error may hold text of a document
		a.log.WarnContext(ctx, "warm-up is not complete: the first searches may fail open", "fields", done.Load(), "of", len(fields),
			"took", time.Since(began), "cause", cause(err))
		return
	}
	a.log.InfoContext(ctx, "warmed up", "fields", done.Load(), "took", time.Since(began))
}

// boundFields returns the text fields with a matrix in the indices of an
// expression, up to most, by index in turn.
func (a *App) boundFields(ctx context.Context, expression string, most int) (fields []boundField, err error) {
	indices, err := a.client.TextIndices(ctx, expression)
	if err != nil {
		return nil, err
	}
	indices = slices.DeleteFunc(indices, func(i esclient.TextIndex) bool { return strings.HasPrefix(i.Name, ".") })
	pinned := matrices{a.store, a.cluster, nil}.Pin()
	for k, more := 0, true; more; k++ {
		more = false
		for _, i := range indices {
			if k >= len(i.Fields) {
				continue
			}
			more = true
			bound, err := pinned.For(ctx, esclient.Indices{Expression: i.Name}, i.Fields[k])
			if err != nil {
				return fields, err
			}
			if bound.Rows != nil {
				fields = append(fields, boundField{i.Name, i.Fields[k]})
			}
			if len(fields) == most {
				return fields, nil
			}
		}
	}
	return fields, nil
}

// Expression returns an index expression for everything with a matrix.
func (a *App) Expression() string {
	const maxExpression = 1000 // bytes, in a request line
	var patterns []string
	for _, m := range a.cfg.Matrices {
		for _, pattern := range m.Indices {
			if !strings.HasPrefix(pattern, "-") { // another entry may include what this one excludes
				patterns = append(patterns, pattern)
			}
		}
	}
	if expression := strings.Join(patterns, ","); len(expression) <= maxExpression {
		return expression
	}
	return "*"
}

// warmField expands a search for a text of a document in the field, as if a
// client had sent it, and asks for the statistics of its words.
func (a *App) warmField(ctx context.Context, f boundField) error {
	text, err := a.client.SampleText(ctx, f.index, f.field)
	if esclient.IsUnknown(err) || err == nil && text == "" {
		return nil // the index is gone or empty, the field of another type, or it is the demo's engine
	}
	if err != nil {
		return err
	}
	if _, _, err := preview(ctx, a.expander, f.index, f.field, text); err != nil {
		return err
	}
	// If the words have no neighbors, the search asked for no statistics.
	indices := esclient.Indices{Expression: f.index}
	words, err := a.cluster.Analyze(ctx, indices, f.field, "", text)
	if errors.Is(err, mapping.ErrNotText) || errors.Is(err, esclient.ErrRemote) || errors.Is(err, mapping.ErrMixed) {
		return nil // the field is not expanded
	}
	if err != nil {
		return err
	}
	_, err = a.cluster.Statistics(ctx, indices, f.field, words.Terms, make([]int64, len(words.Terms)))
	return err
}

const (
	// warmHitsEvery is the pause between two readings of all documents' terms;
	// what is cached costs the next one only its numbers. warmHitsAgain is the
	// pause after a reading that failed or found nothing.
	warmHitsEvery = time.Hour
	warmHitsAgain = time.Minute
	// A reading fills 1/warmShare of the memory for terms: half of the documents'
	// part, so that it does not evict what it has read.
	warmShare = 4
	// warmRest times what a part of a reading took is the pause after it: readings
	// take a fifth of one of the cluster's cores.
	warmRest = 4
	// warmFields limits the fields whose terms are read.
	warmFields = 1000
)

// errWarmEnough ends a reading when enough memory is filled.
var errWarmEnough = errors.New("the memory is full enough")

// keepWarm calls read, and again after the pause that it returns, until ctx
// ends. It waits until the caches of searches are filled, since a cluster that
// is starting has enough to do, and until ready.
func (a *App) keepWarm(ctx context.Context, ready func() bool, read func() (pause time.Duration)) {
	for pause := time.Second; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = time.Second
		if a.warm.Load() && ready() {
			pause = read()
		}
	}
}

// keepHitsWarm calls warmHits repeatedly until ctx ends.
func (a *App) keepHitsWarm(ctx context.Context, hits *soft.Reranker) {
	a.keepWarm(ctx, func() bool { return true }, func() time.Duration {
		began, read := time.Now(), 0
		err := a.process.guard.Do("reading the terms of documents", func() (err error) {
			read, err = a.warmHits(ctx, hits)
			return err
		})
		switch {
		case ctx.Err() != nil:
		case err != nil && !errors.Is(err, errWarmEnough):
			a.log.WarnContext(ctx, "not all terms of documents were read: searches read what they lack", "documents", read, "cause", cause(err))
		case read > 0:
			a.log.InfoContext(ctx, "terms of documents are remembered", "documents", read, "bytes", hits.Stats().Bytes, "took", time.Since(began))
		}
		if read == 0 && !errors.Is(err, errWarmEnough) { // it failed, or there is no matrix yet
			return warmHitsAgain
		}
		return warmHitsEvery
	})
}

// warmHits caches the terms of documents in all fields with a matrix, keyed as
// searches name the documents, so that few searches must ask for them. It
// rests between its calls. It returns how many documents it has
// read. A failing index does not stop the others.
func (a *App) warmHits(ctx context.Context, hits *soft.Reranker) (read int, err error) {
	bound, err := a.boundFields(ctx, a.Expression(), warmFields)
	if err != nil {
		return 0, err
	}
	var indices []string // in the order of bound, each once
	fields := map[string][]string{}
	for _, f := range bound {
		if fields[f.index] == nil {
			indices = append(indices, f.index)
		}
		fields[f.index] = append(fields[f.index], f.field)
	}
	before := hits.Stats().Forgotten
	var said []report.Remembered
	defer func() { a.remembered.Store(&said) }()
	done := map[string]string{} // by concrete index: the name under which it was read first
	var failed []error
	for _, index := range indices {
		names := fields[index]
		measures, err := a.measuresOf(ctx, index, names)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", index, err))
			continue
		}
		all, err := documents.API{Client: a.client}.Count(ctx, index, nil)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", index, err))
			continue
		}
		said = append(said, report.Remembered{Index: index, Of: all})
		began := time.Now() // of the reading of a page
		err = documents.API{Client: a.client}.ScanRefs(ctx, documents.RefOptions{Index: index}, func(docs []documents.DocRef) error {
			some := map[string][]expand.Hit{} // by concrete index
			for _, d := range docs {
				if done[d.Index] = cmp.Or(done[d.Index], index); done[d.Index] != index {
					continue
				}
				read++
				said[len(said)-1].Documents++
				some[d.Index] = append(some[d.Index], expand.Hit{Index: d.Index, ID: d.ID, Routing: d.Routing, SeqNo: d.SeqNo, Version: d.Version})
			}
			for concrete, found := range some {
				if a.oneShard(ctx, concrete, names) {
					for i := range found {
						found[i] = expand.Hit{Index: concrete, SeqNo: found[i].SeqNo}
					}
				}
				if _, err := hits.Terms(ctx, names, found); err != nil {
					return err
				}
				// Document lengths take longest and do not depend on the text.
				for _, measure := range measures {
					_, _ = hits.Scores(ctx, measure, found) // if a document has changed, or a field has no terms, searches ask for these hits
				}
			}
			if s := hits.Stats(); s.Documents > a.cfg.Caches.Large()/warmShare || s.Forgotten != before {
				return errWarmEnough
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(warmRest * time.Since(began)):
				began = time.Now()
				return nil
			}
		})
		if ctx.Err() != nil || errors.Is(err, errWarmEnough) {
			return read, err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", index, err))
		}
	}
	return read, errors.Join(failed...)
}

// measuresOf returns a measure of any text in each of the fields of an index.
func (a *App) measuresOf(ctx context.Context, index string, fields []string) (all []*expand.Rerank, err error) {
	matrices, at := matrices{a.store, a.cluster, nil}.Pin(), esclient.Indices{Expression: index}
	for _, name := range fields {
		bound, err := matrices.For(ctx, at, name)
		if err != nil {
			return nil, err
		}
		f := expand.RerankField{Field: name, Boost: 1, Terms: []string{name}, Freqs: []float64{1}, Similarities: bound.Rows}
		if a.weights != nil {
			if f.Weights, err = (weightSource{a.weights, a.cluster}).Pin().Weights(ctx, at, name); err != nil {
				return nil, err
			}
		}
		all = append(all, &expand.Rerank{SoftWeight: 1, Fields: []expand.RerankField{f}})
	}
	return all, nil
}

// oneShard reports whether searches in the fields of a concrete index identify
// documents by numbers alone.
func (a *App) oneShard(ctx context.Context, index string, fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool {
		analysis, err := a.cluster.Analyze(ctx, esclient.Indices{Expression: index}, field, "", "")
		return err != nil || analysis.Shards != 1
	})
}
