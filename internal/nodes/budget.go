package nodes

import "sync/atomic"

// Tokens of a [RetryBudget], in thousandths so that they fit an integer.
const (
	token       = 1000
	firstTokens = 10 * token
	// spare is what a cluster that has too much to do leaves for requests that
	// were not answered: those go to a node that is well.
	spare = firstTokens - token
	// maxTokens bounds what quiet times save up: a node that dies under load takes
	// some dozens of searches with it.
	maxTokens = 50 * token
)

// A RetryBudget keeps repetitions to a share of the requests, so as not to add
// to an overload. It is a token bucket: each request adds the share, each
// repetition takes one token. It starts with 10 tokens and has at most 50. Its
// methods may be called concurrently.
type RetryBudget struct {
	share  int64
	tokens atomic.Int64
}

// NewRetryBudget returns a budget that allows share, in [0, 1], repetitions
// for each request.
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

// Allow reports whether a request may be repeated now, and counts the
// repetition if so.
func (b *RetryBudget) Allow() bool { return b.take(0) }

// AllowMore is Allow for a request that was answered by a cluster that has too
// much to do: it leaves some tokens for those that were not answered.
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
