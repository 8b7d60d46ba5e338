package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

const (
	// setupTimeout limits each of the page's questions.
	setupTimeout = 3 * time.Second
	// shownNeighbors and shownVersions limit what the playground gets.
	shownNeighbors, shownVersions = 200, 50
	// fieldsLife is how long the page's look-ups use the fields that were found.
	fieldsLife = time.Minute
)

// playgroundMatrices gives the playground the matrices of an App.
type playgroundMatrices struct {
	app   *App
	redis *store.Admin // nil if no matrix comes from Redis

	mu     sync.Mutex
	fields []boundField // that have a matrix, as of read
	read   time.Time
}

func (a *App) openPlayground() (playground.Matrices, error) {
	m := &playgroundMatrices{app: a}
	if a.store == nil || a.cfg.Redis.URL.Reveal() == "" {
		return m, nil
	}
	certificates, err := cli.RedisTLS(a.cfg.Redis.TLS)
	if err != nil {
		return nil, err
	}
	if m.redis, err = store.OpenAdmin(store.Redis{URL: a.cfg.Redis.URL.Reveal(), TLS: certificates}); err != nil {
		return nil, err
	}
	a.onClose(func() { a.closing("connection to Redis", m.redis.Close()) })
	return m, nil
}

// boundFields returns the text fields with a matrix, and reads the mappings of
// all indices only if it did so longer ago.
func (m *playgroundMatrices) boundFields(ctx context.Context) (fields []boundField, err error) {
	m.mu.Lock()
	fields = m.fields
	fresh := time.Since(m.read) < fieldsLife
	m.mu.Unlock()
	if fresh {
		return fields, nil
	}
	if fields, err = m.app.boundFields(ctx, m.app.Expression(), maxWarm); err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.fields, m.read = fields, time.Now()
	}
	return fields, err
}

// Setup implements [playground.Matrices]. It omits what is not available.
func (m *playgroundMatrices) Setup(ctx context.Context) (playground.Setup, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	out := playground.Setup{
		Indices: []playground.Index{}, Matrices: []playground.Matrix{}, Cluster: m.app.cfg.Cluster.URLs[0],
		Profiles: append([]string{}, slices.Sorted(maps.Keys(m.app.cfg.Profiles))...),
	}
	if m.app.store == nil {
		return out, nil
	}
	fields, err := m.boundFields(ctx)
	if err != nil {
		m.app.log.DebugContext(ctx, "the playground lists no indices", "err", err)
	}
	for _, f := range fields {
		at := slices.IndexFunc(out.Indices, func(i playground.Index) bool { return i.Name == f.index })
		if at < 0 {
			at, out.Indices = len(out.Indices), append(out.Indices, playground.Index{Name: f.index})
		}
		out.Indices[at].Fields = append(out.Indices[at].Fields, f.field)
	}
	for _, s := range m.app.store.State() {
		out.Matrices = append(out.Matrices, playground.Matrix{Name: s.Name, Versions: m.versions(ctx, s)})
	}
	return out, nil
}

// versions returns the versions of a matrix; of a file only the served one.
func (m *playgroundMatrices) versions(ctx context.Context, s store.State) []playground.Version {
	all := []playground.Version{}
	if s.Source == store.SourceRedis && m.redis != nil {
		versions, err := m.redis.Versions(ctx, s.Name)
		if err != nil {
			m.app.log.DebugContext(ctx, "the playground lists no versions", "err", err)
		}
		for _, v := range versions[:min(len(versions), shownVersions)] {
			all = append(all, playground.Version{ID: v.ID, Active: v.Active})
		}
	} else if s.Version != "" {
		all = append(all, playground.Version{ID: s.Version, Active: true})
	}
	return all
}

// Neighbors implements [playground.Matrices].
func (m *playgroundMatrices) Neighbors(ctx context.Context, matrix, version, word string) (playground.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if m.app.store == nil {
		return playground.Row{}, playground.ErrUnknown
	}
	states := m.app.store.State()
	at := slices.IndexFunc(states, func(s store.State) bool { return s.Name == matrix })
	if at < 0 {
		return playground.Row{}, fmt.Errorf("%w: %.80q", playground.ErrUnknown, matrix)
	}
	state := states[at]
	version = cmp.Or(version, state.Version)
	var term, nearest string
	var rows []simmatrix.Row
	var err error
	switch served := m.app.store.Pin().Of(matrix); {
	case version == "", state.Source == store.SourceFile && version != state.Version:
		err = playground.ErrUnknown
	case state.Source == store.SourceFile:
		in := served.Matrix()
		if term = m.analyzed(ctx, matrix, word, in.Has); term == "" {
			term, nearest = simmatrix.LookUp(word, in.TermsOf(word, strings.ToLower(word)), in.Nearest)
		}
		rows = []simmatrix.Row{in.Row(term)}
	default:
		term = m.analyzed(ctx, matrix, word, func(term string) bool {
			_, rows, err := m.redis.Rows(ctx, matrix, version, []string{term})
			return err == nil && !rows[0].IsZero()
		})
		if term == "" {
			term, nearest = m.lookUp(ctx, matrix, version, word)
		}
		version, rows, err = m.redis.Rows(ctx, matrix, version, []string{term})
	}
	if errors.Is(err, store.ErrUnknownVersion) || errors.Is(err, store.ErrName) {
		err = fmt.Errorf("%w: %w", playground.ErrUnknown, err)
	}
	if err != nil {
		return playground.Row{}, err
	}
	out := playground.Row{Version: version, Term: term, Nearest: nearest, DocFreq: rows[0].DocFreq(), Neighbors: []playground.Neighbor{}}
	terms := []string{term}
	for n := range rows[0].All() {
		if len(out.Neighbors) == shownNeighbors {
			break
		}
		terms = append(terms, n.Term)
		out.Neighbors = append(out.Neighbors, playground.Neighbor{Term: n.Term, Similarity: n.Similarity, DocFreq: n.DocFreq})
	}
	words, _ := m.app.store.Forms(ctx, matrix+"@"+version, terms)
	out.Word = words[term]
	for k := range out.Neighbors {
		out.Neighbors[k].Word = words[out.Neighbors[k].Term]
	}
	return out, nil
}

// analyzed returns the term that the analyzer of a field with the matrix makes
// of a word, "" if the matrix has no such term or the cluster does not say.
func (m *playgroundMatrices) analyzed(ctx context.Context, matrix, word string, has func(term string) bool) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout) // there is more to ask
	defer cancel()
	fields, err := m.boundFields(ctx)
	if err != nil {
		m.app.log.DebugContext(ctx, "the playground looks up a word as it is", "err", err)
	}
	pinned := matrices{m.app.store, m.app.cluster, nil}.Pin()
	for _, f := range fields {
		at := esclient.Indices{Expression: f.index}
		bound, err := pinned.For(ctx, at, f.field)
		if err != nil || bound.Rows == nil || !strings.HasPrefix(bound.Rows.Version(), matrix+"@") {
			continue
		}
		analysis, err := m.app.cluster.Analyze(ctx, at, f.field, "", word)
		if err != nil {
			continue // as for a field that is gone
		}
		readings := (&simmatrix.Tokens{Terms: analysis.Terms, Positions: analysis.Positions}).Readings()
		if k := slices.IndexFunc(readings, has); k >= 0 {
			return readings[k]
		}
		return ""
	}
	return ""
}

// lookUp is [simmatrix.LookUp] in a version in Redis. It reads all forms only
// if the word is not a term that is written as it is. If that fails, the word
// stands for itself.
func (m *playgroundMatrices) lookUp(ctx context.Context, matrix, version, word string) (term, nearest string) {
	lower := strings.ToLower(word)
	words := []string{word, lower}
	_, rows, err := m.redis.Rows(ctx, matrix, version, words)
	if written, _ := m.app.store.Forms(ctx, matrix+"@"+version, words); err == nil && !rows[0].IsZero() && written[word] == "" {
		return word, ""
	}
	forms, formsErr := m.redis.AllForms(ctx, matrix, version)
	if err = cmp.Or(err, formsErr); err != nil {
		m.app.log.DebugContext(ctx, "the playground looks up an index term", "err", err)
		return word, ""
	}
	has := func(term string) bool { return !rows[slices.Index(words, term)].IsZero() }
	near := func(word string) string {
		written := make([]string, 0, len(forms))
		for _, form := range forms {
			if most, _ := simmatrix.SplitForm(form); most != "" {
				written = append(written, most)
			}
		}
		return simmatrix.NearestOf(word, slices.Values(written))
	}
	return simmatrix.LookUp(word, simmatrix.TermsOf(words, maps.All(forms), has), near)
}
