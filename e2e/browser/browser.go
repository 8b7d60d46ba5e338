// Package browser opens a Chromium for tests of pages.
package browser

import (
	"context"
	"encoding/json"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/akin-search/akin/e2e/check"
)

// A Record is what a browser complained of, and the URLs that it asked for.
type Record struct {
	mu       sync.Mutex
	problems []any
	urls     []string
}

// Check looks for complaints of the browser, and returns the URLs.
func (r *Record) Check(tb testing.TB) []string {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range r.problems {
		data, _ := json.Marshal(problem)
		tb.Errorf("the browser complains: %s", data)
	}
	return r.urls
}

// Open opens Chromium and returns the context of its page.
func Open(tb testing.TB) (context.Context, *Record) {
	tb.Helper()
	ctx, stop := context.WithTimeout(tb.Context(), 3*time.Minute)
	tb.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(find(tb)), chromedp.NoFirstRun, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	tb.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	tb.Cleanup(stop)
	r := &Record{}
	check.OK(tb, chromedp.Listen(ctx, func(event any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch event := event.(type) {
		case *runtime.EventConsoleAPICalled, *runtime.EventExceptionThrown, *log.EventEntryAdded:
			r.problems = append(r.problems, event)
		case *network.EventRequestWillBeSent:
			r.urls = append(r.urls, event.Request.URL)
		}
	}))
	return ctx, r
}

// find returns where Chromium is, see [check.Missing].
func find(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		check.Missing(tb, "-short starts no browser, and this needs Chromium")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	check.Missing(tb, "no Chromium in PATH: install it (apt-get install chromium)")
	return ""
}
