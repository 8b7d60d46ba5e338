package expand

import (
	"context"
	"fmt"

	"github.com/akin-search/akin/internal/tracing"
)

// A Stage names the part of the work that failed.
type Stage string

// The stages that ask somebody else. Their names are those of spans, too.
const (
	StageAccess     Stage = "authorization"
	StageFields     Stage = "fields"
	StageAnalyze    Stage = "analyze"
	StageRows       Stage = "rows"
	StageStatistics Stage = "statistics"
	StageLinear     Stage = "linear"
	StageWeights    Stage = "weights"
	StageVectors    Stage = "vectors"
)

// A StageError is a failure to expand. The original request has to go on.
type StageError struct {
	Stage Stage
	Err   error
}

// Error says which stage failed and how.
func (e *StageError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.Err) }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// failed marks an error with its stage; nil stays nil.
func failed(s Stage, err error) error {
	if err == nil {
		return nil
	}
	return &StageError{s, err}
}

// run runs a stage as a part of the trace, if there is one.
func run(ctx context.Context, s Stage, f func(context.Context) error) error {
	ctx, span := tracing.Start(ctx, string(s))
	defer span.End()
	return failed(s, f(ctx))
}
