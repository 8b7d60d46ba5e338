package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/browser"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/tools/words"
)

func do(ctx context.Context, t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	check.OK(t, chromedp.Do(ctx, actions...))
}

// The page is ready when it is not busy.
const helpers = `
	const until = async (f) => { for (let n = 0; n < 800; n++) { if (f()) return; await new Promise(r => setTimeout(r, 25)) } throw new Error('never: ' + f + ', and the page says: ' + document.getElementById('error').textContent) }
	const ready = () => until(() => document.querySelector('main').getAttribute('aria-busy') == 'false')
	const id = (name) => document.getElementById(name)
	const all = (what, within = document) => [...within.querySelectorAll(what)]
	const texts = (what) => all(what).map(e => e.textContent)
	const settled = async () => { await new Promise(r => setTimeout(r, 200)); await ready() }
	await ready()
`

// inPage runs JavaScript in the page, when it is ready, and returns its result.
func inPage[T any](ctx context.Context, t *testing.T, script string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T]("(async () => {"+helpers+script+"})()", chromedp.EvalAwaitPromise))
	check.Must(t, err == nil, "%v in\n%s", err, script)
	return value
}

// startDemo runs akin demo and returns what it prints.
func startDemo(t *testing.T, args ...string) *lockedBuffer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out := &lockedBuffer{}
	root := newRoot()
	root.SetArgs(append([]string{"demo"}, args...))
	root.SetOut(out)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("demo: %v", err)
		}
	})
	poll(t, "the demo invites", func() bool { return strings.Contains(out.String(), "Playground: ") })
	return out
}

// odd are terms that the lines of an overrides file have to quote.
var odd = []string{"station wagon", `"quoted"`, "#hash", "->", "two\nlines", "tab\t", "\u2028", "\x7f", "ünïcode", "🚗", "a\\b", `</script><img src=x onerror=hacked=1>`}

// matricesBefore stands before the admin port and adds a matrix with two
// versions, whose rows have odd terms.
func matricesBefore(t *testing.T, admin string) string {
	t.Helper()
	target, err := url.Parse(admin)
	check.OK(t, err)
	type neighbor struct {
		Term       string  `json:"term"`
		Similarity float64 `json:"similarity"`
		DocFreq    int     `json:"doc_freq"`
	}
	mux := http.NewServeMux()
	forward := func(w http.ResponseWriter, r *http.Request, body []byte) {
		r.Body = io.NopCloser(bytes.NewReader(body)) // the server closes its own while the answer is written, and the transport may still read it
		httputil.NewSingleHostReverseProxy(target).ServeHTTP(w, r)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		forward(w, r, body)
	})
	mux.HandleFunc("GET /_akin/playground/setup", func(w http.ResponseWriter, r *http.Request) {
		resp, err := http.Get(admin + r.URL.Path)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		var setup map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&setup); err != nil {
			t.Error(err)
		}
		setup["matrices"] = append(setup["matrices"].([]any), map[string]any{"name": "two", "versions": []map[string]any{{"id": "new"}, {"id": "old", "active": true}}})
		json.NewEncoder(w).Encode(setup)
	})
	mux.HandleFunc("POST /_akin/playground/neighbors", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Matrix, Version, Term string }
		if json.Unmarshal(body, &asked) != nil || asked.Matrix != "two" {
			forward(w, r, body)
			return
		}
		row := []neighbor{{"same", 0.9, 1}, {"automobile", 0.8, 10}, {"added", 0.3, 3}}
		if asked.Version == "old" {
			row = []neighbor{{"same", 0.9, 1}, {"automobile", 0.5, 10}, {"removed", 0.1, 3}}
		}
		if asked.Term == "odd" {
			row = nil
			for _, term := range odd {
				row = append(row, neighbor{term, 0.5, 1})
			}
		}
		json.NewEncoder(w).Encode(map[string]any{"version": asked.Version, "doc_freq": 7, "neighbors": row})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestPlaygroundInABrowser(t *testing.T) {
	ctx, b := browser.Open(t)
	printed := startDemo(t).String()
	admin, hash, _ := strings.Cut(playgroundOf(t, printed), "/playground")
	do(ctx, t, chromedp.Navigate(matricesBefore(t, admin)+"/playground"+hash))

	// The link has the words, and has searched them. It is the first search that
	// is shown as recent: the demo's own are not there.
	linked := inPage[string](ctx, t, `await ready()
		return [document.activeElement.id, id('query').value, id('summary').textContent, ...texts('#recent bdi')].join('|')`)
	builtin := check.Got(words.Builtin())(t)
	if linked != fmt.Sprintf("query|nappies|4 hits without akin, 53 with it. 7 terms added, by the documents and %v. "+
		"The search is widened. Left out because they are in too many documents (expansion.max_doc_share): day.|“nappies”", builtin) {
		t.Fatalf("focus, words, hits and recent searches are %q", linked)
	}

	judgments := testJudgments(ctx, t)
	engine := regexp.MustCompile(`curl -s '(http://[^/]+)/`).FindStringSubmatch(printed)[1]
	ends(t, 0, []string{
		"eval", "--cluster", engine, "--index", "catalogue", "--judgments", write(t, "judgments.csv", judgments),
		"--template", write(t, "search.json", `{"query":{"match":{"title":"{{query}}"}}}`), "--arm", "direct",
	}, "0.8597")

	// The keyboard is enough: Enter searches.
	inPage[bool](ctx, t, `return !(shown = null)`)
	do(ctx, t, chromedp.KeyEvent("\r"))
	got := inPage[map[string]any](ctx, t, `await until(() => shown); await ready()
		return { summary: id('summary').textContent, direct: all('#direct li').length, akin: all('#akin li').length, moves: texts('.move'),
			by: texts('#akin .by'), own: texts('#direct mark.own'), added: texts('#akin mark:not(.own)'), chips: texts('#chips li label'), counts: texts('#chips .counts'), figures: texts('#chips .figures'), left: texts('#direct mark:not(.own)').length,
			legend: id('legend').textContent, ins: texts('#sent ins').join(''), rest: [...id('sent').childNodes].filter(n => n.nodeType == 3).map(n => n.data).join('') }`)
	for name, want := range map[string]string{
		"summary": "4 hits without akin, 53 with it. ", "direct": "4", "akin": "10", "moves": "+ new", "by": "found by diapers", "own": "nappies", "added": "diaper", "chips": "diapers",
		"figures": "index term diaper · similarity 0.53 · fit to the text 0.", "counts": " of nappies", "left": "0", "legend": "added for nappies", "ins": `"diaper"`, "rest": `"query": "nappies"`,
	} {
		if !strings.Contains(strings.ToLower(fmt.Sprint(got[name])), want) {
			t.Errorf("%s: %v, without %q", name, got[name], want)
		}
	}
	if strings.Contains(fmt.Sprint(got["ins"]), `"query": "nappies"`) || strings.Contains(fmt.Sprint(got["rest"]), "diaper") {
		t.Errorf("what is added is marked badly: %v", got["ins"])
	}

	// A hit without names has no list, nor has the search without akin; newer
	// engines may give names with scores.
	by := inPage[string](ctx, t, `return all('#direct .by').length + '|' + [{}, { matched_queries: ['mine', 'akin:title:other'] },
		{ matched_queries: { 'akin:body:diaper': 1.5, mine: 1 } }].map(hit => hitOf({ _index: 'a', _id: '1', ...hit }).querySelector('.by')?.textContent)`)
	check.That(t, by == "0|,,found by diapers", "hits are found by %q", by)

	// Terms are switched off and weighed otherwise, and the search runs again.
	changed := inPage[map[string]any](ctx, t, `
		const chip = (word) => all('#chips li').find(li => li.querySelector('label').textContent == word)
		const boost = (word) => [...terms.values()].find(t => t.word == word).boost
		const before = boost('soft'), out = {}
		chip('diapers').querySelector('input[type=checkbox]').click()
		await settled()
		out.without = id('sent').textContent.includes('"diaper"') || boost('diapers') != 0
		out.off = chip('diapers').querySelector('.counts').textContent + ': ' + id('summary').textContent
		const slider = chip('soft').querySelector('input[type=range]')
		slider.value = '2'; slider.dispatchEvent(new Event('change'))
		await settled()
		out.ratio = boost('soft') / before
		id('reset').click()
		await settled()
		out.back = id('sent').textContent.includes('"diaper"') && Math.abs(boost('soft') - before) < 1e-6
		return out`)
	contains(t, "the page", fmt.Sprint(changed["off"]), "off: ", " 6 terms added, ", ", 1 switched off.")
	if ratio, _ := changed["ratio"].(float64); changed["without"] != false || changed["back"] != true || ratio < 1.98 || ratio > 2.02 {
		t.Errorf("after switching off, doubling and going back: %v", changed)
	}

	// The command that is copied finds what the page shows.
	command := inPage[string](ctx, t, `let copied = ''
		Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (s) => { copied = s } } })
		id('curl').click()
		await until(() => id('copied').textContent == 'Copied.')
		return copied`)
	if _, err := exec.LookPath("curl"); err == nil {
		answer, err := exec.Command("sh", "-c", command).Output()
		check.That(t, err == nil && strings.Contains(string(answer), `"value":53`), "%s\n%v %s", command, err, answer)
	}

	testNeighborsAndRules(ctx, t)
	testAddress(ctx, t)

	// A recent search is loaded and searched again.
	recent := inPage[map[string]any](ctx, t, `
		id('query').value = 'couch'
		document.querySelector('#search button').click()
		await settled()
		const button = all('#recent button').find(b => b.textContent.startsWith('Try “nappies” in catalogue of '))
		button.click()
		await until(() => id('body').value.includes('nappies')); await settled()
		return { summary: id('summary').textContent, focus: document.activeElement.id }`)
	check.That(t, strings.HasPrefix(fmt.Sprint(recent["summary"]), "4 hits") && recent["focus"] == "hits", "a recent search: %v", recent)

	// A search ends a change of the one before it that still waits.
	next := inPage[map[string]any](ctx, t, `
		const fetchNow = window.fetch;
		window.fetch = (...args) => new Promise(r => setTimeout(r, 400)).then(() => fetchNow(...args))
		all('#chips input[type=checkbox]')[0].click()
		id('body').value = ''
		id('query').value = 'couch'
		document.querySelector('#search button').click()
		await settled()
		window.fetch = fetchNow
		return { off: all('#chips .off').length, chips: texts('#chips .counts').join() }`)
	check.That(t, next["off"] == 0.0 && strings.Contains(fmt.Sprint(next["chips"]), "of couch"), "after a search: %v", next)

	// What the cluster refuses is said.
	refused := inPage[string](ctx, t, `
		id('body').value = '{"query": {"no_such_query": {}}}'
		document.querySelector('#search button').click()
		await settled()
		const first = id('error').textContent
		id('body').value = '{'
		document.querySelector('#search button').click()
		await settled()
		return first + ' / ' + id('error').textContent`)
	if !strings.Contains(refused, "The cluster answers with status 400") || !strings.Contains(refused, "The body is no JSON") {
		t.Errorf("errors are shown as %q", refused)
	}

	proxy := regexp.MustCompile(`curl -s '(http://[^/]+)/\S+akin_profile=`).FindStringSubmatch(printed)[1]
	testHostileHits(ctx, t, proxy)
	urls := b.Check(t)
	check.That(t, len(urls) >= 20, "only %d requests are seen", len(urls))
	for _, u := range urls {
		if strings.Contains(u, "nappi") && !strings.Contains(u, "#") || strings.Contains(u, "couch") || strings.Contains(u, "secret") {
			t.Errorf("a URL has the text of a search: %s", u)
		}
	}
}

func testNeighborsAndRules(ctx context.Context, t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	check.OK(t, check.ErrOf(chromedp.CallBrowser(ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder})))
	got := inPage[map[string]any](ctx, t, `
		const out = {}
		all('#chips button').find(e => e.textContent == 'Neighbors' && e.getAttribute('aria-label') == 'Neighbors of diapers').click()
		await until(() => id('found').textContent)
		out.found = id('found').textContent
		const bars = all('#bars meter').map(m => m.value)
		out.sorted = bars.length > 5 && bars.every((v, k) => !k || v <= bars[k - 1])
		setup.matrices[0].versions[0].id = 'replaced'; id('matrix').dispatchEvent(new Event('change'))
		id('term').value = 'Nappies' // which is no index term
		id('found').textContent = ''
		document.querySelector('#neighbors button').click()
		await until(() => id('found').textContent)
		out.analyzed = id('found').textContent
		out.renewed = !id('version').selectedOptions[0].textContent.includes('replaced')
		id('matrix').value = 'two'; id('matrix').dispatchEvent(new Event('change'))
		out.served = id('version').selectedOptions[0].textContent // that is shown first
		id('version').value = 'new'; id('other').value = 'old'; id('term').value = 'car'
		id('found').textContent = ''
		document.querySelector('#neighbors button').click()
		await until(() => id('found').textContent)
		out.difference = texts('#bars li').join('|')
		id('other').value = ''; id('term').value = 'odd'
		id('found').textContent = ''
		document.querySelector('#neighbors button').click()
		await until(() => id('found').textContent)
		all('#bars button').filter(e => e.textContent == 'ban').forEach(e => e.click())
		const pin = all('#chips button').filter(e => e.textContent == 'pin')
		pin[0].click(); pin[1].click(); pin[1].click() // a second time removes it
		out.pressed = [pin[0], pin[1]].map(e => e.getAttribute('aria-pressed')).join()
		out.shown = id('rules').value
		id('download').click()
		return out`)
	for name, want := range map[string]string{
		"found": "of diapers, which is in ", "analyzed": "neighbors of nappies,", "sorted": "true", "served": "old (served)", "renewed": "true",
		"difference": "automobile0.5 → 0.8banpin|added+ new: 0.3banpin|removed− gone: 0.1banpin", "pressed": "true,false",
	} {
		if !strings.Contains(fmt.Sprint(got[name]), want) {
			t.Errorf("%s: %v, without %q", name, got[name], want)
		}
	}
	var saved []byte
	poll(t, "the download", func() bool {
		saved, _ = os.ReadFile(filepath.Join(folder, "overrides.txt"))
		return len(saved) > 0
	})
	if string(saved) != got["shown"] {
		t.Errorf("saved %q, shown %q", saved, got["shown"])
	}
	rules, err := combine.ParseOverrides(bytes.NewReader(saved))
	check.Must(t, err == nil, "%v\n%s", err, saved)
	var banned []string
	pinned := 0
	for r := range rules.All() {
		if r.Action == combine.ActionBan && r.Term == "odd" {
			banned = append(banned, r.Neighbor)
		} else if r.Action == combine.ActionPin {
			pinned++
		}
	}
	check.That(t, slices.Equal(banned, odd) && pinned == 1, "%d pinned, banned %q, want %q", pinned, banned, odd)
}

// testAddress follows the address, which follows the searches.
func testAddress(ctx context.Context, t *testing.T) {
	t.Helper()
	got := inPage[map[string]any](ctx, t, `const out = {}
		id('query').value = 'couch'
		document.querySelector('#search button').click()
		await settled()
		out.searched = location.hash
		id('matching').value = 'same'; id('matching').dispatchEvent(new Event('change'))
		await settled()
		out.matching = location.hash + ' ' + id('summary').textContent
		let copied = ''
		navigator.clipboard.writeText = async (s) => { copied = s } // of the stand-in above
		id('link').click()
		await until(() => id('done').textContent)
		out.copied = String(copied == location.origin + '/playground' + location.hash)
		location.href = '#overrides'
		await new Promise(r => setTimeout(r, 100))
		out.inside = location.hash
		location.href = '#index=catalogue&q=zzzz&effort=low&profile=none'
		await until(() => id('query').value == 'zzzz'); await settled()
		out.pasted = ['effort', 'matching', 'profile'].map(name => id(name).value).join() + ' ' + id('summary').textContent
		id('query').value = ' '
		document.querySelector('#search button').click()
		await settled()
		out.nothing = id('error').textContent
		location.href = '#index=catalogue&q=nappies'
		await until(() => id('query').value == 'nappies'); await settled()
		return out`)
	for name, want := range map[string]string{
		"searched": "#index=catalogue&q=couch", "matching": "#index=catalogue&q=couch&matching=same 7 hits without akin, 7 with it. ", "copied": "true",
		"inside": "#index=catalogue&q=couch&matching=same", "pasted": "low,, 0 hits without akin, 0 with it. akin added nothing: the matrix has no related words that are in the index. It does not know zzzz.",
		"nothing": "Type what to search for.",
	} {
		if text := fmt.Sprint(got[name]); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", name, text, want)
		}
	}
	banned := inPage[string](ctx, t, `
		const chip = () => all('#chips li').find(li => li.querySelector('label').textContent == 'diapers')
		const ban = () => [...chip().querySelectorAll('button')].find(b => b.textContent == 'ban').click()
		ban()
		await settled()
		const out = [chip().className, id('sent').textContent.includes('"diaper"')]
		document.querySelector('#search button').click() // a banned term is off in the next search, too
		await settled()
		out.push(chip().className, id('sent').textContent.includes('"diaper"'))
		ban()
		await settled()
		out.push(chip().className, id('sent').textContent.includes('"diaper"'))
		return out.join()`)
	check.Equal(t, "off,false,off,false,,true", banned)
}

// testJudgments judges hits, and returns the file that the page saves.
func testJudgments(ctx context.Context, t *testing.T) string {
	t.Helper()
	const button = `const button = (side, k, word) => all('.judge button', all('#' + side + ' li')[k]).find(b => b.textContent === word)
		const pressed = () => all('.judge button[aria-pressed=true]').map(b => b.textContent).join(' '); `
	if got := inPage[string](ctx, t, button+`
		button('direct', 0, 'good').click()
		button('direct', 1, 'so-so').click()
		button('direct', 2, 'bad').click()
		button('direct', 3, 'bad').click()
		button('direct', 3, 'bad').click() // taken back
		return [pressed(), id('judged').textContent, texts('#queries tbody tr').join(), id('direct-ndcg').textContent].join('|')`); got != "good so-so bad so-so good bad|3 judgments of 1 query in catalogue.|nappies31.0000.620|nDCG@10 1.000" {
		t.Errorf("judged in both lists: %s", got)
	}
	do(ctx, t, chromedp.Reload())
	got := inPage[[]string](ctx, t, button+`await ready()
		const before = pressed()
		id('query').value = 'couch'
		document.querySelector('#search button').click()
		await settled()
		id('effort').value = 'low'; id('effort').dispatchEvent(new Event('change'))
		await settled()
		const others = texts('#queries tbody tr').join()
		id('measure').click()
		await ready()
		const measured = texts('#queries tbody tr').join()
		id('effort').value = ''
		document.querySelector('#queries button').click()
		await settled()
		id('index').value = 'help'
		id('index').dispatchEvent(new Event('input'))
		const other = id('judged').textContent
		id('index').value = 'catalogue'
		id('index').dispatchEvent(new Event('input'))
		return [before, other, judgmentsFile('catalogue'), String(id('saveJudgments').hidden), others, measured.slice(0, 13)]`)
	check.That(t, got[4] == "nappies3––" && got[5] == "nappies31.000", "with other settings %q, measured %q", got[4], got[5])
	check.That(t, got[0] == "good so-so bad so-so good bad" && got[1] == "None yet in help." && got[3] == "false", "after a reload %q", got)
	if got := inPage[string](ctx, t, button+`
		id('forget').click()
		id('body').value = '{"query":{"match_all":{}}}'
		document.querySelector('#search button').click()
		await settled()
		const own = all('.judge').length
		id('body').value = ''
		document.querySelector('#search button').click()
		await settled()
		return [pressed(), id('judged').textContent, own, localStorage.getItem(storeName)].join('|')`); got != "|None yet in catalogue.|0|[]" {
		t.Errorf("forgotten, and with a body of one's own: %s", got)
	}
	return got[2]
}

// hostile is a text that is no text to a page that does not take care.
const hostile = `</style></title></bdi><script>hacked=1</script><img src=x onerror=hacked=1>" onmouseover="hacked=1' &lt;b&gt; {{.}} ` + "\u202e\u2067\x01\x7f\ufffe"

// testHostileHits shows documents of hostile and of long texts, and looks at the
// page on a laptop and on a phone, light and dark.
func testHostileHits(ctx context.Context, t *testing.T, proxy string) {
	t.Helper()
	titles := []string{hostile + " nappies", strings.Repeat("nappies", 500), "nappies", "紙おむつ nappies 新生儿尿布", "حفاضات nappies للأطفال", strings.Repeat("𠮷", 400) + " nappies"}
	for k, title := range append(titles, slices.Repeat([]string{"nappies" + strings.Repeat(" and other things", 40)}, 20)...) {
		action, _ := json.Marshal(map[string]any{"index": map[string]any{"_id": fmt.Sprint(k, "<b>", hostile[:20])}})
		doc, _ := json.Marshal(map[string]any{"title": title, "body": "nappies " + hostile + strings.Repeat("y", 100_000)})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, proxy+"/help/_bulk?refresh=true", strings.NewReader(fmt.Sprintf("%s\n%s\n", action, doc)))
		check.OK(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		check.Must(t, err == nil && resp.StatusCode < 300, "%v %v", resp, err)
		resp.Body.Close()
	}
	title := inPage[string](ctx, t, `
		id('body').value = ''
		id('index').value = 'help'
		id('query').value = 'nappies'
		document.querySelector('#search button').click()
		await settled()
		return texts('.hit').find(t => t.includes('onerror')) || ''`)
	check.That(t, title == hostile+" nappies", "the hostile title is shown as %q", title)
	if got := inPage[string](ctx, t, `
		id('body').value = '{"size":20,"query":{"match":{"title":"nappies"}}}'
		document.querySelector('#search button').click()
		await settled()
		const text = all('#akin .hit').find(e => e.textContent.includes('حفاضات'))
		return [all('#direct li').length, all('#akin li').length, text ? getComputedStyle(text).direction : 'none', texts('.hit').some(t => /[\uD800-\uDBFF](?![\uDC00-\uDFFF])/.test(t))].join(' ')`); got != "20 20 rtl false" {
		t.Errorf("20 long hits, one from right to left: %s", got)
	}
	axe := axeSource(ctx, t)
	backgrounds := map[string]bool{}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			check.OK(t, check.ErrOf(chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})))
			do(ctx, t, chromedp.EmulateViewport(width, 800))
			for _, fault := range inPage[[]string](ctx, t, faults) {
				t.Errorf("%d wide, %s: %s", width, scheme, fault)
			}
			backgrounds[inPage[string](ctx, t, `return getComputedStyle(document.body).backgroundColor`)] = true
			if axe == "" {
				continue
			}
			check.OK(t, check.ErrOf(chromedp.Run(ctx, chromedp.Evaluate[bool](axe+"\n;true"))))
			for _, fault := range inPage[[]string](ctx, t, `const found = await axe.run(document)
				return found.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(' '))`) {
				t.Errorf("%d wide, %s: axe: %s", width, scheme, fault)
			}
		}
	}
	check.That(t, len(backgrounds) == 2, "light and dark have the backgrounds %v", backgrounds)
}

// faults lists what is wrong with the page as the browser has laid it out.
const faults = `
	const faults = []
	all('details').forEach(d => d.open = true)
	if (document.documentElement.scrollWidth > innerWidth) faults.push('scrolls sideways: ' + document.documentElement.scrollWidth + ' > ' + innerWidth)
	if (window.hacked || all('body script, img, iframe, object, base, [onerror], [onmouseover]').length) faults.push('text became markup')
	const part = (c) => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }
	const light = (color) => { const [r, g, b] = color.match(/[\d.]+/g).map(Number); return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b) }
	const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c != 'rgba(0, 0, 0, 0)') return c } return 'rgb(255, 255, 255)' }
	const seen = new Set()
	for (const e of all('body *')) {
		if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) || e.closest('.skip, option, datalist')) continue
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))], where = e.tagName + '.' + e.className
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
		if (ratio < 4.5 && !seen.has(where)) faults.push('contrast of ' + where + ' is ' + ratio.toFixed(1))
		seen.add(where)
	}
	return faults`

// axeSource returns the source of axe-core, which npm installs in the user's
// cache folder, or "" where there is no npm.
func axeSource(ctx context.Context, t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	cache, err2 := os.UserCacheDir()
	if err != nil || err2 != nil {
		if os.Getenv("AKIN_TEST") == "all" {
			t.Fatal("needs npm in PATH, for the rules of accessibility")
		}
		t.Log("not checked: the rules of axe-core, for which npm is needed")
		return ""
	}
	pins := filepath.Join("testdata", "axe")
	data, err := os.ReadFile(filepath.Join(pins, "package-lock.json"))
	check.OK(t, err)
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	check.OK(t, json.Unmarshal(data, &lock))
	dir := filepath.Join(cache, "akin-axe-"+lock.Packages["node_modules/axe-core"].Version)
	source := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(source); err != nil {
		if err := os.CopyFS(dir, os.DirFS(pins)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, npm, "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			check.Must(t, os.Getenv("AKIN_TEST") != "all", "npm ci: %v\n%s", err, out)
			t.Logf("not checked: the rules of axe-core: npm ci: %v\n%s", err, out)
			return ""
		}
	}
	if data, err = os.ReadFile(source); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A browser that knows the token as a password gets the page and its answers.
func TestPlaygroundBehindAToken(t *testing.T) {
	ctx, b := browser.Open(t)
	t.Setenv(configs.EnvAdminToken, "0123456789abcdef")
	s := startServe(t, `
listen: {address: "127.0.0.1:0"}
admin: {address: "0.0.0.0:0"}
shutdown: {delay: 0s}
cluster: {urls: ["`+demoEngine(t)+`"]}
expansion: {budget: 5s}
matrices: [{name: demo, file: "`+demoMatrix(t)+`"}]
`)
	port := s.admin[strings.LastIndexByte(s.admin, ':')+1:]
	if status, _ := get(t, "http://127.0.0.1:"+port+"/playground"); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	do(ctx, t, chromedp.Navigate("http://anybody:0123456789abcdef@127.0.0.1:"+port+"/playground#index=catalogue&q=nappies"))
	summary := inPage[string](ctx, t, `document.querySelector('#search button').click(); await settled(); return id('summary').textContent`)
	check.That(t, strings.HasPrefix(summary, "4 hits without akin, 52 with it. 7 terms added"), "the page shows %q", summary)
	b.Check(t)
	if log := s.log.String(); strings.Contains(log, "without a token") || strings.Contains(log, "0123456789abcdef") {
		t.Errorf("the log: %s", log)
	}
}
