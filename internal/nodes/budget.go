package nodes

import "sync"

const (
	// retryShare is the share of the requests that may be sent once more, in
	// thousandths so that it is an integer.
	retryShare = 100
	token      = 1000 // one retry
	// firstTokens are there from the start.
	firstTokens = 10 * token
	// spare is kept back for requests that were not answered at all: repeating what
	// an overloaded cluster refused must not use it up.
	spare = firstTokens - token
	// maxTokens are for a node that dies under load with dozens of searches.
	maxTokens = 50 * token
)

// A retryBudget keeps retries to a share of the requests. It is a token bucket:
// each request adds the share, each retry takes a token.
type retryBudget struct {
	mu     sync.Mutex
	share  int
	tokens int
}

func newRetryBudget(share int) *retryBudget { return &retryBudget{share: share, tokens: firstTokens} }

// note counts a request that is no retry.
func (b *retryBudget) note() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.share, maxTokens)
}

// allow reports whether a retry may leave so many tokens or more, and takes one
// for it.
func (b *retryBudget) allow(leave int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < leave+token {
		return false
	}
	b.tokens -= token
	return true
}
