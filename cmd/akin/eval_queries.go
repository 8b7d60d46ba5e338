package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/evaluate"
)

// searchCount say how queries are searched for.
type searchCount struct {
	Template string // the file of a search body; "" where queries have their own
	Depth    int    // hits to ask for where the search says no size
	Resume   string // the file that keeps the answers; "" for none

	// Kept is what the file of --resume has.
	Kept *evaluate.Kept
	file *os.File
}

// Register adds the flags of the searches, with a default for the depth.
func (s *searchCount) Register(flags *pflag.FlagSet, depth int) {
	flags.StringVar(&s.Template, "template", "", "file of a search body with {{query}} in a string")
	flags.IntVar(&s.Depth, "depth", depth, "hits to ask for where the search says no size")
	flags.StringVar(&s.Resume, "resume", "", "keep the answers in this file, from which an interrupted run goes on")
}

// ReadTemplate reads the template, which asks for the field title.
func (s *searchCount) ReadTemplate(ctx context.Context, title string) (t *evaluate.Template, err error) {
	var body []byte
	if s.Template != "" {
		body, err = cli.Read(ctx, s.Template, func(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, 1<<20)) })
	}
	if err == nil {
		if t, err = evaluate.NewTemplate(body, s.Depth, title); err != nil {
			err = fmt.Errorf("%s: %w", s.Template, err)
		}
	}
	return t, cli.Usage(err)
}

// Open opens the file of --resume, which Close closes.
func (s *searchCount) Open() (err error) {
	if s.Resume == "" {
		return nil
	}
	if s.file, err = os.OpenFile(s.Resume, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
		s.Kept, err = evaluate.ReadKept(s.file)
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("--resume %s: %w", s.Resume, err)
	}
	return nil
}

// Close closes the file of --resume.
func (s *searchCount) Close() {
	if s.file != nil {
		_ = s.file.Close() // each line was written at once
	}
}

// Send sends queries through the arms but for what the file of --resume has,
// and shows its progress on stderr. Queries are left out whose error is
// refused; nil is none.
func (s *searchCount) Send(ctx context.Context, set *armSet, queries []evaluate.Query, t *evaluate.Template, refused func(error) bool, stderr io.Writer) ([]evaluate.Answered, error) {
	progress := cli.NewProgress(stderr)
	defer progress.End()
	o := evaluate.SearchOptions{Body: t.Body, Kept: s.Kept, Refused: refused, Progress: progress.Step}
	answered, err := evaluate.Search(ctx, set.List, queries, o)
	switch {
	case err != nil && s.file != nil:
		err = fmt.Errorf("%w\n%d of %d queries are in %s: the same command goes on from there", err, len(answered), len(queries), s.Resume)
	case err != nil:
		err = fmt.Errorf("%w\n%d of %d queries were answered; with --resume FILE they are kept, and the same command goes on", err, len(answered), len(queries))
	}
	return answered, err
}
