// Package tuning runs "akin tune": it gathers what is needed, tunes, and writes
// what is recommended.
package tuning

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/server"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/evaluate"
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/measure"
	"github.com/akin-search/akin/evaluate/tune"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// options say what is tuned.
type options struct {
	client   *esclient.Client
	index    string // an index expression
	fields   []string
	matrices []combine.Input
	first    string // the file of the first matrix
	set      *judged.Set
	template *evaluate.Template
	tune     tune.Options
	out      string // the file of the profile
	report   *terminal.Progress
}

// run tunes, and writes a profile and its matrix if one is recommended.
func (o *options) run(ctx context.Context) (*tune.Result, error) {
	b := &tune.Bench{Options: server.ExpandOptions, Matrices: o.matrices}
	err := o.queries(b)
	if err == nil {
		err = o.tune.Validate(len(b.Queries))
	}
	if err != nil {
		return nil, terminal.Usage(err)
	}
	if b.Index, err = tune.Read(ctx, o.client, o.index, o.fields, o.report.Step); err != nil {
		return nil, err
	}
	defer b.Index.Close()
	o.tellMissing(b)
	if err := o.compare(ctx, b); err != nil {
		return nil, err
	}
	o.tune.Progress = o.report.Step
	result, err := tune.Run(ctx, len(b.Queries), tune.NewSpace(len(b.Matrices)), o.tune, b.Score)
	if err != nil {
		return nil, err
	}
	o.report.End()
	return result, o.write(ctx, b, result)
}

// queries takes the judged queries of which a document is relevant: no
// setting changes the measure of the others.
func (o *options) queries(b *tune.Bench) error {
	set := o.set
	b.Grades = set.Grades
	for _, q := range set.Queries {
		if len(measure.Relevant(set.Grades[q.ID])) == 0 {
			continue
		}
		body, err := o.template.Body(q)
		if err != nil {
			return err
		}
		b.Queries, b.Bodies = append(b.Queries, q), append(b.Bodies, body)
	}
	if left := len(set.Queries) - len(b.Queries); left > 0 {
		o.report.Tell("%d of %d queries have no relevant document and are left out", left, len(set.Queries))
	}
	if unknown := set.Unknown(); len(unknown) > 0 {
		o.report.Tell("warning: judgments of %d unknown queries are left out: %s",
			len(unknown), terminal.Some(unknown))
	}
	return nil
}

// tellMissing warns of relevant documents that are not in the index.
func (o *options) tellMissing(b *tune.Bench) {
	missing := map[string]bool{}
	for _, q := range b.Queries {
		for id, grade := range b.Grades[q.ID] {
			if grade > 0 && !b.Index.Has(id) {
				missing[id] = true
			}
		}
	}
	if len(missing) > 0 {
		o.report.Tell("warning: %d relevant documents are not in %s, and count as not found: %s",
			len(missing), o.index, terminal.Some(slices.Sorted(maps.Keys(missing))))
	}
}

// matrixFile is where the matrix goes that a recommendation needs.
func (o *options) matrixFile() string {
	return strings.TrimSuffix(o.out, filepath.Ext(o.out)) + ".akin"
}

// compare warns where the ranking without the cluster is not the cluster's.
func (o *options) compare(ctx context.Context, b *tune.Bench) error {
	const compared, tolerated = 20, 1e-3
	worst, err := b.Index.Difference(ctx, o.client, b.Bodies[:min(compared, len(b.Bodies))])
	if err == nil && worst > tolerated {
		o.report.Tell("warning: scores differ from the cluster's by up to %.1f %%: it has several shards, deleted documents, terms at one position, "+
			"or the searches look at other fields. Settings are chosen by these scores.", 100*worst)
	}
	return err
}

// write writes what is recommended, if anything is.
func (o *options) write(ctx context.Context, b *tune.Bench, r *tune.Result) error {
	s := r.Recommended()
	if s == nil {
		return nil
	}
	path, err := filepath.Abs(o.first)
	if err != nil {
		return err
	}
	if !s.Shape.IsFirst() {
		m, err := s.Shape.Apply(ctx, b.Matrices)
		if err != nil {
			return err
		}
		path = o.matrixFile()
		if err := files.Write(ctx, path, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
			return err
		}
		path = filepath.Base(path)
	}
	return files.Write(ctx, o.out, func(w io.Writer) error {
		return tune.WriteProfile(w, s, configs.Matrix{
			Name: "tuned", Indices: []string{o.index}, Fields: o.fields, File: path,
		}, "Written by akin tune.\n"+r.Summary())
	})
}
