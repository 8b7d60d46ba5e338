package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			if rest != tt.rest || got != tt.want {
				t.Errorf("cutControl(%q) = %q, %+v, want %q, %+v", tt.query, rest, got, tt.rest, tt.want)
			}
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
		if diff := cmp.Diff(want, parts(rest)); len(want)+len(parts(rest)) > 0 && diff != "" {
			t.Errorf("cutControl(%q) = %q (-want +got):\n%s", query, rest, diff)
		}
		if !slices.ContainsFunc(parts(query), ours) && rest != query {
			t.Errorf("cutControl(%q) = %q with nothing to cut", query, rest)
		}
		if again, c := cutControl(rest, nil); again != rest || c != (control{}) {
			t.Errorf("cutControl(%q) = %q, and that of it %q, %+v", query, rest, again, c)
		}
	})
}

// explainedBy sends a search and returns what the admin port shows of the
// record that the answer names.
func explainedBy(t *testing.T, s *Server, proxy, query string, header ...string) (shown map[string]any, answered bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy+"/help/_search"+query, strings.NewReader(original))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	id := res.Header.Get(explanationHeader)
	if id == "" {
		return nil, false
	}
	if status := getAdmin(t, s, "/_akin/explanations/"+id, &shown); status != http.StatusOK {
		t.Fatalf("status %d of explanation %s", status, id)
	}
	return shown, true
}

func TestExplainAndDryRunNameTheirRecord(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		header      []string
		expander    Expander
		node        string // the body that the node gets last
		requests    int
		want        map[string]any // of the record; nil for no record
	}{
		{"explain", "?akin=explain", nil, rewriteTo(rewritten), rewritten, 1, map[string]any{"outcome": "rewritten", "sent": "rewritten"}},
		{"dry-run", "", []string{"X-Akin", "Dry-Run"}, rewriteTo(rewritten), original, 1, map[string]any{"outcome": "rewritten", "sent": "original"}},
		{"neither", "", nil, rewriteTo(rewritten), rewritten, 1, nil},
		{"off goes before", "?akin=off", []string{"X-Akin", "explain"}, rewriteTo(rewritten), original, 1, map[string]any{"outcome": "unchanged", "reason": "off"}},
		{"left alone", "?akin=explain", nil, expander(leaveAlone), original, 1, map[string]any{"outcome": "unchanged", "reason": "left alone"}},
		{"unread", "?akin=explain", []string{"Content-Type", "application/cbor"}, rewriteTo(rewritten), original, 1, map[string]any{"outcome": "unchanged", "reason": "content_type"}},
		{"unknown profile", "?akin=explain", []string{"X-Akin-Profile", "x"}, rewriteTo(rewritten), original, 1, map[string]any{"outcome": "unchanged", "reason": "unknown_profile", "profile": "x"}},
		{"failed", "?akin=explain", nil, expander(func(context.Context, *expand.Request) (*expand.Result, error) { panic(1) }), original, 1, map[string]any{"outcome": "failed_open", "cause": "panic"}},
		{"refused", "?akin=explain", nil, rewriteTo(`{"refuse":1}`), original, 2, map[string]any{"outcome": "rewritten", "sent": "original", "rejected": true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, func(_ int, r rawRequest) string {
				if r.body == `{"refuse":1}` {
					return "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n"
				}
				return emptyAnswer
			})
			s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: tt.expander})
			proxy := httptest.NewServer(s.proxy)
			t.Cleanup(proxy.Close)
			shown, named := explainedBy(t, s, proxy.URL, tt.query, tt.header...)
			if named != (tt.want != nil) {
				t.Fatalf("the answer names a record: %v", named)
			}
			for key, want := range tt.want {
				if shown[key] != want {
					t.Errorf("%s is %v, want %v", key, shown[key], want)
				}
			}
			got := node.all()
			last := got[len(got)-1]
			if len(got) != tt.requests || last.body != tt.node || strings.Contains(last.line, "akin") || len(last.get("X-Akin"))+len(last.get("X-Akin-Profile")) > 0 {
				t.Errorf("the node got %q", got)
			}
		})
	}
}

// The name that a client gives is in the record, which it asked for, and in no
// label of a metric.
func TestUnknownProfileIsCountedWithoutItsName(t *testing.T) {
	node := startRawNode(t, nil)
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	exchangeRaw(t, addr, searchOf("/_search?akin_profile=made-up", jsonType, original))
	if got := node.only(t); got.body != original || strings.Contains(got.line, "akin") {
		t.Errorf("the node got %q", got)
	}
	if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonUnknownProfile); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

func TestProfilesAreFoundByName(t *testing.T) {
	own, fast := fixedExpander{}, fixedExpander{}
	own.result.Reason, fast.result.Reason = "own", "fast"
	s := &Server{opts: Options{Expander: own, Profiles: map[string]Expander{"fast": fast, "none": nil}}}
	disabled := &Server{opts: Options{Profiles: s.opts.Profiles}}
	for _, tt := range []struct {
		name, profile string
		server        *Server
		want          Expander
		reason        string
	}{
		{"none named", "", s, own, ""},
		{"named", "fast", s, fast, ""},
		{"case counts", "Fast", s, nil, reasonUnknownProfile},
		{"unknown", "x", s, nil, reasonUnknownProfile},
		{"switched off", "none", s, nil, reasonDisabled},
		{"all is off", "", disabled, nil, reasonDisabled},
		{"all is off but this", "fast", disabled, fast, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, reason := tt.server.expanderFor(tt.profile)
			if reason != tt.reason || (got == nil) != (tt.want == nil) {
				t.Fatalf("got %v, %q, want %v, %q", got, reason, tt.want, tt.reason)
			}
			if got != nil && got.(fixedExpander).result.Reason != tt.want.(fixedExpander).result.Reason {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
