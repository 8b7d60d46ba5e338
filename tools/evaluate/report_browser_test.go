package evaluate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/akin-search/akin/e2e/browser"
	"github.com/akin-search/akin/e2e/check"
)

// hostile is a text that is no text to a page that does not take care.
const hostile = `</style></title></bdi><script>hacked=1</script><img src=x onerror=hacked=1>" onmouseover="hacked=1' &lt;b&gt; {{.}} \u003c` +
	"\u202e\u2067\x00\x01\x1b\x7f\x85\ufffe\xff"

// faults lists what is wrong with the page as the browser has laid it out: what
// is there that should not be, and what would keep people from reading it.
const faults = `(() => {
	const faults = [], all = (what) => [...document.querySelectorAll(what)]
	all('details').forEach(d => d.open = true)
	const root = document.documentElement
	if (root.scrollWidth > innerWidth) faults.push('scrolls sideways: ' + root.scrollWidth + ' > ' + innerWidth)
	if (window.hacked || all('script, img:not([alt][src^="data:image/svg+xml;base64,"]), iframe, object, a, form, base, [onerror], [onmouseover]').length) faults.push('text became markup')
	if (performance.getEntriesByType('resource').length) faults.push('loads something else')
	if (!root.lang || all('h1').length != 1 || all('main').length != 1) faults.push('no language, title or main part')
	let level = 0
	for (const h of all('h1, h2, h3, h4, h5')) {
		if (+h.tagName[1] > level + 1) faults.push('leaves out a level of headings: ' + h.textContent)
		level = +h.tagName[1]
	}
	all('table').forEach(t => { if (!t.caption?.textContent || !t.closest('.scroll[tabindex="0"][role=group][aria-label]')) faults.push('table without caption, or that keys cannot scroll') })
	all('.changes').forEach(s => { if (s.getAttribute('role') != 'img' || !s.getAttribute('aria-label')) faults.push('figure without a text') })
	const part = (c) => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }
	const light = (color) => { const [r, g, b] = color.match(/[\d.]+/g).map(Number); return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b) }
	const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c != 'rgba(0, 0, 0, 0)') return c } return 'rgb(255, 255, 255)' }
	const seen = new Set()
	for (const e of all('body *')) {
		if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue
		const style = getComputedStyle(e), [a, b] = [light(style.color), light(behind(e))]
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), where = e.tagName + '.' + e.getAttribute('class')
		if (ratio < 4.5 && !seen.has(where)) faults.push('contrast of ' + where + ' is ' + ratio.toFixed(1))
		seen.add(where)
	}
	all('.changes i').forEach(m => { const r = m.getBoundingClientRect(), edge = m.closest('figure').getBoundingClientRect()
		if (r.left < edge.left || r.right > edge.right || r.top < edge.top || r.bottom > edge.bottom) faults.push('mark leaves its figure: ' + m.className) })
	return faults
})()`

func TestPageInABrowser(t *testing.T) {
	ctx, b := browser.Open(t)
	r := sample(60, 4)
	r.Arms[1].Name, r.Arms[2].Name = hostile, strings.Repeat("long", 2500)
	for i := range r.Queries {
		q := &r.Queries[i]
		q.ID, q.Text = hostile, []string{hostile, strings.Repeat("x", 10_000), "كلمة " + hostile}[i%3]
		for k := range q.Arms {
			for n := range q.Arms[k].Hits {
				hit := &q.Arms[k].Hits[n]
				hit.ID, hit.Title = hit.ID+hostile, []string{hostile, strings.Repeat("y", 10_000), ""}[n%3]
			}
			for n := range q.Arms[k].Added {
				q.Arms[k].Added[n].Term, q.Arms[k].Added[n].From = hostile, strings.Repeat("z", 10_000)
			}
		}
	}
	r.LeftOut.Unknown = []string{hostile, strings.Repeat("w", 10_000)}
	page := filepath.Join(t.TempDir(), "page.html")
	check.OK(t, os.WriteFile(page, []byte(pageOf(t, r)), 0o600))
	check.Equal(t, 2, len(facesOf(ctx, t, page)))
	texts, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('h5 bdi')].map(e => e.textContent)`))
	want := clip(hostile, 300)
	check.That(t, err == nil && slices.Contains(texts, want), "no query reads %q, %v; there are %q", want, err, texts)
	s := sweepSample()
	s.notes = append(s.notes, Note{2, "judged queries", []string{hostile, strings.Repeat("w", 10_000)}})
	var swept strings.Builder
	check.OK(t, WriteSweepPage(&swept, s))
	check.OK(t, os.WriteFile(page, []byte(swept.String()), 0o600))
	check.Equal(t, 2, len(facesOf(ctx, t, page)))
	drawn, err := chromedp.Run(ctx, chromedp.Evaluate[int](`[...document.querySelectorAll('img')].filter(i => i.naturalWidth > 500).length`))
	check.That(t, err == nil && drawn == 2, "%d pictures, %v", drawn, err)
	b.Check(t)
}

// facesOf looks for faults in a page, wide and narrow, light and dark, and
// returns the backgrounds.
func facesOf(ctx context.Context, t *testing.T, page string) map[string]bool {
	t.Helper()
	backgrounds := map[string]bool{}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			check.OK(t, err)
			check.OK(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 800), chromedp.Navigate("file://"+page)))
			found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](faults))
			check.OK(t, err)
			for _, fault := range found {
				t.Errorf("%d wide, %s: %s", width, scheme, fault)
			}
			background, err := chromedp.Run(ctx, chromedp.Evaluate[string](`getComputedStyle(document.body).backgroundColor`))
			check.OK(t, err)
			backgrounds[background] = true
		}
	}
	return backgrounds
}
