//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A shownPage is a line of the log of interleaved pages.
type shownPage struct {
	QueryID string `json:"query_id"`
	Query   string
	Shown   []string
	Arms    []string
}

// serveTrial starts akin before e with a trial of off against today.
func serveTrial(t *testing.T, e *engine, tried section) (a *akin, pages string) {
	t.Helper()
	makeRelated(t, e)
	pages = filepath.Join(newDir(t, "pages"), "pages.jsonl")
	all := section{"name": "t", "indices": []string{"akin-e2e-*"}, "arms": []string{"off", "today"}, "header": "X-Session"}
	maps.Copy(all, tried)
	a = startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience, "trials": []section{all}},
		"profiles":  section{"today": section{}},
		"matrices":  []section{{"name": "m", "file": relatedFile(t, vectorsA)}},
		"log":       section{"impressions": pages},
	})
	a.awaitMatrix(t, "m")
	return a, pages
}

// within reports whether a share of n is near to another one: within five
// standard deviations of a binomial.
func within(count, n int, share float64) bool {
	return math.Abs(float64(count)-share*float64(n)) <= 5*math.Sqrt(float64(n)*share*(1-share))
}

func TestACanaryGivesUsersTheSameArm(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a, _ := serveTrial(t, e, section{"share": .3})
		const users = 300
		expanded := 0
		for i := range users {
			search := carSearch("", fmt.Sprintf("X-Session: %d", i))
			ids := idsOf(t, exchange(t, a.url, search))
			if again := idsOf(t, exchange(t, a.url, search)); !slices.Equal(ids, again) {
				t.Fatalf("user %d gets %v, then %v", i, ids, again)
			}
			if slices.Contains(ids, "automobile") {
				expanded++
			}
		}
		if !within(expanded, users, .3) || a.metric(t, "akin_trial_searches_total", `arm="today"`) != float64(2*expanded) {
			t.Errorf("%d of %d users are in the second arm", expanded, users)
		}
		if ids := idsOf(t, exchange(t, a.url, carSearch(""))); slices.Contains(ids, "automobile") {
			t.Error("a search without the header is in the second arm")
		}
	})
}

// Pages are interleaved fairly, their log goes on in a new file after SIGHUP,
// and the preference of users who click is found.
func TestInterleavedPagesShowWhatUsersPrefer(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a, log := serveTrial(t, e, section{"share": 1, "interleave": true})
		const users = 400
		search := carSearch("?size=4")
		search.body = strings.Replace(relatedSearch("car"), `"size":100,`, "", 1)
		show := func(from, to int) {
			for i := from; i < to; i++ {
				own := search
				own.header = append(slices.Clone(search.header), fmt.Sprintf("X-Session: %d", i))
				answer := exchange(t, a.url, own)
				for tries := 0; answer.header.Get("X-Akin-Query-Id") == "" && tries < 20; tries++ { // on a busy machine an arm may be late
					answer = exchange(t, a.url, own)
				}
				ids := idsOf(t, answer)
				if sorted := sortedWords(ids...); len(ids) != 4 || len(slices.Compact(strings.Fields(sorted))) != 4 || answer.header.Get("X-Akin-Query-Id") == "" {
					t.Fatalf("user %d gets %v, %v", i, ids, answer.header)
				}
			}
		}
		show(0, users/2)
		old := log + ".1"
		if err := os.Rename(log, old); err != nil {
			t.Fatal(err)
		}
		a.proc.signal(t, syscall.SIGHUP)
		waitFor(t, 20*time.Second, "a new file", func() error { _, err := os.Stat(log); return err })
		waitFor(t, 20*time.Second, "the reload", func() error {
			if a.metric(t, "akin_config_reloads_total", `result="ok"`) != 1 {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		show(users/2, users)
		var pages []shownPage
		var all strings.Builder
		waitFor(t, 20*time.Second, "all pages", func() error {
			pages = pages[:0]
			all.Reset()
			for _, file := range []string{old, log} {
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				all.Write(data)
			}
			for line := range strings.Lines(all.String()) {
				var p shownPage
				if err := json.Unmarshal([]byte(line), &p); err != nil {
					return err
				}
				pages = append(pages, p)
			}
			if len(pages) != users {
				return fmt.Errorf("%d", len(pages))
			}
			return nil
		})
		first := 0
		for _, p := range pages {
			counts := map[string]int{}
			for _, arm := range p.Arms {
				counts[arm]++
			}
			if d := counts["off"] - counts["today"]; d < -1 || d > 1 || p.Query != "car" {
				t.Errorf("unfair: %+v", p)
			}
			if p.Arms[0] == "today" {
				first++
			}
		}
		if !within(first, users, .5) {
			t.Errorf("today begins %d of %d pages", first, users)
		}
		merged := filepath.Join(newDir(t, "clicks"), "all.jsonl")
		for want, likes := range map[string]func(id string, random *rand.Rand) bool{
			"today": func(id string, random *rand.Rand) bool {
				return id == "car-automobile" && random.Float64() < .5 || random.Float64() < .1
			},
			"not known yet": func(_ string, random *rand.Rand) bool { return random.Float64() < .3 },
		} {
			random := rand.New(rand.NewPCG(1, 2))
			var clicks strings.Builder
			for _, p := range pages {
				for _, id := range p.Shown {
					if likes(id, random) {
						fmt.Fprintf(&clicks, `{"query_id":%q,"clicked":[%q]}`+"\n", p.QueryID, id)
					}
				}
			}
			clicked := merged + ".clicks"
			for file, text := range map[string]string{merged: all.String(), clicked: clicks.String()} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := mustAkin(t, "preference", "--impressions", merged, "--clicks", clicked)
			if line := strings.Split(out, "\n")[1]; !strings.HasSuffix(line, "  "+want) {
				t.Errorf("want %s:\n%s", want, out)
			}
		}
	})
}
