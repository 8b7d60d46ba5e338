package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/embed"
	"github.com/akin-search/akin/internal/vectorstore"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/store"
)

// rerankers score hits by what a search asks for: the soft cosine, vectors of a
// language model, or both.
type rerankers struct {
	soft    *soft.Reranker
	budget  time.Duration       // of the soft cosine; vectors have their own
	vectors *embedding.Reranker // nil without a model
}

func (r rerankers) Begin(ctx context.Context, by *expand.Rerank) {
	if by.Text != "" {
		r.vectors.Begin(ctx, by)
	}
}

// Scores returns what each of the two knows, and the first error: one that
// fails leaves the order to the other.
func (r rerankers) Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
	var scores []expand.HitScore
	var softErr error
	if len(by.Fields) > 0 {
		bounded, cancel := context.WithTimeout(ctx, r.budget)
		defer cancel()
		scores, softErr = r.soft.Scores(bounded, by, hits)
	}
	if by.Text == "" {
		return scores, softErr
	}
	cosines, vectorsErr := r.vectors.Scores(ctx, by, hits)
	if scores == nil && cosines == nil {
		return nil, cmp.Or(softErr, vectorsErr)
	}
	both := make([]expand.HitScore, len(hits))
	for k := range both {
		both[k].Unknown = true
		if scores != nil {
			both[k] = scores[k]
		}
		both[k].NoVector = true
		if cosines != nil {
			both[k].Cosine, both[k].NoVector = cosines[k].Cosine, cosines[k].NoVector
		}
	}
	return both, cmp.Or(softErr, vectorsErr)
}

func (r rerankers) Remember(ctx context.Context, by *expand.Rerank, hits []expand.Hit) error {
	return r.soft.Remember(ctx, by, hits)
}

// A LanguageModel makes vectors as a configuration says.
type LanguageModel struct {
	// Host is where the texts go, for people.
	Host string
	// Search returns the vector of a search. Maker makes those of documents.
	Search func(ctx context.Context, text string) ([]float32, error)
	Maker  *embedding.Maker

	closers []io.Closer
}

// OpenLanguageModel returns the model of a configuration, whose cluster a
// client calls. timed is told how long each call took; what is search or
// documents.
func OpenLanguageModel(cfg *configs.Config, cluster *esclient.Client, timed func(what string, took time.Duration, err error)) (m *LanguageModel, err error) {
	e := &cfg.Embeddings
	api := &embed.Model{Name: e.Model, Key: e.Key.Reveal(), Client: cluster}
	if api.Node, api.Path, err = embed.Split(e.URL); err != nil {
		return nil, fmt.Errorf("embeddings.url: %w", err)
	}
	if e.Model == "" && !embed.NamesModel(api.Path) {
		return nil, errors.New("embeddings.model: the URL does not name the model")
	}
	m = &LanguageModel{Host: "the cluster"}
	if api.Node != "" {
		_, m.Host, _ = strings.Cut(api.Node, "://")
		ca, err := cli.ReadAuthorities(e.CAFile)
		if err == nil {
			api.Client, err = esclient.New(esclient.Options{URL: api.Node, CA: ca, Outside: true})
		}
		if err != nil {
			return nil, fmt.Errorf("embeddings: %w", err)
		}
		m.closers = append(m.closers, closing(api.Client.Close))
	}
	ask := func(ctx context.Context, what, prefix string, texts []string) ([][]float32, error) {
		sent := make([]string, len(texts))
		for i, text := range texts {
			sent[i] = prefix + text
		}
		began := time.Now()
		vectors, err := api.Once(ctx, sent)
		timed(what, time.Since(began), err)
		return vectors, err
	}
	m.Search = func(ctx context.Context, text string) ([]float32, error) {
		vectors, err := ask(ctx, callSearch, e.SearchPrefix, []string{text})
		if err != nil {
			return nil, err
		}
		return vectors[0], nil
	}
	m.Maker = &embedding.Maker{
		Name: strings.Join([]string{cmp.Or(e.Model, api.Path), e.DocumentPrefix}, "\x00"),
		Documents: func(ctx context.Context, texts []string) ([][]float32, error) {
			return ask(ctx, callDocuments, e.DocumentPrefix, texts)
		},
		Refused: func(err error) bool { return errors.Is(err, embed.ErrRefused) || errors.Is(err, embed.ErrServer) },
	}
	if err := m.openStore(cfg); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// closing is an [io.Closer] without an error.
type closing func()

// Close implements [io.Closer].
func (f closing) Close() error {
	f()
	return nil
}

// openStore opens the store of vectors, if there is one.
func (m *LanguageModel) openStore(cfg *configs.Config) error {
	switch url := cfg.Redis.URL.Reveal(); {
	case cfg.Embeddings.File != "":
		file := vectorstore.NewFile(cfg.Embeddings.File)
		m.Maker.Store = file
		m.closers = append(m.closers, file)
	case url != "":
		certificates, err := cli.RedisTLS(cfg.Redis.TLS)
		if err != nil {
			return err
		}
		shared, err := vectorstore.NewRedis(store.Redis{URL: url, TLS: certificates})
		if err != nil {
			return err
		}
		m.Maker.Store = shared
		m.closers = append(m.closers, shared)
	}
	return nil
}

// Close closes connections and the store.
func (m *LanguageModel) Close() {
	for _, c := range slices.Backward(m.closers) {
		_ = c.Close() // what it holds is made again
	}
}

// Values of the label "what" of calls of the model.
const (
	callSearch    = "search"
	callDocuments = "documents"
)

// openEmbeddings sets a.embeddings and starts what orders hits by vectors of
// a language model.
func (a *App) openEmbeddings() error {
	cfg := &a.cfg.Embeddings
	took := promauto.With(a.metrics).NewHistogramVec(prometheus.HistogramOpts{
		Name: "akin_embeddings_call_duration_seconds", Help: "Calls of the language model that orders hits, by what the vectors are of.",
		Buckets: []float64{.002, .005, .01, .02, .04, .1, .25, 1, 5, 30},
	}, []string{"what"})
	failed := promauto.With(a.metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "akin_embeddings_failed_calls_total", Help: "Calls of the language model that failed, by what the vectors are of.",
	}, []string{"what"})
	for _, what := range []string{callSearch, callDocuments} {
		took.WithLabelValues(what)
		failed.WithLabelValues(what)
	}
	model, err := OpenLanguageModel(a.cfg, a.client, func(what string, d time.Duration, err error) {
		took.WithLabelValues(what).Observe(d.Seconds())
		if err != nil {
			failed.WithLabelValues(what).Inc()
		}
	})
	if err != nil {
		return err
	}
	a.onClose(model.Close)
	a.model = model
	a.embeddings = embedding.New(embedding.Options{
		Maker: model.Maker, Search: model.Search, Rejected: func(err error) bool { return errors.Is(err, embed.ErrRefused) }, Fields: cfg.Fields, Sources: termVectors{documents.API{Client: a.client}},
		Bytes: int64(cfg.Size), Budget: time.Duration(cfg.Budget), TTL: time.Duration(a.cfg.Caches.TTL),
		Guard: a.process.guard, Client: proxy.ClientOf,
		OnState: func(s embedding.State) {
			switch {
			case s.Changed:
				a.log.Warn("another language model answers under the name: the vectors of documents are made again", "model", cfg.Model, "at", model.Host)
			case s.Ready:
				a.log.Info("the language model answers", "model", cfg.Model, "at", model.Host)
			default:
				a.log.Warn("the language model does not answer: hits keep the order without it", "model", cfg.Model, "at", model.Host, "err", s.Err)
			}
		},
	})
	a.onClose(a.embeddings.Close)
	return nil
}

const (
	// vectorsRest times what the reading of some documents took is the pause
	// after it, with the time of the model: both are at work for a fifth of the
	// time.
	vectorsRest = 4
	// vectorsAgain is the pause before a reading that failed is repeated.
	vectorsAgain = time.Minute
)

// keepVectorsWarm has the vectors of all documents made, and every hour
// those of new ones, until ctx ends.
func (a *App) keepVectorsWarm(ctx context.Context, r *embedding.Reranker) {
	a.keepWarm(ctx, func() bool { return r.State().Ready }, func() time.Duration {
		began, read := time.Now(), 0
		err := a.process.guard.Do("embedding documents", func() (err error) {
			read, err = a.warmVectors(ctx, r)
			return err
		})
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errWarmEnough):
			a.log.InfoContext(ctx, "the memory for vectors is full: those of documents that searches find stay", "documents", read, "took", time.Since(began))
		case err != nil:
			a.log.WarnContext(ctx, "not all documents have vectors yet", "documents", read, "cause", cause(err))
			return vectorsAgain
		default:
			a.log.InfoContext(ctx, "vectors of documents are remembered", "documents", read, "took", time.Since(began))
		}
		return warmHitsEvery
	})
}

// warmVectors has the vectors of the documents of all indices with a matrix
// made. It rests between its calls, and returns how many documents it has read.
func (a *App) warmVectors(ctx context.Context, r *embedding.Reranker) (read int, err error) {
	indices, err := a.EmbeddedIndices(ctx)
	if err != nil {
		return 0, err
	}
	first := a.embedded.Load() == nil
	said := make([]report.Remembered, 0, len(indices))
	tell := func() {
		now := slices.Clone(said)
		a.embedded.Store(&now)
	}
	defer tell()
	var failed []error
	for _, index := range indices {
		all, err := documents.API{Client: a.client}.Count(ctx, index, nil)
		if err == nil {
			said = append(said, report.Remembered{Index: index, Of: all, Bytes: all * int64(r.DocumentBytes())})
			err = a.warmIndex(ctx, r, index, func(n int) {
				read += n
				said[len(said)-1].Documents += n
				if first { // later ones begin with what the first came to
					tell()
				}
			})
		}
		if ctx.Err() != nil || errors.Is(err, errWarmEnough) {
			return read, err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", index, err))
		}
	}
	return read, errors.Join(failed...)
}

// warmIndex has the vectors of the documents of an index made, and tells of how
// many at a time.
func (a *App) warmIndex(ctx context.Context, r *embedding.Reranker, index string, told func(n int)) error {
	o := documents.RefOptions{Index: index, Source: a.cfg.Embeddings.Fields}
	began := time.Now() // of the reading of a page
	return documents.API{Client: a.client}.ScanRefs(ctx, o, func(docs []documents.DocRef) error {
		room, err := r.Warm(ctx, docs)
		if err != nil {
			return err
		}
		if !room {
			return errWarmEnough
		}
		told(len(docs))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(vectorsRest * time.Since(began)):
			began = time.Now()
			return nil
		}
	})
}

// EmbeddedIndices returns the concrete indices that have a matrix for a field
// that the model reads.
func (a *App) EmbeddedIndices(ctx context.Context) (concrete []string, err error) {
	bound, err := a.boundFields(ctx, a.Expression(), warmFields)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range bound {
		if slices.Contains(names, f.index) || !a.embeddings.Reads(f.field) {
			continue
		}
		names = append(names, f.index)
		behind, err := documents.API{Client: a.client}.Indices(ctx, f.index)
		if err != nil {
			return nil, err
		}
		for _, i := range behind {
			if !slices.Contains(concrete, i.Name) {
				concrete = append(concrete, i.Name)
			}
		}
	}
	return concrete, nil
}

// An EmbeddingPlan is what making the vectors of all documents takes: texts of
// Documents in Indices go to Host, as far as they have no vector yet.
type EmbeddingPlan struct {
	Host      string
	Indices   []string
	Documents int64
}

// PlanEmbeddings returns the plan of [App.Embed].
func (a *App) PlanEmbeddings(ctx context.Context) (p EmbeddingPlan, err error) {
	if a.embeddings == nil {
		return p, errNoModel
	}
	if a.model.Maker.Store == nil {
		return p, errors.New("embeddings.file or redis.url is needed to keep the vectors")
	}
	p.Host = a.model.Host
	if p.Indices, err = a.EmbeddedIndices(ctx); err != nil {
		return p, err
	}
	for _, index := range p.Indices {
		n, err := documents.API{Client: a.client}.Count(ctx, index, nil)
		if err != nil {
			return p, err
		}
		p.Documents += n
	}
	return p, nil
}

// TryModel asks the language model for a vector, and returns where it is and
// the number of dimensions.
func (a *App) TryModel(ctx context.Context) (host string, dim int, err error) {
	if a.model == nil {
		return "", 0, errNoModel
	}
	dim, _, _, err = a.model.Maker.Identify(ctx)
	return a.model.Host, dim, err
}

var errNoModel = errors.New("embeddings.url and matrices are needed to make vectors")

// embedAtOnce is how many calls of the model are in flight, each with a page of
// documents.
const embedAtOnce = 4

// Embed has the vectors of all documents of a plan made and kept, without rest,
// and returns how many the model has made. done is told how many documents are
// done, by one goroutine at a time. What is kept is not made again, so that it
// goes on where it was interrupted.
func (a *App) Embed(ctx context.Context, p EmbeddingPlan, done func(n int)) (made int, err error) {
	maker := a.model.Maker
	if _, _, _, err := maker.Identify(ctx); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	read := 0
	for _, index := range p.Indices {
		group, inGroup := errgroup.WithContext(ctx)
		group.SetLimit(embedAtOnce)
		o := documents.RefOptions{Index: index, Source: a.cfg.Embeddings.Fields}
		scanned := documents.API{Client: a.client}.ScanRefs(inGroup, o, func(docs []documents.DocRef) error {
			group.Go(func() error {
				return a.process.guard.Do("embedding documents", func() error {
					texts := make([]string, len(docs))
					for i := range docs {
						texts[i] = embedding.Text(docs[i].Source, a.cfg.Embeddings.Fields)
					}
					_, n, err := maker.Make(inGroup, texts)
					if err = cmp.Or(err, maker.Problem()); err != nil {
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					made += n
					read += len(docs)
					done(read)
					return nil
				})
			})
			return nil
		})
		if err := cmp.Or(group.Wait(), scanned); err != nil {
			return made, fmt.Errorf("%s: %w", index, err)
		}
	}
	return made, nil
}
