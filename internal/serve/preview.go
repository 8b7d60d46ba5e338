package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// A FieldReport says how searches in a field are expanded. Index may be an
// alias or a data stream.
type FieldReport struct {
	Index string `json:"index"`
	Field string `json:"field"`
	// Matrix is the name and version of the bound matrix, or "".
	Matrix string `json:"matrix,omitempty"`
	// Effort, Form and Phase say how added terms are scored; "" if none was added.
	Effort string `json:"effort,omitempty"`
	Form   string `json:"form,omitempty"`
	Phase  string `json:"phase,omitempty"`
	// Reason says why nothing was added, or why in a simpler form.
	Reason reason.Reason `json:"reason,omitempty"`
	// Lengths says which lengths documents lack if that is the reason.
	Lengths string `json:"lengths,omitempty"`
	// Segments says why the field's configured segments are not searched, or not
	// for related words.
	Segments reason.Reason `json:"segments,omitempty"`
	// Texts is how many texts of documents were read; without any, the field's
	// name is used as a text.
	Texts int `json:"texts"`
	// Added is the number of terms added to a few words of a document.
	Added int `json:"added"`
	// LeftOut are related words that were not added, with the reasons.
	LeftOut []expand.LeftOut `json:"left_out,omitempty"`
	// Frequent counts the terms that occur more than once in the texts; Known is
	// how many of these have a row in the matrix.
	Frequent int `json:"frequent_terms"`
	Known    int `json:"known_terms"`
	// Scripts reports whether the cluster runs inline scripts.
	Scripts bool `json:"scripts"`
}

// ByVectors reports whether searches are scored by vectors of documents.
func (s *FieldReport) ByVectors() bool { return s.Form == form.Vectors.String() }

const (
	previewTexts    = 20 // that are read
	previewWords    = 30 // of each text
	previewSearches = 3  // that are expanded until terms are added
)

// Preview expands searches for texts of documents in the field, as if clients
// had sent them. It does not send the expanded searches.
func (a *App) Preview(ctx context.Context, index, field string) (FieldReport, error) {
	s := FieldReport{Index: index, Field: field, Reason: reason.NoMatrix}
	if a.expander == nil {
		return s, nil
	}
	texts, err := a.client.SampleTexts(ctx, index, field, previewTexts, previewWords)
	if err != nil && !esclient.IsUnknown(err) {
		return s, err
	}
	s.Texts = len(texts)
	searches := texts[:min(len(texts), previewSearches)]
	if len(searches) == 0 {
		searches = []string{field} // any text will do: the field itself shows why nothing is added
	}
	for _, text := range searches {
		words := strings.Fields(text)
		found, segments, err := preview(ctx, a.expander, index, field, strings.Join(words[:min(len(words), esclient.SampleWords)], " "))
		if err != nil {
			return s, err
		}
		s.Matrix = found.Matrix
		s.Effort = found.Effort
		s.Form = found.Form
		s.Phase = found.Phase
		s.Reason = found.Reason
		s.Added = len(found.Added) + len(found.Alternatives)
		s.LeftOut = found.LeftOut
		s.Segments = segments
		if s.Added > 0 || s.ByVectors() {
			break
		}
	}
	if s.Reason == reason.NoNorms && a.weights != nil {
		if s.Lengths, err = a.lengths(ctx, index, field); err != nil {
			return s, err
		}
	}
	return s, a.count(ctx, &s, strings.Join(texts, "\n"))
}

// Expand returns what would be sent for a search, see [proxy.Server.Expand]. It
// sends only akin's own calls.
func (a *App) Expand(ctx context.Context, profile string, in *expand.Request) (proxy.Expansion, error) {
	return a.server.Expand(ctx, profile, in)
}

// Bound returns the first index of an expression that has text fields with a
// matrix, and these fields. "" stands for all indices that matrices are bound
// to.
func (a *App) Bound(ctx context.Context, expression string) (index string, fields []string, err error) {
	if a.store == nil {
		return "", nil, nil
	}
	found, err := a.boundFields(ctx, cmp.Or(expression, a.Expression()), maxWarm)
	for _, f := range found {
		if f.index == found[0].index {
			index, fields = f.index, append(fields, f.field)
		}
	}
	return index, fields, err
}

// unbound says in a sentence which indices, or fields of this index, have a
// matrix if a search has found none.
func (a *App) unbound(ctx context.Context, index string) string {
	fields, err := a.boundFields(ctx, a.Expression(), warmFields)
	if err != nil || len(fields) == 0 {
		return "no matrix is bound to a text field of any index that is there: see matrices in the configuration"
	}
	var here, names []string
	for _, f := range fields {
		if f.index == index {
			here = append(here, f.field)
		}
		if !slices.Contains(names, f.index) {
			names = append(names, f.index)
		}
	}
	if here != nil {
		return fmt.Sprintf("no matrix is bound to this field of %s, but to: %s", index, cli.Some(here))
	}
	return fmt.Sprintf("no matrix is bound to %s, but to: %s", cmp.Or(index, "all indices together"), cli.Some(names))
}

// preview returns how a search for a text is expanded, and why the field's
// segments are not used.
func preview(ctx context.Context, expander *expand.Expander, index, field, text string) (found expand.Explanation, segments reason.Reason, err error) {
	body, err := json.Marshal(map[string]any{"query": map[string]any{"match": map[string]any{field: text}}})
	if err != nil {
		return found, "", err
	}
	result, err := expander.Expand(ctx, &expand.Request{Index: index, Body: body, Preview: true})
	if err != nil {
		return found, "", err
	}
	found.Reason = result.Reason
	for i, c := range result.Clauses {
		switch {
		case i == 0:
			found = c
		case c.Matrix == "":
			segments = c.Reason
		}
	}
	return found, segments, nil
}

// lengths returns what the cluster says of the lengths of documents that the
// mode needs: how many lack them for the weights, and for the matrix, that are
// served now.
func (a *App) lengths(ctx context.Context, index, field string) (string, error) {
	indices, matrix := esclient.Indices{Expression: index}, ""
	if a.cfg.Expansion.Mode == expand.ModeSoftCosine {
		bound, err := matrices{a.store, a.cluster, nil}.Pin().For(ctx, indices, field)
		if err != nil || bound.Rows == nil {
			return "", err
		}
		matrix = bound.Rows.Checksum()
	}
	source := weightSource{a.weights, a.cluster}
	w, err := source.Pin().Weights(ctx, indices, field)
	if err != nil || w == nil {
		return "", err
	}
	if _, err = source.Linear(ctx, indices, field, w.ID(), matrix); errors.Is(err, esclient.ErrNoNorms) {
		return err.Error(), nil
	}
	return "", err
}

// count counts the frequent terms of a text, and those with a row.
func (a *App) count(ctx context.Context, s *FieldReport, text string) error {
	indices := esclient.Indices{Expression: s.Index}
	bound, err := matrices{a.store, a.cluster, nil}.Pin().For(ctx, indices, s.Field)
	if err != nil || bound.Rows == nil || text == "" {
		return err
	}
	analysis, err := a.cluster.Analyze(ctx, indices, s.Field, "", text)
	if errors.Is(err, mapping.ErrNotText) || errors.Is(err, mapping.ErrMixed) || esclient.IsUnknown(err) {
		return nil // the reason says so
	}
	if err != nil {
		return err
	}
	seen := map[string]int{}
	var frequent []string
	for _, term := range analysis.Terms {
		if seen[term]++; seen[term] == 2 {
			frequent = append(frequent, term)
		}
	}
	rows := make([]simmatrix.Row, len(frequent))
	if err := bound.Rows.Rows(ctx, frequent, rows); err != nil {
		return err
	}
	s.Frequent = len(frequent)
	for _, row := range rows {
		if !row.IsZero() {
			s.Known++
		}
	}
	statistics, err := a.cluster.Statistics(ctx, indices, s.Field, frequent, make([]int64, len(frequent)))
	s.Scripts = statistics.Scripts
	return err
}

// Client returns the client for akin's own calls. Close closes it.
func (a *App) Client() *esclient.Client { return a.client }

// Served returns the served versions of matrices and weights.
func (a *App) Served() (matrices, weights []store.State) {
	if a.store != nil {
		matrices = a.store.State()
	}
	if a.weights != nil {
		weights = a.weights.State()
	}
	return matrices, weights
}
