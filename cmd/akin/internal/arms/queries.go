package arms

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/evaluate"
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/internal/openfile"
)

// Searches say how queries are searched for.
type Searches struct {
	Template string // the file of a search body; "" where queries have their own
	Depth    int    // hits to ask for where the search says no size
	Resume   string // the file that keeps the answers; "" for none
}

// Register adds the flags of the searches, with a default for the depth.
func (s *Searches) Register(flags *pflag.FlagSet, depth int) {
	flags.StringVar(&s.Template, "template", "", "file of a search body with {{query}} in a string")
	flags.IntVar(&s.Depth, "depth", depth, "hits to ask for where the search says no size")
	flags.StringVar(&s.Resume, "resume", "", "keep the answers in this file, from which an interrupted run goes on")
}

// ReadTemplate reads the template, which asks for the field title.
func (s *Searches) ReadTemplate(ctx context.Context, title string) (t *evaluate.Template, err error) {
	var body []byte
	if s.Template != "" {
		body, err = files.Read(ctx, s.Template, func(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, 1<<20)) })
	}
	if err == nil {
		if t, err = evaluate.NewTemplate(body, s.Depth, title); err != nil {
			err = fmt.Errorf("%s: %w", s.Template, err)
		}
	}
	return t, terminal.Usage(err)
}

// Send sends queries through the arms, from where the file of --resume ends,
// and shows its progress on stderr.
func (s *Searches) Send(ctx context.Context, set *Set, queries []judged.Query, o evaluate.SearchOptions, stderr io.Writer) ([]evaluate.Answered, error) {
	progress := terminal.NewProgress(stderr)
	defer progress.End()
	o.Progress = progress.Step
	if s.Resume != "" {
		file, known, err := openState(s.Resume, set.planOf(queries, o))
		if err != nil {
			return nil, fmt.Errorf("--resume %s: %w", s.Resume, err)
		}
		defer func() { _ = file.Close() }() // each line was written at once
		o.Known = known
		o.Keep = func(a evaluate.Answered) error { return evaluate.WriteState(file, a) }
	}
	answered, err := evaluate.Search(ctx, set.List, queries, o)
	switch {
	case err != nil && s.Resume != "":
		err = fmt.Errorf("%w\n%d of %d queries are in %s: the same command goes on from there", err, len(answered), len(queries), s.Resume)
	case err != nil:
		err = fmt.Errorf("%w\n%d of %d queries were answered; with --resume FILE they are kept, and the same command goes on", err, len(answered), len(queries))
	}
	return answered, err
}

// planOf says what the answers depend on.
func (s *Set) planOf(queries []judged.Query, o evaluate.SearchOptions) evaluate.Plan {
	hash := sha256.New()
	for _, q := range queries {
		body, _ := o.Body(q) // an error is reported when it is searched for
		fmt.Fprintf(hash, "%q %q\n", q.ID, body)
	}
	return evaluate.Plan{"arms": s.Plan, "index": s.first.index, "queries or template": hex.EncodeToString(hash.Sum(nil))}
}

// openState opens a state file to append to, a new one with its plan.
func openState(path string, plan evaluate.Plan) (file *os.File, known map[string]evaluate.Answered, err error) {
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil { //nolint:gosec // the user names it
		return nil, nil, err
	}
	known, whole, err := evaluate.ReadState(file, plan)
	if err == nil {
		err = file.Truncate(whole) // half a line of a run that was killed
	}
	if err == nil {
		_, err = file.Seek(whole, io.SeekStart)
	}
	if err == nil && whole == 0 {
		err = evaluate.WriteState(file, plan)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, known, nil
}

// Judged says which files have a judged set.
type Judged struct{ Queries, Judgments string }

// Register adds the flags that name the files.
func (j *Judged) Register(flags *pflag.FlagSet) {
	flags.StringVar(&j.Queries, "queries", "", "file of queries, where the judgments have only their ids")
	flags.StringVar(&j.Judgments, "judgments", "", "file of judgments (required)")
}

// Read returns the judged set.
func (j *Judged) Read(ctx context.Context) (set *judged.Set, err error) {
	if j.Judgments == "" {
		return nil, terminal.Usage(errors.New("give --judgments FILE"))
	}
	judgments, err := openfile.Open(ctx, j.Judgments)
	if err != nil {
		return nil, err
	}
	defer judgments.Close() // nothing was written
	var queries *judged.File
	if j.Queries != "" {
		file, err := openfile.Open(ctx, j.Queries)
		if err != nil {
			return nil, err
		}
		defer file.Close() // nothing was written
		queries = &judged.File{Name: j.Queries, Content: file}
	}
	if set, err = judged.Read(queries, &judged.File{Name: j.Judgments, Content: judgments}); err == nil && len(set.Judged()) == 0 {
		err = fmt.Errorf("%s: none of the judgments is of a query in %s", j.Judgments, j.Queries)
		if j.Queries == "" {
			err = fmt.Errorf("%s has only the ids of queries: give --queries FILE with their texts", j.Judgments)
		}
	}
	return set, err
}

// ReadLog reads a log of queries and says on stderr which lines are none.
func ReadLog(ctx context.Context, path string, stderr io.Writer) (*judged.Log, error) {
	file, err := openfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // nothing was written
	log, err := judged.ReadLog(&judged.File{Name: path, Content: file})
	if err == nil && log.Skipped > 0 {
		fmt.Fprintf(stderr, "%d lines are left out:\n%v\n", log.Skipped, errors.Join(log.Causes...))
	}
	return log, err
}
