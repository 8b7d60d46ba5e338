package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/akin-search/akin/e2e/check"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	check.OK(t, err)
	return text
}

// alerts returns the rules, which Prometheus takes.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(read(t, "deploy/prometheus/alerts.yml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	for _, err := range errs {
		t.Error(err)
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// Who is woken by an alert finds out what it means and what to do.
func TestAlertsSayWhatToDo(t *testing.T) {
	operations := string(read(t, "docs/operations.md"))
	const page = "https://github.com/akin-search/akin/blob/main/docs/operations.md#"
	documented := 0
	for _, r := range alerts(t) {
		check.That(t, slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]), "%s has the severity %q", r.Alert, r.Labels["severity"])
		check.That(t, r.Annotations["summary"] != "" && r.Annotations["description"] != "", "%s has no summary, or no description", r.Alert)
		anchor, ours := strings.CutPrefix(r.Annotations["runbook_url"], page)
		heading := regexp.MustCompile(`(?mi)^## ` + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", " ") + `$`)
		check.That(t, ours && heading.MatchString(operations), "%s: no section for %s", r.Alert, r.Annotations["runbook_url"])
		if strings.Contains(operations, "| `"+r.Alert+"` |") {
			documented++
		} else {
			t.Errorf("docs/operations.md has no row for %s", r.Alert)
		}
	}
	if rows := strings.Count(operations, "| `Akin"); rows != documented {
		t.Errorf("docs/operations.md has %d alerts, of which %d are there", rows, documented)
	}
}

// A seriesSet yields series one by one.
type seriesSet struct {
	storage.SeriesSet // without errors and warnings

	at   storage.Series
	left []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.at }

// sampled returns series, in the notation of promtool, with a sample a minute.
func sampled(t *testing.T, descriptions []string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for _, d := range descriptions {
		metric, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(d)
		check.Must(t, err == nil, "%s: %v", d, err)
		points := make([]promql.FPoint, 0, len(values))
		for minute, v := range values {
			points = append(points, promql.FPoint{T: (time.Duration(minute) * time.Minute).Milliseconds(), F: v.Value})
		}
		all = append(all, promql.NewStorageSeries(promql.Series{Metric: metric, Floats: points}))
	}
	fitting := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
		for _, s := range all {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
				set.left = append(set.left, s)
			}
		}
		return set
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: fitting}}
}

// Each alert is raised by what it is about, and none by an akin that does well.
func TestAlertsAreRaisedByWhatTheyAreAbout(t *testing.T) {
	healthy := []string{
		`up{job="akin",instance="a"} 1x30`, `akin_upstream_errors_total{instance="a"} 0x30`, `akin_node_up{instance="a",node="n"} 1x30`,
		`akin_responses_total{instance="a",kind="search",code="2xx"} 0+600x30`, `akin_responses_total{instance="a",kind="search",code="5xx"} 0+1x30`,
		`akin_requests_total{instance="a",outcome="rewritten"} 0+600x30`, `akin_requests_total{instance="a",outcome="failed_open",reason="budget"} 0+1x30`,
		`akin_requests_total{instance="a",outcome="failed_open",reason="client_gone"} 0+300x30`, `akin_degraded{instance="a",reason="matrix"} 0x30`,
		`akin_search_stage_duration_seconds_bucket{instance="a",stage="expand",le="0.01"} 0+600x30`,
		`akin_search_stage_duration_seconds_bucket{instance="a",stage="expand",le="+Inf"} 0+600x30`,
		`akin_request_memory_rejections_total{instance="a",kind="response"} 0x30`, `akin_panics_total{instance="a",operation="expanding"} 0x30`,
		`akin_matrix_created_timestamp_seconds{instance="a",matrix="m"} 0x30`,
	}
	idle := []string{
		`akin_requests_total{instance="a",outcome="rewritten"} 0x30`, `akin_requests_total{instance="a",outcome="failed_open",reason="budget"} 0x30`,
		`akin_responses_total{instance="a",kind="search",code="2xx"} 0x30`, `akin_responses_total{instance="a",kind="search",code="5xx"} 0x30`,
	}
	raised := map[string][]string{ // by what
		"":                  healthy,
		" ":                 idle,
		"AkinDown":          {`up{job="akin",instance="a"} 0x30`},
		"AkinNoNodeAnswers": {`akin_upstream_errors_total{instance="a"} 0x28 1x2`},
		"AkinServerErrors":  {`akin_responses_total{instance="a",kind="search",code="2xx"} 0+90x30`, `akin_responses_total{instance="a",kind="search",code="5xx"} 0+10x30`},
		"AkinFailingOpen":   {`akin_requests_total{instance="a",outcome="rewritten"} 0+90x30`, `akin_requests_total{instance="a",outcome="failed_open",reason="rows"} 0x27 10+10x3`},
		"AkinDegraded":      {`akin_degraded{instance="a",reason="matrix"} 1x30`},
		"AkinNodeDown":      {`akin_node_up{instance="a",node="n"} 0x30`},
		"AkinSlow": {
			`akin_search_stage_duration_seconds_bucket{instance="a",stage="expand",le="0.05"} 0+90x30`,
			`akin_search_stage_duration_seconds_bucket{instance="a",stage="expand",le="0.1"} 0+100x30`,
			`akin_search_stage_duration_seconds_bucket{instance="a",stage="expand",le="+Inf"} 0+100x30`,
		},
		"AkinOutOfMemoryForRequests": {`akin_request_memory_rejections_total{instance="a",kind="response"} 0x28 1x2`},
		"AkinPanic":                  {`akin_panics_total{instance="a",operation="expanding"} 0x28 1x2`},
		"AkinMatrixOld":              {`akin_matrix_created_timestamp_seconds{instance="a",matrix="m"} -800000x30`},
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	rules := alerts(t)
	check.That(t, len(rules) == len(raised)-2, "%d alerts, of which %d are tried", len(rules), len(raised)-2)
	for about, descriptions := range raised {
		samples := sampled(t, descriptions)
		var got []string
		for _, r := range rules {
			query, err := engine.NewInstantQuery(t.Context(), samples, nil, r.Expr, time.UnixMilli((30 * time.Minute).Milliseconds()))
			check.OK(t, err)
			if result := query.Exec(t.Context()); result.Err != nil || strings.TrimSpace(result.String()) != "" {
				got = append(got, r.Alert)
			}
			query.Close()
		}
		if want := strings.Fields(about); !slices.Equal(got, want) {
			t.Errorf("raised are %v, want %v", got, want)
		}
	}
}

// A panel of a dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

// Grafana shows a panel with a mistake without a word: an empty one, or one
// behind another.
func TestDashboardIsWhatGrafanaShows(t *testing.T) {
	var board struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []panel
	}
	check.OK(t, json.Unmarshal(read(t, "deploy/grafana/akin.json"), &board))
	if board.UID == "" || board.Title == "" || board.SchemaVersion < 39 || len(board.Templating.List) != 2 || board.Templating.List[0].Type != "datasource" {
		t.Errorf("uid %q, title %q, schema %d, variables %v", board.UID, board.Title, board.SchemaVersion, board.Templating.List)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".+")
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		check.That(t, !ids[p.ID] && p.Title != "", "panel %d %q is there twice, or has no title", p.ID, p.Title)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, is := taken[[2]int{x, y}]; is || x >= 24 {
					t.Fatalf("%q is behind %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%q has no description, unit, data source or query", p.Title)
		}
		names := map[string]bool{}
		for _, target := range p.Targets {
			check.That(t, !names[target.RefID] && target.LegendFormat != "", "%q: query %s is there twice, or has no legend", p.Title, target.RefID)
			names[target.RefID] = true
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(target.Expr)); err != nil {
				t.Errorf("%q: %s: %v", p.Title, target.Expr, err)
			}
		}
	}
}
