package proxy

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

const usualBudget = 50 * time.Millisecond

func budgetOf(p *Patience, index string) time.Duration {
	budget, end := p.budget(index, usualBudget)
	end()
	return budget
}

func TestSearchesHaveMoreTimeWhileCachesAreCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPatience()
		check.Equal(t, patientBudget, budgetOf(p, "docs"), "after the start")
		time.Sleep(patientFor)
		check.Equal(t, usualBudget, budgetOf(p, "docs"), "a minute later")
		check.Equal(t, patientBudget, budgetOf(p, "other"), "the first search of an index")
		check.Equal(t, usualBudget, budgetOf(p, "docs"), "meanwhile elsewhere")
		time.Sleep(patientFor)
		check.Equal(t, usualBudget, budgetOf(p, "other"), "a minute after the first search")
		p.Begin()
		check.Equal(t, patientBudget, budgetOf(p, "docs"), "with a new version of a matrix")
		longer, end := p.budget("docs", 2*patientBudget)
		end()
		check.Equal(t, 2*patientBudget, longer, "with a longer budget")
		check.Equal(t, usualBudget, budgetOf(nil, "docs"), "without patience")
	})
}

func TestFewSearchesHaveMoreTimeAtOnce(t *testing.T) {
	p := NewPatience()
	var ends []func()
	for range mostPatient {
		budget, end := p.budget("docs", usualBudget)
		check.Equal(t, patientBudget, budget)
		ends = append(ends, end)
	}
	check.Equal(t, usualBudget, budgetOf(p, "docs"))
	ends[0]()
	check.Equal(t, patientBudget, budgetOf(p, "docs"))
}

func TestIndicesThatWereSearchedTakeBoundedMemory(t *testing.T) {
	p := NewPatience()
	for k := range 3 * mostFirst {
		budgetOf(p, strconv.Itoa(k))
		check.Must(t, len(p.first) <= mostFirst, "%d indices", len(p.first))
	}
}
