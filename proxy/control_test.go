package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/proxy/report"
)

func TestControl(t *testing.T) {
	tests := []struct {
		name, query      string
		headers, profile []string
		rest             string
		want             control
	}{
		{"nothing", "", nil, nil, "", control{}},
		{"other parameters", "q=a&xakin=off&akin_=off;c=%zz", nil, nil, "q=a&xakin=off&akin_=off;c=%zz", control{}},
		{"off", "akin=off", nil, nil, "", control{off: true}},
		{"embeddings", "akin=embeddings", nil, nil, "", control{embeddings: expand.EmbeddingsOn}},
		{"no embeddings", "akin=explain,No-Embeddings", nil, nil, "", control{explain: true, embeddings: expand.EmbeddingsOff}},
		{"any case", "akin=OFF&q=a", nil, nil, "q=a", control{off: true}},
		{"last", "q=a&akin=off", nil, nil, "q=a", control{off: true}},
		{"in the middle", "q=a&akin=off&r=b;c=%zz", nil, nil, "q=a&r=b;c=%zz", control{off: true}},
		{"another meaning", "q=akin&akin=later", nil, nil, "q=akin", control{}},
		{"without a value", "akin&&=x&akin=&q=a+%20", nil, nil, "&=x&q=a+%20", control{}},
		{"twice", "akin=explain&akin=off", nil, nil, "", control{off: true, explain: true}},
		{"list", "akin=explain,+dry-run", nil, nil, "", control{dryRun: true, explain: true}},
		{"escaped", "%61kin=dry%2Drun&akin%5Fprofile=a%2Eb&q=%41", nil, nil, "q=%41", control{dryRun: true, profile: "a.b"}},
		{"escaped wrongly", "akin=%zz&akin_profile=%zz", nil, nil, "", control{profile: "%zz"}},
		{"behind a semicolon", "pretty;akin=off;q=a", nil, nil, "pretty;q=a", control{off: true}},
		{"last, behind a semicolon", "pretty;akin=off", nil, nil, "pretty", control{off: true}},
		{"header", "q=a", []string{" Off "}, nil, "q=a", control{off: true}},
		{"lists in headers", "", []string{"Explain,nonsense", "DRY-RUN"}, nil, "", control{dryRun: true, explain: true}},
		{"header and parameter", "akin=explain", []string{"off"}, nil, "", control{off: true, explain: true}},
		{"profile in a header", "", nil, []string{" fast ", "slow"}, "", control{profile: "fast"}},
		{"profile in a parameter", "akin_profile=slow&akin_profile=other", nil, []string{"fast"}, "", control{profile: "slow"}},
		{"effort", "akin=Low,+explain", nil, nil, "", control{effort: form.Low, explain: true}},
		{"effort in a header", "", []string{"high"}, nil, "", control{effort: form.High}},
		{"unknown effort", "akin=huge", nil, nil, "", control{}},
		{"empty profile", "a=b&akin_profile=", nil, []string{""}, "a=b", control{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rest, got := cutControl(tt.query, http.Header{controlHeader: tt.headers, profileHeader: tt.profile})
			check.That(t, rest == tt.rest && got == tt.want, "cutControl(%q) = %q, %+v, want %q, %+v", tt.query, rest, got, tt.rest, tt.want)
		})
	}
}

// Whatever the query string, the parameters of akin are gone, and the others
// are the same bytes in the same order, with one separator between two.
func FuzzCutControl(f *testing.F) {
	for _, q := range []string{"", "akin=off", "a=b&akin=off&c=%zz;d", "&&akin&", "akin=&akin==off;akin_profile=x", "%61kin;b"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		rest, _ := cutControl(query, nil)
		parts := func(q string) []string {
			return strings.FieldsFunc(q, func(r rune) bool { return r == '&' || r == ';' }) // no empty ones
		}
		ours := func(part string) bool {
			name, _, _ := strings.Cut(part, "=")
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
			return name == controlParameter || name == profileParameter
		}
		want := slices.DeleteFunc(parts(query), ours)
		diff := cmp.Diff(want, parts(rest))
		check.That(t, len(want)+len(parts(rest)) == 0 || diff == "", "cutControl(%q) = %q (-want +got):\n%s", query, rest, diff)
		check.That(t, slices.ContainsFunc(parts(query), ours) || rest == query, "cutControl(%q) = %q with nothing to cut", query, rest)
		again, c := cutControl(rest, nil)
		check.That(t, again == rest && c == (control{}), "cutControl(%q) = %q, and that of it %q, %+v", query, rest, again, c)
	})
}

func TestResultIsInAHeaderWhereItIsWantedAndNotHidden(t *testing.T) {
	rewrites, refused := rewriteTo(rewritten), rewriteTo(`{"refuse":1}`)
	for name, tt := range map[string]struct {
		query string
		o     Options
		want  string // "" for no header
	}{
		"rewritten":            {"", Options{Expander: rewrites, ResultHeader: true}, "rewritten"},
		"asked for":            {"?akin=explain", Options{Expander: rewrites}, "rewritten"},
		"neither":              {"", Options{Expander: rewrites}, ""},
		"failed":               {"", Options{Expander: expander(panics), ResultHeader: true}, "failed-open; cause=panic"},
		"off":                  {"?akin=off", Options{Expander: rewrites, ResultHeader: true}, "unchanged; reason=off"},
		"refused":              {"", Options{Expander: refused, ResultHeader: true}, "failed-open; cause=rejected"},
		"hidden":               {"?akin=explain", Options{Expander: rewrites, ResultHeader: true, HideFrom: expand.DiscloseProfile}, ""},
		"hidden with security": {"?akin=off", Options{Expander: rewrites, ResultHeader: true, HideFrom: expand.DiscloseSecured, Secured: true}, ""},
		"without security":     {"?akin=off", Options{Expander: rewrites, ResultHeader: true, HideFrom: expand.DiscloseSecured}, "unchanged; reason=off"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, tt.o, func(_ int, r rawRequest) string {
				if r.body == `{"refuse":1}` {
					return answerWith(400, "", "")
				}
				return emptyAnswer
			})
			_, got, _ := strings.Cut(p.post(t, "/help/_search"+tt.query, jsonType, original), resultHeader+": ")
			got, _, _ = strings.Cut(got, "\r\n")
			check.Equal(t, tt.want, got)
		})
	}
}

// A dry run sends the original, and names the record of what would have become
// of it; explain sends the rewritten search and does the same.
func TestExplainAndDryRunNameTheirRecord(t *testing.T) {
	rewrites, refused := rewriteTo(rewritten), rewriteTo(`{"refuse":1}`)
	for name, tt := range map[string]struct {
		query, header   string
		expander        Expander
		sent            []string
		outcome, reason string         // as it is counted
		want            map[string]any // of the record; nil for no record
	}{
		"explain":         {"?akin=explain", "", rewrites, []string{rewritten}, report.Rewritten, "", map[string]any{"outcome": "rewritten", "sent": "rewritten"}},
		"dry-run":         {"", "X-Akin: Dry-Run\n", rewrites, []string{original}, report.Unchanged, reasonDryRun, map[string]any{"outcome": "rewritten", "sent": "original"}},
		"neither":         {"", "", rewrites, []string{rewritten}, report.Rewritten, "", nil},
		"off":             {"?akin=off", "", rewrites, []string{original}, report.Unchanged, reasonOff, nil},
		"off goes before": {"?akin=off", "X-Akin: explain\n", rewrites, []string{original}, report.Unchanged, reasonOff, map[string]any{"outcome": "unchanged", "reason": "off"}},
		"left alone":      {"?akin=explain", "", expander(leaveAlone), []string{original}, report.Unchanged, "left alone", map[string]any{"outcome": "unchanged", "reason": "left alone"}},
		"unread":          {"?akin=explain", "Content-Type: application/cbor\n", rewrites, []string{original}, report.Unchanged, reasonContentType, map[string]any{"outcome": "unchanged", "reason": "content_type"}},
		"unknown profile": {"?akin=explain", "X-Akin-Profile: x\n", rewrites, []string{original}, report.Unchanged, reasonUnknownProfile, map[string]any{"outcome": "unchanged", "reason": "unknown_profile", "profile": "x"}},
		"failed":          {"?akin=explain", "", expander(panics), []string{original}, report.FailedOpen, "panic", map[string]any{"outcome": "failed_open", "cause": "panic"}},
		"refused":         {"?akin=explain", "", refused, []string{`{"refuse":1}`, original}, report.Rewritten, "", map[string]any{"outcome": "rewritten", "sent": "original", "rejected": true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Expander: tt.expander}, func(_ int, r rawRequest) string {
				if r.body == `{"refuse":1}` {
					return answerWith(400, "", "")
				}
				return emptyAnswer
			})
			if !strings.Contains(tt.header, "Content-Type") {
				tt.header += jsonType
			}
			shown := p.explained(t, p.post(t, "/help/_search"+tt.query, tt.header, original))
			check.Must(t, (shown != nil) == (tt.want != nil), "the answer names the record %v", shown)
			for key, want := range tt.want {
				check.Equal(t, want, shown[key], key)
			}
			p.arrived(t, tt.sent...)
			for _, r := range p.all() {
				check.That(t, !strings.Contains(strings.ToLower(r.line+strings.Join(r.header, "")), "akin"), "the node got %q", r)
			}
			p.became(t, tt.outcome, tt.reason)
		})
	}
}

func TestProfilesAreFoundByName(t *testing.T) {
	own, fast := results(expand.Result{Reason: "own"}), results(expand.Result{Reason: "fast"})
	profiles := map[string]Expander{"fast": fast, "none": nil}
	s, disabled := &Server{opts: Options{Expander: own, Profiles: profiles}}, &Server{opts: Options{Profiles: profiles}}
	for _, tt := range []struct {
		server                *Server
		profile, want, reason string
	}{
		{s, "", "own", ""},
		{s, "fast", "fast", ""},
		{s, "Fast", "", reasonUnknownProfile}, // case counts
		{s, "x", "", reasonUnknownProfile},
		{s, "none", "", reasonDisabled},
		{disabled, "", "", reasonDisabled},
		{disabled, "fast", "fast", ""},
	} {
		found, why := tt.server.expanderFor(tt.profile)
		got := ""
		if found != nil {
			res, _ := found.Expand(t.Context(), nil)
			got = string(res.Reason)
		}
		check.That(t, got == tt.want && why == tt.reason, "%q: %q, %q, want %q, %q", tt.profile, got, why, tt.want, tt.reason)
	}
}
