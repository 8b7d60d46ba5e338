package reweigh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/evaluate"
)

// A Source has judgments or a file of clicks, and the field that was searched.
type Source struct {
	Client       *esclient.Client
	Index, Field string
	Report       *cli.Progress

	Judged
	Clicks string // a file
}

// Searches returns the searches with what is known of their documents, and the
// unit that evidence is counted in, in the singular.
func (s *Source) Searches(ctx context.Context) (searches []Search, unit string, err error) {
	read, unit := s.clicked, "click"
	if s.Judgments != "" {
		read, unit = s.judged, "judgment"
	}
	if searches, err = read(ctx); err != nil {
		return nil, "", err
	}
	cluster := esclient.NewCached(s.Client, esclient.CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20, TTL: time.Hour})
	defer cluster.Close()
	for i := range searches {
		s.Report.Step("analyzing queries", i, len(searches))
		a, err := cluster.Analyze(ctx, esclient.Indices{Expression: s.Index}, s.Field, "", searches[i].Text)
		if err != nil {
			return nil, "", fmt.Errorf("query %q: %w", searches[i].Text, err)
		}
		searches[i].Terms = a.Terms
	}
	return searches, unit, nil
}

func (s *Source) judged(ctx context.Context) (searches []Search, err error) {
	set, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	if unknown := set.Unknown(); len(unknown) > 0 {
		s.Report.Tell("%d judged queries are not in %s and do not count: %s", len(unknown), s.Queries, cli.Some(unknown))
	}
	for _, q := range set.Judged() {
		opinions := map[string]Opinion{}
		for id, grade := range set.Grades[q.ID] {
			opinions[id] = Opinion{Gain: max(grade, 0), Count: 1}
		}
		searches = append(searches, Search{Text: q.Text, Documents: opinions})
	}
	return searches, nil
}

func (s *Source) clicked(ctx context.Context) ([]Search, error) {
	log, err := cli.Read(ctx, s.Clicks, ReadClicks)
	if err != nil {
		return nil, err
	}
	if n := len(log.NotShown); n > 0 {
		s.Report.Tell("%d clicks on documents that were not shown do not count: %s", n, cli.Some(log.NotShown))
	}
	return log.Searches(), nil
}

// Collection reads the terms of all documents of the index.
func (s *Source) Collection(ctx context.Context) (*Collection, error) {
	api := documents.API{Client: s.Client}
	total, err := api.Count(ctx, s.Index, nil)
	if err != nil {
		return nil, err
	}
	c := NewCollection()
	n := 0
	err = api.ExactTerms(ctx, documents.ScanOptions{Index: s.Index, Fields: []string{s.Field}}, func(id string, texts, nested [][]string) error {
		s.Report.Step("reading documents", n, int(total))
		n++
		return c.Add(id, append(texts, nested...))
	})
	return c, err
}

// Judged has the files of a judged set; Queries may be "".
type Judged struct{ Queries, Judgments string }

// Register adds the flags of the files. usage is that of --judgments.
func (j *Judged) Register(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&j.Queries, "queries", "", "file of queries, if the judgments have only their ids")
	flags.StringVar(&j.Judgments, "judgments", "", usage)
}

// Read returns the judged set.
func (j *Judged) Read(ctx context.Context) (set *evaluate.Set, err error) {
	if j.Judgments == "" {
		return nil, cli.Usage(errors.New("give --judgments FILE"))
	}
	judgments, err := configs.Open(ctx, j.Judgments)
	if err != nil {
		return nil, err
	}
	defer judgments.Close() // the file was only read
	var queries *evaluate.JudgedFile
	if j.Queries != "" {
		file, err := configs.Open(ctx, j.Queries)
		if err != nil {
			return nil, err
		}
		defer file.Close() // the file was only read
		queries = &evaluate.JudgedFile{Name: j.Queries, Content: file}
	}
	if set, err = evaluate.ReadJudged(queries, &evaluate.JudgedFile{Name: j.Judgments, Content: judgments}); err == nil && len(set.Judged()) == 0 {
		err = fmt.Errorf("%s: none of the judgments is of a query in %s", j.Judgments, j.Queries)
		if j.Queries == "" {
			err = fmt.Errorf("%s has only the ids of queries: give --queries FILE with their texts", j.Judgments)
		}
	}
	return set, err
}

// ReadQueryLog reads a query log and reports skipped lines on stderr.
func ReadQueryLog(ctx context.Context, path string, stderr io.Writer) (*evaluate.Log, error) {
	file, err := configs.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the file was only read
	log, err := evaluate.ReadLog(&evaluate.JudgedFile{Name: path, Content: file})
	if err == nil && log.Skipped > 0 {
		fmt.Fprintf(stderr, "%d lines are left out:\n%v\n", log.Skipped, errors.Join(log.Causes...))
	}
	return log, err
}
