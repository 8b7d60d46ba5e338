package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/glob"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/suggest"
	"github.com/akin-search/akin/tools/words"
)

// suggestions are the searches without hits of one configuration, and what
// people decide about what would help them.
type suggestions struct {
	cfg     *configs.Config
	cluster suggest.Cluster
	client  *esclient.Client
}

// openSuggestions connects to the cluster of a configuration.
func openSuggestions(cfg *configs.Config) (*suggestions, error) {
	var at cli.Cluster
	if err := at.Configure(cfg, func(string) bool { return false }); err != nil {
		return nil, err
	}
	client, err := at.Open()
	if err != nil {
		return nil, err
	}
	return &suggestions{cfg: cfg, client: client, cluster: suggestCluster{client}}, nil
}

func (s *suggestions) close() { s.client.Close() }

// errNoMatrix says that no matrix is for a search.
var errNoMatrix = errors.New("no matrix of the configuration is for this index and field")

// matrixFor returns the first matrix that is for an index expression and one of
// the fields.
func (s *suggestions) matrixFor(index string, fields []string) (*configs.Matrix, error) {
	for k := range s.cfg.Matrices {
		m := &s.cfg.Matrices[k]
		if slices.ContainsFunc(strings.Split(index, ","), func(name string) bool { return bound(m.Indices, name) }) &&
			slices.ContainsFunc(fields, func(field string) bool { return bound(m.Fields, field) }) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: %s, %s", errNoMatrix, cmp.Or(index, "all indices"), cli.Some(fields))
}

// bound reports whether patterns match a name, or it as a pattern them. One
// with a leading - excludes.
func bound(patterns []string, name string) bool {
	is := false
	for _, p := range patterns {
		if out, excludes := strings.CutPrefix(p, "-"); excludes {
			if glob.Match(out, name) {
				return false
			}
		} else {
			is = is || glob.Match(p, name) || glob.Match(cmp.Or(name, "*"), p)
		}
	}
	return is
}

// fieldsOf returns the fields of a collected search, without their boosts.
func fieldsOf(names string) []string {
	fields := strings.Split(names, ",")
	for k, field := range fields {
		fields[k], _, _ = strings.Cut(field, "^")
	}
	return fields
}

// A suggested search is one with what would help it.
type suggested struct {
	searches.Search

	Matrix string `json:"matrix,omitempty"`
	// Decided are the pairs for its words that people accepted.
	Decided   []acceptedPair `json:"accepted,omitempty"`
	Proposals []numbered     `json:"proposals"`
	// Problem is why nothing is proposed.
	Problem string `json:"problem,omitempty"`
}

// An acceptedPair is one that people accepted. Gone says that no document has
// its word any more.
type acceptedPair struct {
	suggest.Decision

	Gone bool `json:"gone,omitempty"`
}

// A numbered proposal has the number that people name it by, 0 for none.
type numbered struct {
	Number int `json:"number,omitempty"`
	suggest.Proposal
}

// A proposer finds proposals, with each matrix read once.
type proposer struct {
	*suggestions

	words   *words.Words
	model   *serve.LanguageModel // nil for none
	finders map[string]*finding
}

// A finding is the finder of a matrix and the decisions about it.
type finding struct {
	suggest.Finder

	record *suggest.Record
	err    error
}

// proposer returns one, to be closed.
func (s *suggestions) proposer() (p *proposer, err error) {
	p = &proposer{suggestions: s, finders: map[string]*finding{}}
	if p.words, err = words.Builtin(); err != nil {
		return nil, err
	}
	if s.cfg.Embeddings.URL != "" {
		p.model, err = serve.OpenLanguageModel(s.cfg, s.client, func(string, time.Duration, error) {})
	}
	return p, err
}

func (p *proposer) close() {
	if p.model != nil {
		p.model.Close()
	}
}

func (p *proposer) finder(ctx context.Context, m *configs.Matrix) *finding {
	f := p.finders[m.Name]
	if f != nil {
		return f
	}
	f = &finding{Finder: suggest.Finder{Cluster: p.cluster, Vector: p.words.Vector, Knows: p.words.Has}}
	if p.model != nil {
		f.Model = p.model.Maker.Documents
	}
	var text string
	if text, f.Matrix, f.err = storageOf(p.cfg, m).read(ctx); f.err == nil {
		f.record, f.err = suggest.ReadRecord(text)
	}
	p.finders[m.Name] = f
	return f
}

// propose returns a search with what would help it, but for what people
// decided. What stands in the way is its Problem.
func (p *proposer) propose(ctx context.Context, of searches.Search) suggested {
	out := suggested{Search: of, Proposals: []numbered{}}
	fields := fieldsOf(of.Fields)
	m, err := p.matrixFor(of.Index, fields)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Matrix = m.Name
	f := p.finder(ctx, m)
	if f.err != nil {
		out.Problem = f.err.Error()
		return out
	}
	if out.Decided, err = p.acceptedFor(ctx, f.record, &of); err != nil {
		out.Problem = err.Error()
		return out
	}
	found, err := f.Propose(ctx, suggest.Search{Index: of.Index, Fields: fields, Text: of.Text})
	if err != nil {
		out.Problem = err.Error()
	}
	for _, one := range found {
		if _, decided := f.record.Find(one.Word, one.To); !decided {
			out.Proposals = append(out.Proposals, numbered{Proposal: one})
		}
	}
	return out
}

// acceptedFor returns the accepted pairs for words of a search, of which the
// cluster says whether documents still have the other word.
func (p *proposer) acceptedFor(ctx context.Context, record *suggest.Record, of *searches.Search) (all []acceptedPair, err error) {
	for _, d := range record.Decisions() {
		if d.Similarity > 0 && hasWord(of.Text, d.Word) {
			all = append(all, acceptedPair{Decision: d})
		}
	}
	return all, p.markGone(ctx, all)
}

// markGone marks accepted pairs whose word no document has any more, where they
// were accepted. It asks for the first [suggest.MostQueries] of an index.
func (s *suggestions) markGone(ctx context.Context, all []acceptedPair) error {
	type place struct{ index, fields string }
	in := map[place][]int{}
	for k := range all {
		at := place{all[k].Index, all[k].Fields}
		if all[k].Similarity > 0 && len(in[at]) < suggest.MostQueries {
			in[at] = append(in[at], k)
		}
	}
	for at, pairs := range in {
		others := make([][]string, len(pairs))
		for i, k := range pairs {
			others[i] = []string{all[k].To}
		}
		found, err := s.cluster.Find(ctx, at.index, fieldsOf(at.fields), others)
		if err == nil && len(found) != len(pairs) {
			err = fmt.Errorf("%d answers to %d searches", len(found), len(pairs))
		}
		if err != nil {
			return err
		}
		for i, k := range pairs {
			all[k].Gone = found[i].Total == 0
		}
	}
	return nil
}

// A chosenPair is one that a person decides about.
type chosenPair struct {
	Index      string  `json:"index"`
	Fields     string  `json:"fields"`
	Text       string  `json:"text"`
	Word       string  `json:"word"`
	To         string  `json:"to"`
	Similarity float64 `json:"similarity"`
}

// An act decides about a pair: it returns what it makes of a matrix.
type act func(record *suggest.Record, m *simmatrix.Matrix) (*simmatrix.Matrix, error)

// accept lets a pair be accepted, if it still can be: the error wraps
// [suggest.ErrRefused].
func (s *suggestions) accept(ctx context.Context, c *chosenPair, by string) (act, error) {
	if c.To == "" {
		return nil, fmt.Errorf("%w: the search finds something without %q, and no word stands for nothing: have your application search with fewer words, "+
			"or let akin do so (expansion.relax)", suggest.ErrRefused, c.Word)
	}
	fields, d := fieldsOf(c.Fields), c.decision(by)
	d.Similarity = c.Similarity
	for k, word := range []string{c.Word, c.To} {
		tokens, err := s.cluster.Tokens(ctx, c.Index, fields[0], word)
		if err != nil {
			return nil, err
		}
		d.Terms[k] = tokensOf(tokens).Readings()
	}
	found, err := s.cluster.Find(ctx, c.Index, fields, [][]string{{c.To}})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[0].Total == 0 {
		return nil, fmt.Errorf("%w: no document has %q any more", suggest.ErrRefused, c.To)
	}
	return func(record *suggest.Record, m *simmatrix.Matrix) (*simmatrix.Matrix, error) {
		return record.Accept(m, d)
	}, nil
}

// dismiss lets a pair not be proposed again.
func dismiss(_ context.Context, c *chosenPair, by string) (act, error) {
	return func(record *suggest.Record, m *simmatrix.Matrix) (*simmatrix.Matrix, error) {
		return m, record.Dismiss(c.decision(by))
	}, nil
}

// undo takes a decision back.
func undo(_ context.Context, c *chosenPair, _ string) (act, error) {
	return func(record *suggest.Record, m *simmatrix.Matrix) (*simmatrix.Matrix, error) {
		m, _, err := record.Undo(m, c.Word, c.To)
		return m, err
	}, nil
}

// named returns a name as it can stand in a line.
func named(by string) string {
	return strings.Join(strings.FieldsFunc(by, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

func (c *chosenPair) decision(by string) suggest.Decision {
	return suggest.Decision{Word: c.Word, To: c.To, At: time.Now().UTC().Truncate(time.Second), By: named(by), Index: c.Index, Fields: c.Fields, Text: c.Text}
}

// decide does with pairs what people decided, in one new version of each
// matrix. It returns an error for each pair, nil for those that were done.
func (s *suggestions) decide(ctx context.Context, pairs []*chosenPair, by string, how func(ctx context.Context, c *chosenPair, by string) (act, error)) []error {
	errs, acts := make([]error, len(pairs)), make([]act, len(pairs))
	of := make([]*configs.Matrix, len(pairs))
	for k, c := range pairs {
		if of[k], errs[k] = s.matrixFor(c.Index, fieldsOf(c.Fields)); errs[k] == nil {
			acts[k], errs[k] = how(ctx, c, by)
		}
	}
	for i := range s.cfg.Matrices {
		matrix := &s.cfg.Matrices[i]
		var mine []int // the pairs for this matrix
		for k := range pairs {
			if of[k] == matrix && acts[k] != nil {
				mine = append(mine, k)
			}
		}
		if mine == nil {
			continue
		}
		err := storageOf(s.cfg, matrix).change(ctx, named(by), func(text string, m *simmatrix.Matrix) (string, *simmatrix.Matrix, error) {
			record, err := suggest.ReadRecord(text)
			if err != nil {
				return "", nil, err
			}
			for _, k := range mine {
				var next *simmatrix.Matrix
				if next, errs[k] = acts[k](record, m); errs[k] == nil {
					m = next
				}
			}
			m, err = record.Apply(m)
			return record.String(), m, err
		})
		for _, k := range mine {
			errs[k] = cmp.Or(errs[k], err)
		}
	}
	return errs
}

// decisions returns what people decided, the newest first.
func (s *suggestions) decisions(ctx context.Context) (all []suggest.Decision, err error) {
	for k := range s.cfg.Matrices {
		text, err := storageOf(s.cfg, &s.cfg.Matrices[k]).overrides(ctx)
		if err != nil {
			return nil, err
		}
		record, err := suggest.ReadRecord(text)
		if err != nil {
			return nil, err
		}
		all = append(all, record.Decisions()...)
	}
	slices.SortStableFunc(all, func(a, b suggest.Decision) int { return b.At.Compare(a.At) })
	return all, nil
}
