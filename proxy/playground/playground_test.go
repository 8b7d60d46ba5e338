package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/proxy/report"
)

// rows are matrices with one term.
type rows struct{}

func (rows) Setup(context.Context) (Setup, error) {
	return Setup{Cluster: "http://node:9200"}, nil
}

func (rows) Neighbors(_ context.Context, matrix, version, term string) (Row, error) {
	switch {
	case matrix != "m":
		return Row{}, fmt.Errorf("%w: %s", ErrUnknown, matrix)
	case version == "away":
		return Row{}, errors.New("Redis is away")
	}
	return Row{Version: version, Neighbors: []Neighbor{{Term: term + "s", Similarity: 0.5}}}, nil
}

// a server of requests to a playground whose cluster is search.
func server(t *testing.T, search http.HandlerFunc) *http.ServeMux {
	t.Helper()
	routes := Routes(Options{
		Search: search, Matrices: rows{},
		Explained: func(_ context.Context, id string) (report.Explanation, bool) {
			return report.Explanation{Summary: report.Summary{ID: id}}, id == "known"
		},
	})
	mux := http.NewServeMux()
	for route, h := range routes {
		mux.Handle(route, h)
	}
	return mux
}

func postJSON(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, endpoint+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer of the admin port")
	r.Header.Set("Cookie", "of=the admin port")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestSearchGoesTheWayOfClientsWithoutAndWithAkin(t *testing.T) {
	var sent []string
	mux := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		changes, is := Changes(r.Context())
		sent = append(sent, fmt.Sprintf("%s %s %s %v %v %v %v %v", r.Method, r.URL.RequestURI(), body, changes.Adjusted, *changes.Matching, *changes.Strength, is, r.Header))
		w.Header().Set("X-Akin-Explanation", "known")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"hits":"<b>"}`)
	})
	w := postJSON(mux, "search", `{"index":"docs,<logs-{now/d}>","body":{"query":{}},"profile":"a b","effort":"low","matching":"same","strength":1.5,"adjusted":[{"term":"car","factor":0.5}],"authorization":"Basic typed"}`)
	var got Compared
	err := json.Unmarshal(w.Body.Bytes(), &got)
	check.Must(t, err == nil && w.Code == http.StatusOK, "%d %s: %v", w.Code, w.Body, err)
	check.That(t, got.Akin.Status == http.StatusAccepted && string(got.Direct.Answer) == `{"hits":"<b>"}` && got.Explanation != nil && got.Explanation.ID == "known", "got %s", w.Body)
	const header = " map[Authorization:[Basic typed] Content-Type:[application/json] User-Agent:[akin-playground]]"
	for k, want := range []string{
		`POST /docs,%3Clogs-%7Bnow%2Fd%7D%3E/_search?akin=off {"query":{}} [{car 0.5}] 2 1.5 true` + header,
		`POST /docs,%3Clogs-%7Bnow%2Fd%7D%3E/_search?akin=explain,low&akin_profile=a+b {"query":{}} [{car 0.5}] 2 1.5 true` + header,
	} {
		check.That(t, len(sent) == 2 && sent[k] == want, "sent %q, want %q", sent, want)
	}
}

func TestNoCredentialsAreSentWhereNoneAreTyped(t *testing.T) {
	mux := server(t, func(_ http.ResponseWriter, r *http.Request) {
		check.That(t, len(r.Header) == 2 && r.Header.Get("Authorization")+r.Header.Get("Cookie") == "", "sent %v", r.Header)
	})
	w := postJSON(mux, "search", `{"index":"docs","body":{}}`)
	check.That(t, w.Code == http.StatusOK, "%d %s", w.Code, w.Body)
	w = postJSON(mux, "analysis", `{"index":"docs","field":"a","text":"b"}`)
	check.That(t, w.Code == http.StatusOK, "%d %s", w.Code, w.Body)
}

func TestWhatIsNotAskedProperlyIsRefused(t *testing.T) {
	mux := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the cluster is asked") })
	for name, tt := range map[string]struct {
		path, body string
		status     int
	}{
		"no JSON":               {"search", "a=b", 400},
		"two values":            {"search", `{"index":"a","body":{}} {}`, 400},
		"a member too many":     {"search", `{"index":"a","body":{},"url":"http://elsewhere"}`, 400},
		"no index":              {"search", `{"body":{}}`, 400},
		"another API":           {"search", `{"index":"_cluster","body":{}}`, 400},
		"long index":            {"search", `{"index":"` + strings.Repeat("a", maxIndex+1) + `","body":{}}`, 400},
		"no body":               {"search", `{"index":"a"}`, 400},
		"a list":                {"search", `{"index":"a","body":[]}`, 400},
		"large":                 {"search", `{"index":"a","body":{"a":"` + strings.Repeat("a", maxRequest) + `"}}`, 413},
		"large factor":          {"search", `{"index":"a","body":{},"adjusted":[{"term":"a","factor":4.1}]}`, 400},
		"negative factor":       {"search", `{"index":"a","body":{},"adjusted":[{"term":"a","factor":-1}]}`, 400},
		"many factors":          {"search", `{"index":"a","body":{},"adjusted":[` + strings.Repeat(`{"term":"a","factor":1},`, maxAdjusted) + `{"term":"a","factor":1}]}`, 400},
		"an unknown effort":     {"search", `{"index":"a","body":{},"effort":"explain,off"}`, 400},
		"an unknown matching":   {"search", `{"index":"a","body":{},"matching":"some"}`, 400},
		"large strength":        {"search", `{"index":"a","body":{},"strength":5.1}`, 400},
		"long term":             {"search", `{"index":"a","body":{},"adjusted":[{"term":"` + strings.Repeat("a", maxTerm+1) + `","factor":1}]}`, 400},
		"credentials of lines":  {"search", `{"index":"a","body":{},"authorization":"a\r\nX-Other: b"}`, 400},
		"long credentials":      {"search", `{"index":"a","body":{},"authorization":"` + strings.Repeat("a", maxCredentials+1) + `"}`, 400},
		"analysis of no index":  {"analysis", `{"field":"a","text":"b"}`, 400},
		"neighbors of nothing":  {"neighbors", `{"matrix":"m"}`, 400},
		"neighbors nowhere":     {"neighbors", `{"matrix":"other","term":"car"}`, 404},
		"neighbors of no store": {"neighbors", `{"matrix":"m","version":"away","term":"car"}`, 502},
	} {
		t.Run(name, func(t *testing.T) {
			w := postJSON(mux, tt.path, tt.body)
			var answer struct{ Error string }
			err := json.Unmarshal(w.Body.Bytes(), &answer)
			check.That(t, w.Code == tt.status && err == nil && answer.Error != "", "got %d %s, want %d", w.Code, w.Body, tt.status)
		})
	}
}

// A form of another site can send no JSON.
func TestFormsAreRefused(t *testing.T) {
	mux := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the cluster is asked") })
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		r := httptest.NewRequest(http.MethodPost, endpoint+"search", strings.NewReader(`{"index":"a","body":{}}`))
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: got %d", contentType, w.Code)
		}
	}
}

func TestAnswersThatBreakOffOrAreTooLong(t *testing.T) {
	for name, search := range map[string]http.HandlerFunc{
		"breaks off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			for range maxAnswer/1000 + 1 {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					panic(http.ErrAbortHandler) // as the server does
				}
			}
		},
	} {
		w := postJSON(server(t, search), "search", `{"index":"a","body":{}}`)
		check.That(t, w.Code == http.StatusBadGateway, "%s: got %d %s", name, w.Code, w.Body)
	}
}

func TestFewSearchesRunAtATime(t *testing.T) {
	arrived, release := make(chan bool, maxSearches), make(chan bool)
	mux := server(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "akin=off" {
			arrived <- true
			<-release
		}
	})
	done := make(chan int, maxSearches)
	for range maxSearches {
		go func() { done <- postJSON(mux, "search", `{"index":"a","body":{}}`).Code }()
	}
	for range maxSearches {
		<-arrived
	}
	w := postJSON(mux, "search", `{"index":"a","body":{}}`)
	check.That(t, w.Code == http.StatusServiceUnavailable, "one more: %d", w.Code)
	w = postJSON(mux, "analysis", `{"index":"a","field":"b","text":"c"}`)
	check.That(t, w.Code == http.StatusServiceUnavailable, "an analysis more: %d", w.Code)
	close(release)
	for range maxSearches {
		check.Equal(t, http.StatusOK, <-done)
	}
	w = postJSON(mux, "search", `{"index":"a","body":{}}`)
	check.That(t, w.Code == http.StatusOK, "after them: %d", w.Code)
}

func TestPageAllowsNothingButItsOwnFiles(t *testing.T) {
	mux := server(t, nil)
	for _, path := range []string{Page, Page + ".js", Page + ".css", endpoint + "setup"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		h := w.Header()
		check.That(t, w.Code == http.StatusOK && h.Get("Content-Security-Policy") == contentPolicy && h.Get("X-Content-Type-Options") == "nosniff" && h.Get("Cache-Control") == "no-store", "%s: %d %v", path, w.Code, h)
		if page := w.Body.String(); path == Page && (strings.Contains(page, "<style") || strings.Contains(page, "style=") || strings.Contains(page, "http://") || strings.Contains(page, "https://") || strings.Contains(page, "onclick")) {
			t.Error("something stands in the page that its policy forbids")
		}
		script := w.Body.String()
		check.That(t, !strings.HasSuffix(path, ".js") || !strings.Contains(script, "innerHTML") && !strings.Contains(script, "insertAdjacent") && !strings.Contains(script, "eval("), "the script can make markup of texts")
	}
}
