package serve

import (
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

func TestWordsAreReadForModesThatAskForThem(t *testing.T) {
	near, off := expand.Profile{NearestWords: true}, expand.Profile{}
	hard, vectors, soft := near, near, near
	hard.Mode, vectors.Mode, soft.Mode = expand.ModeHard, expand.ModeVectors, expand.ModeSoft
	for _, tt := range []struct {
		about             string
		all, some         expand.Profile
		enabled, wantsAny bool
	}{
		{"all searches", near, off, false, true},
		{"a profile", off, soft, true, true},
		{"a profile that is switched off", off, near, false, false},
		{"hard and vectors", hard, vectors, true, false},
		{"a profile of another mode", hard, near, true, true},
	} {
		cfg := &configs.Config{}
		cfg.Expansion.Profile = tt.all
		cfg.Profiles = map[string]configs.Profile{"some": {Enabled: tt.enabled, Profile: tt.some}}
		check.Equal(t, tt.wantsAny, wantsWords(cfg), tt.about)
	}
}
