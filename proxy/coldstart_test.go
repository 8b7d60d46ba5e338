package proxy

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

const usualBudget = 50 * time.Millisecond

func budgetOf(p *ColdStart, index string) time.Duration {
	budget, end := p.budget(index, usualBudget)
	end()
	return budget
}

func TestSearchesHaveMoreTimeWhileCachesAreCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewColdStart()
		check.Equal(t, coldBudget, budgetOf(p, "docs"), "after the start")
		time.Sleep(coldFor)
		check.Equal(t, usualBudget, budgetOf(p, "docs"), "a minute later")
		check.Equal(t, coldBudget, budgetOf(p, "other"), "the first search of an index")
		check.Equal(t, usualBudget, budgetOf(p, "docs"), "meanwhile elsewhere")
		time.Sleep(coldFor)
		check.Equal(t, usualBudget, budgetOf(p, "other"), "a minute after the first search")
		p.Begin()
		check.Equal(t, coldBudget, budgetOf(p, "docs"), "with a new version of a matrix")
		longer, end := p.budget("docs", 2*coldBudget)
		end()
		check.Equal(t, 2*coldBudget, longer, "with a longer budget")
		check.Equal(t, usualBudget, budgetOf(nil, "docs"), "without one")
	})
}

func TestFewSearchesHaveMoreTimeAtOnce(t *testing.T) {
	p := NewColdStart()
	var ends []func()
	for range mostCold {
		budget, end := p.budget("docs", usualBudget)
		check.Equal(t, coldBudget, budget)
		ends = append(ends, end)
	}
	check.Equal(t, usualBudget, budgetOf(p, "docs"))
	ends[0]()
	check.Equal(t, coldBudget, budgetOf(p, "docs"))
}

func TestIndicesThatWereSearchedTakeBoundedMemory(t *testing.T) {
	p := NewColdStart()
	for k := range 3 * mostFirst {
		budgetOf(p, strconv.Itoa(k))
		check.Must(t, len(p.first) <= mostFirst, "%d indices", len(p.first))
	}
}
