package nodes

import "sync/atomic"

// Tokens of a [RetryBudget], in thousandths so that they fit an integer.
const (
	token       = 1000
	firstTokens = 10 * token
	// spare is what an overloaded cluster leaves for requests not answered at all.
	spare = firstTokens - token
	// maxTokens are for a node that dies under load with dozens of searches.
	maxTokens = 50 * token
)

// A RetryBudget keeps repetitions to a share of the requests. It is a token
// bucket: each request adds the share, each repetition takes one of at most 50
// tokens; at first there are 10. Its methods may be called concurrently.
type RetryBudget struct {
	share  int64
	tokens atomic.Int64
}

// NewRetryBudget allows share, in [0, 1], repetitions for each request.
func NewRetryBudget(share float64) *RetryBudget {
	b := &RetryBudget{share: int64(share * token)}
	b.tokens.Store(firstTokens)
	return b
}

// Note counts a request. Repetitions are not noted.
func (b *RetryBudget) Note() {
	if b.tokens.Load() < maxTokens {
		b.tokens.Add(b.share) // concurrent calls may exceed the limit by a little
	}
}

// Allow reports whether a request may be repeated now, and counts that.
func (b *RetryBudget) Allow() bool { return b.take(0) }

// AllowMore is Allow for an overloaded cluster: it leaves tokens for requests
// that were not answered at all.
func (b *RetryBudget) AllowMore() bool { return b.take(spare) }

func (b *RetryBudget) take(leave int64) bool {
	for {
		left := b.tokens.Load()
		if left < leave+token {
			return false
		}
		if b.tokens.CompareAndSwap(left, left-token) {
			return true
		}
	}
}
