// Package evaluate sends judged searches through several arms against a cluster
// and says which is better: for each search, on average, and beyond chance.
package evaluate

import (
	"context"
	"time"
)

// An Arm is a way to search, which is compared with others.
type Arm struct {
	Name string
	// Search sends a search body.
	Search func(ctx context.Context, body []byte) (Answer, error)
	// Neighbors is how many entries the arm's matrix has; 0 is unknown or none.
	Neighbors int64
}

// An Answer is what an arm returns for one search.
type Answer struct {
	Hits []Hit // as the engine orders them
	// Added is nil where nobody knows what akin added, and empty where it added
	// nothing.
	Added []AddedTerm
	Took  time.Duration // until the answer was read
}

// Options say how an evaluation goes. The zero value measures [DefaultMeasures].
type Options struct {
	// Measures are names such as "MAP" and "nDCG@10"; none are the default ones.
	Measures []string
	// Body returns the search of a query.
	Body func(text string) []byte
	// Progress is called after each query; nil is not.
	Progress func(stage string, done, total int)
}
