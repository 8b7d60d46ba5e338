package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/evaluate/judged"
)

// Judged says which files have a judged set; the one of queries may be "".
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
	judgments, err := configs.Open(ctx, j.Judgments)
	if err != nil {
		return nil, err
	}
	defer judgments.Close() // nothing was written
	var queries *judged.File
	if j.Queries != "" {
		file, err := configs.Open(ctx, j.Queries)
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
	file, err := configs.Open(ctx, path)
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
