package serve

import (
	"fmt"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
)

// Every name that the configuration lets through stands for an option of its own.
func TestOptionsOfTheConfigurationReachTheExpander(t *testing.T) {
	base := configs.Default().Expansion.Rewriting
	seen := map[string]bool{}
	for _, change := range []func(*configs.Rewriting){
		func(r *configs.Rewriting) { r.SoftWeight = 1 },
		func(r *configs.Rewriting) { r.Scoring = configs.ScoringLinear },
		func(r *configs.Rewriting) { r.Scoring = configs.ScoringGrouped },
		func(r *configs.Rewriting) { r.Scoring = configs.ScoringSaturated },
		func(r *configs.Rewriting) { r.Phase = configs.PhaseQuery },
		func(r *configs.Rewriting) { r.Matching = configs.MatchingSame },
		func(r *configs.Rewriting) { r.MaxAddedTerms++ },
		func(r *configs.Rewriting) { r.MaxQueryTerms++ },
		func(r *configs.Rewriting) { r.MaxDocShare = 1 },
		func(r *configs.Rewriting) { r.Strength.Grouped = 1 },
		func(r *configs.Rewriting) { r.DefaultFields = []string{"title"} },
		func(r *configs.Rewriting) { r.Highlight = configs.HighlightRelated },
		func(r *configs.Rewriting) { r.NormalizeScore = true },
		func(r *configs.Rewriting) { r.Phrases = true },
		func(r *configs.Rewriting) { r.RescoreQueries = true },
		func(*configs.Rewriting) {}, // the default differs from all; the phase rescore is what auto does
	} {
		r := base
		change(&r)
		options := fmt.Sprintf("%+v", ExpandOptions(r))
		if seen[options] {
			t.Errorf("another configuration gives %s, too", options)
		}
		seen[options] = true
	}
	if got, want := fmt.Sprintf("%+v", ExpandOptions(base)), fmt.Sprintf("%+v", withDefaultFields(expand.DefaultProfile())); got != want {
		t.Errorf("the default configuration gives %s, want %s", got, want)
	}
}

// withDefaultFields returns o with the list that the configuration has for none.
func withDefaultFields(o expand.Profile) expand.Profile {
	o.DefaultFields = []string{}
	return o
}
