package arms

import (
	"bytes"
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

// A Run is queries that are sent through arms.
type Run struct {
	set      *Set
	queries  []judged.Query
	template *evaluate.Template
	resume   string
	state    *state // nil where answers are not kept
}

// Begin reads the file of --resume. Its caller closes the run.
func (s *Searches) Begin(set *Set, queries []judged.Query, template *evaluate.Template) (*Run, error) {
	r := &Run{set: set, queries: queries, template: template, resume: s.Resume}
	if s.Resume == "" {
		return r, nil
	}
	hash := sha256.New()
	for _, q := range queries {
		body, _ := template.Body(q) // an error is reported when it is searched for
		fmt.Fprintf(hash, "%q %q\n", q.ID, body)
	}
	var err error
	r.state, err = openState(s.Resume, evaluate.Plan{
		"arms": set.Plan, "index": set.first.index, "queries or template": hex.EncodeToString(hash.Sum(nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("--resume %s: %w", s.Resume, err)
	}
	return r, nil
}

// Close closes the file of --resume.
func (r *Run) Close() {
	if r.state != nil {
		_ = r.state.file.Close() // each line was written at once
	}
}

// Send sends the queries, from where the file of --resume ends, and shows its
// progress on stderr. Queries are left out whose error is refused; nil is none.
func (r *Run) Send(ctx context.Context, refused func(error) bool, stderr io.Writer) ([]evaluate.Answered, error) {
	progress := terminal.NewProgress(stderr)
	defer progress.End()
	o := evaluate.SearchOptions{Body: r.template.Body, Refused: refused, Progress: progress.Step}
	if r.state != nil {
		o.Known, o.Keep = r.state.known, r.state.keep
	}
	answered, err := evaluate.Search(ctx, r.set.List, r.queries, o)
	switch {
	case err != nil && r.state != nil:
		err = fmt.Errorf("%w\n%d of %d queries are in %s: the same command goes on from there", err, len(answered), len(r.queries), r.resume)
	case err != nil:
		err = fmt.Errorf("%w\n%d of %d queries were answered; with --resume FILE they are kept, and the same command goes on", err, len(answered), len(r.queries))
	}
	return answered, err
}

// A state is the file of --resume.
type state struct {
	file  *os.File
	size  int64 // of what was read and written
	known map[string]evaluate.Answered
}

// openState opens a state file to append to, a new one with its plan.
func openState(path string, plan evaluate.Plan) (*state, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	s := &state{file: file}
	if s.known, s.size, err = evaluate.ReadState(file, plan); err == nil {
		err = file.Truncate(s.size) // half a line of a run that was killed
	}
	if err == nil && s.size == 0 {
		err = s.write(plan)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

func (s *state) keep(a evaluate.Answered) error { return s.write(a) }

// write appends a line, unless another run has done so in the meantime.
func (s *state) write(line any) error {
	info, err := s.file.Stat()
	if err == nil && info.Size() != s.size {
		err = errors.New("another run writes to the file of --resume: wait for its end, or name another file")
	}
	var text bytes.Buffer
	if err == nil {
		err = evaluate.WriteState(&text, line)
	}
	if err == nil {
		_, err = s.file.WriteAt(text.Bytes(), s.size)
	}
	s.size += int64(text.Len())
	return err
}
