package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/enrich"
)

// A shaky engine fails some of its answers.
type shaky struct {
	engine http.Handler

	mu     sync.Mutex
	served map[string]int // scroll pages by what they read, such as "slice 3"
	scroll map[string]string
	// fail returns what answers instead of the engine, nil for the engine; page
	// counts all pages from 1.
	fail func(page int) func(w http.ResponseWriter)
	page int
}

// counts returns what has been served so far. A request that was given up may
// still be on its way.
func (s *shaky) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.served)
}

// restore lets the engine answer from now on, and forgets what was served.
func (s *shaky) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.served = nil, map[string]int{}
}

func (s *shaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.RequestURI(), "scroll") || r.Method == http.MethodDelete {
		s.engine.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var request struct {
		Slice    *struct{ ID int }
		ScrollID string `json:"scroll_id"`
	}
	_ = json.Unmarshal(body, &request)
	s.mu.Lock()
	s.page++
	name := s.scroll[request.ScrollID]
	if request.Slice != nil {
		name = fmt.Sprint("slice ", request.Slice.ID)
	}
	s.served[name]++
	var failure func(w http.ResponseWriter)
	if s.fail != nil {
		failure = s.fail(s.page)
	}
	s.mu.Unlock()
	if failure != nil {
		failure(w)
		return
	}
	answer := httptest.NewRecorder()
	s.engine.ServeHTTP(answer, r)
	var page struct {
		ScrollID string `json:"_scroll_id"`
	}
	_ = json.Unmarshal(answer.Body.Bytes(), &page)
	s.mu.Lock()
	s.scroll[page.ScrollID] = name
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// A scanTest reads an index of 3000 documents from a shaky engine, in 8 slices.
type scanTest struct {
	engine *shaky
	client *esclient.Client
	plan   scanPlan
}

func newScanTest(t *testing.T) *scanTest {
	t.Helper()
	s := &shaky{engine: demo.NewEngine(), served: map[string]int{}, scroll: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := esclient.New(esclient.Options{URL: server.URL})
	check.OK(t, err)
	t.Cleanup(client.Close)
	check.OK(t, check.ErrOf((documents.API{Client: client}).CreateIndex(t.Context(), "docs", []byte(`{"mappings":{"properties":{"body":{"type":"text","analyzer":"english"}}}}`))))
	docs := make([]documents.Document, 3000)
	for i := range docs {
		docs[i] = documents.Document{ID: strconv.Itoa(i), Source: map[string]string{"body": fmt.Sprintf("document number%d common%d", i, i%7)}}
	}
	check.OK(t, (documents.API{Client: client}).Index(t.Context(), "docs", docs))
	indices, err := documents.API{Client: client}.Indices(t.Context(), "docs")
	check.OK(t, err)
	plan := newScanPlan(documents.ScanOptions{Index: "docs", Fields: []string{"body"}}, indices, 3000, 0, false)
	plan.Slices = 8
	return &scanTest{s, client, plan}
}

// read reads the plan and returns the words of the documents, sorted.
func (s *scanTest) read(ctx context.Context, spool *spool) ([]string, string, error) {
	var said bytes.Buffer
	r := &reader{
		indexReading: &indexReading{Client: s.client, Report: cli.NewProgress(&said)}, plan: s.plan, spool: spool, firstPause: time.Microsecond, texts: learn.NewTexts(),
	}
	texts, err := r.read(ctx)
	if err != nil {
		return nil, said.String(), err
	}
	// Every document has a word of its own.
	words := slices.DeleteFunc(slices.Clone(texts.Words()), func(w string) bool { return !strings.HasPrefix(w, "number") })
	slices.Sort(words)
	if texts.Docs() != len(words) {
		return nil, said.String(), fmt.Errorf("%d documents with %d words of their own", texts.Docs(), len(words))
	}
	return words, said.String(), nil
}

// all are the words that each of the documents has alone.
func (*scanTest) all() []string {
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprint("number", i)
	}
	slices.Sort(words)
	return words
}

func lostScroll(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"error":{"root_cause":[{"type":"search_context_missing_exception"}]}}`)
}

func TestInterruptedSlicesAreReadAgainWithoutDoubles(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"lost scroll":       lostScroll,
		"node away":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"connection broken": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"page cut": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"_scroll_id":"x","hits":{"hits":[{"_index":"docs","_id":"x","_source":{"body":"double"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScanTest(t)
			s.engine.fail = func(page int) func(http.ResponseWriter) {
				if page%5 != 3 || page > 40 {
					return nil
				}
				return fail
			}
			words, said, err := s.read(t.Context(), nil)
			if diff := cmp.Diff(s.all(), words); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
			check.That(t, strings.Contains(said, "again in") && strings.Contains(said, "3000 of 3000"), "said %s", said)
		})
	}
}

// always answers every page with a status.
func always(status int) func(int) func(http.ResponseWriter) {
	return func(int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(status) }
	}
}

func TestSliceIsGivenUpAfterSoManyTries(t *testing.T) {
	s := newScanTest(t)
	s.plan.Slices = 2
	s.engine.fail = always(http.StatusServiceUnavailable)
	_, _, err := s.read(t.Context(), nil)
	if refused, ok := errors.AsType[*esclient.Error](err); !ok || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("error %v", err)
	}
	served := s.engine.counts()
	for name, n := range served {
		check.That(t, n <= enrich.MaxTries, "%s: %d tries", name, n)
	}
	if most := max(served["slice 0"], served["slice 1"]); most != enrich.MaxTries {
		t.Errorf("%d tries, want %d", most, enrich.MaxTries)
	}
}

func TestRefusedSliceIsNotTriedAgain(t *testing.T) {
	s := newScanTest(t)
	s.engine.fail = always(http.StatusForbidden)
	if _, _, err := s.read(t.Context(), nil); err == nil || slices.Max(slices.Collect(maps.Values(s.engine.counts()))) > 1 {
		t.Errorf("error %v, tries %v", err, s.engine.counts())
	}
}

func TestTextsThatTakeTooMuchMemoryEndTheScan(t *testing.T) {
	s := newScanTest(t)
	for _, spool := range []*spool{nil, newSpool(t, s.plan)} {
		r := &reader{
			indexReading: &indexReading{Client: s.client, Report: cli.NewProgress(io.Discard), Memory: 50_000}, plan: s.plan, spool: spool, texts: learn.NewTexts(),
		}
		if _, err := r.read(t.Context()); !errors.Is(err, simmatrix.ErrMemory) || !strings.Contains(err.Error(), "--max-docs") {
			t.Errorf("error %v", err)
		}
	}
}

func TestScanPlans(t *testing.T) {
	for _, tt := range []struct {
		count          int64
		maxDocs        int
		slices         int
		share, ofCount float64
	}{
		{0, 0, 1, 0, 0},
		{100, 0, 1, 0, 1},
		{25_000, 0, 1, 0, 1},
		{25_001, 0, 2, 0, 1},
		{100_000, 0, 4, 0, 1},
		{1e9, 0, 128, 0, 1},
		{100_000, 100_000, 4, 0, 1},
		{100_000, 99_999, 4, 0, 1},                // four standard deviations more are all
		{1e8, 100_000, 5, 0.00101265, 0.00101265}, // (1e5 + 4·√1e5)/1e8
		{300, 10, 1, 0.0754970, 0.075},
	} {
		p := newScanPlan(documents.ScanOptions{}, nil, tt.count, tt.maxDocs, false)
		if d := p.Share - tt.share; p.Slices != tt.slices || d > 1e-6 || d < -1e-6 {
			t.Errorf("%d documents, at most %d: %d slices and a share of %v, want %d and %v",
				tt.count, tt.maxDocs, p.Slices, p.Share, tt.slices, tt.share)
		}
		if want := tt.ofCount * float64(tt.count); float64(p.Docs) < want*0.97 || float64(p.Docs) > want*1.01 {
			t.Errorf("%d documents, at most %d: %d to read, want about %v", tt.count, tt.maxDocs, p.Docs, want)
		}
	}
	for shards, want := range map[int]int{0: 4, 1: 4, 100: 4, 150: 2, 400: 1, 10_000: 1} {
		p := scanPlan{Indices: []documents.ConcreteIndex{{Shards: shards}}}
		if got := p.sideBySide(); got != want {
			t.Errorf("%d shards: %d slices side by side, want %d", shards, got, want)
		}
	}
}
