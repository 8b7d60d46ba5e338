package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/browser"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/tools/suggest"
)

// searchesFile returns a file of collected searches in the catalogue, all of
// which found nothing today.
func searchesFile(t *testing.T, texts ...string) string {
	t.Helper()
	type day struct {
		Date string `json:"date"`
		None int    `json:"none"`
	}
	type search struct {
		Index  string `json:"index"`
		Fields string `json:"fields"`
		Text   string `json:"text"`
		Days   []day  `json:"days"`
	}
	var all []search
	for k, text := range texts {
		all = append(all, search{"catalogue", "title,body", text, []day{{time.Now().UTC().Format(time.DateOnly), len(texts) - k}}})
	}
	data := check.Got(json.Marshal(map[string]any{"version": 1, "searches": all}))(t)
	return write(t, "searches.json", string(data))
}

// asTyped keeps akin from finding other words by itself.
const asTyped = "expansion: {nearest_words: false, relax: none}\n"

// numberOf returns the number of a pair in a list of akin suggest.
func numberOf(t *testing.T, list, pair string) string {
	t.Helper()
	for line := range strings.Lines(list) {
		if number, rest, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.HasPrefix(rest, pair+"  (") {
			return number
		}
	}
	t.Fatalf("no pair %s in\n%s", pair, list)
	return ""
}

func allWordsOf(text string) string {
	return fmt.Sprintf(`{"query":{"multi_match":{"query":%q,"fields":["title","body"],"operator":"and"}}}`, text)
}

// The way of a pair: listed, accepted, used by searches, taken back, dismissed.
func TestAnAcceptedPairHelpsItsSearch(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]func(t *testing.T) string{
		"file": func(t *testing.T) string {
			t.Helper()
			return "matrices: [{name: demo, file: '" + demoMatrix(t) + "'}]\n"
		},
		"Redis": func(t *testing.T) string {
			t.Helper()
			redis := redisServer(t)
			mustAkin(t, "matrix", "push", "--redis", redis, "--name", "demo", "--activate", demoMatrix(t))
			return "matrices: [{name: demo}]\nredis: {url: '" + redis + "'}\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServe(t, "cluster: {urls: ['"+demoEngine(t)+"']}\n"+kept(t)+asTyped)
			file := searchesFile(t, "sopha linen", "<zzzzqqq>\x01")
			command := func(args ...string) []string {
				return append(append([]string{"suggest"}, args...), "--config", s.config)
			}
			list := mustAkin(t, command("--searches", file)...)
			contains(t, "the list", list, "sopha linen  (catalogue, title,body): 2 times nothing", "sopha -> sofa  (spelling) finds 2: Footstool with lid; Three-seater sofa in grey linen mix",
				"without sopha  (a word too many) finds", "nothing to propose")
			check.That(t, !strings.Contains(list, "\x01"), "control characters are printed: %q", list)
			number := numberOf(t, list, "sopha -> sofa")
			finds := func() int { return total(t, s.proxy+"/catalogue/_search", allWordsOf("sopha linen")) }
			check.Equal(t, 0, finds())

			contains(t, "accepting", mustAkin(t, command("accept", number, "--by", "Ann")...), number+": sopha -> sofa accepted")
			poll(t, "the search finds the sofa", func() bool { return finds() > 0 })
			list = mustAkin(t, command("--searches", file)...)
			contains(t, "the list", list, "sopha -> sofa accepted by Ann on ")
			check.Equal(t, "sopha -> sofa accepted again", strings.Replace(mustAkin(t, command("accept", number)...)[len(number)+2:], "accepted", "accepted again", 1))

			mustAkin(t, command("undo", number)...)
			poll(t, "the search finds nothing again", func() bool { return finds() == 0 })
			ends(t, exitFailure, command("undo", number), "nobody accepted or dismissed it")
			check.Equal(t, number, numberOf(t, mustAkin(t, command("--searches", file)...), "sopha -> sofa"), "numbers do not stay")

			mustAkin(t, command("dismiss", number)...)
			list = mustAkin(t, command("--searches", file)...)
			check.That(t, !strings.Contains(list, "sopha -> sofa"), "it comes back:\n%s", list)
			ends(t, exitUsage, command("accept", "9999"), "no pair has this number")
		})
	}
}

func TestPairsThatCannotBeAcceptedAreRefusedInASentence(t *testing.T) {
	t.Parallel()
	matrix := demoMatrix(t)
	s := startServe(t, "cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: demo, file: '"+matrix+"'}]\n"+asTyped)
	list := mustAkin(t, "suggest", "--config", s.config, "--searches", searchesFile(t, "sopha linen"))
	number := numberOf(t, list, "sopha -> sofa")
	check.OK(t, writeTo(overridesFile(matrix), "ban sopha sofa # not ours\n"))
	ends(t, exitFailure, []string{"suggest", "accept", number, "--config", s.config}, number+": not accepted: the file of overrides has a rule on both words, ban sopha sofa: change it there")
	check.OK(t, writeTo(overridesFile(matrix), ""))
	numbers := filepath.Join(filepath.Dir(s.config), numbersFile)
	check.OK(t, writeTo(numbers, strings.ReplaceAll(read(t, numbers), `"to":"sofa"`, `"to":"davenport"`)))
	ends(t, exitFailure, []string{"suggest", "accept", number, "--config", s.config}, `no document has "davenport" any more`)
	ends(t, exitFailure, []string{"suggest", "accept", number, "--similarity", "2", "--config", s.config}, "any more")
	ends(t, exitUsage, []string{"suggest", "accept", "x", "--config", s.config}, `"x" is no number`)
}

// People who accept at the same time, while a matrix is built, lose nothing.
func TestPairsAcceptedAtTheSameTimeAreAllKept(t *testing.T) {
	t.Parallel()
	matrix := demoMatrix(t)
	s := startServe(t, "cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: demo, file: '"+matrix+"', indices: [catalogue], fields: [title, body]}]\n"+asTyped)
	texts := []string{"sopha linen", "matrress cotton", "wardrobbe oak", "lammp desk"}
	list := mustAkin(t, "suggest", "--config", s.config, "--searches", searchesFile(t, texts...))
	pairs := []string{"sopha -> sofa", "matrress -> mattress", "wardrobbe -> wardrobe", "lammp -> lamp"}
	var all sync.WaitGroup
	for _, pair := range pairs {
		number := numberOf(t, list, pair)
		all.Go(func() {
			_, stderr, status := akin(t, "suggest", "accept", number, "--config", s.config)
			check.That(t, status == 0, "%s: %s", pair, stderr)
		})
	}
	all.Wait()
	kept := read(t, overridesFile(matrix))
	for _, pair := range pairs {
		check.That(t, strings.Contains(kept, "set "+pair+" 1 # akin {"), "%s is lost:\n%s", pair, kept)
	}
	mustAkin(t, "matrix", "build", "--config", s.config, "--dimensions", "20")
	shown := mustAkin(t, "matrix", "show", matrix, "sopha")
	contains(t, "after a build", shown, "sofa", "1.0000")
}

// What a running akin has in its memory is listed by its answer.
func TestSearchesInMemoryAreListedFromTheAdminPort(t *testing.T) {
	t.Parallel()
	s := serveDemo(t, "searches: {collect: true}\n"+asTyped)
	ends(t, exitUsage, []string{"suggest", "--config", s.config}, "in its memory alone: give --searches FILE with its answer to GET /_akin/searches?limit=10000 on the admin port (127.0.0.1:0)")
	check.Equal(t, 0, total(t, s.proxy+"/catalogue/_search", allWordsOf("sopha linen")))
	answer := ""
	poll(t, "the search is counted", func() bool {
		_, answer = get(t, s.admin+"/_akin/searches?limit=10000")
		return strings.Contains(answer, "sopha linen")
	})
	list := mustAkin(t, "suggest", "--config", s.config, "--searches", write(t, "answer.json", answer))
	contains(t, "the list", list, "1 times nothing", "sopha -> sofa  (spelling) finds 2")
}

// A version that is pushed or activated takes the place of one with pairs.
func TestVersionsInRedisKeepAcceptedPairs(t *testing.T) {
	t.Parallel()
	redis, file := redisServer(t), demoMatrix(t)
	at := []string{"--redis", redis, "--name", "demo"}
	mustAkin(t, append([]string{"matrix", "push", "--activate", file}, at...)...)
	waiting := mustAkin(t, append([]string{"matrix", "push", file}, at...)...)
	config := write(t, "akin.yml", "cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: demo}]\nredis: {url: '"+redis+"'}\n")
	list := mustAkin(t, "suggest", "--config", config, "--searches", searchesFile(t, "sopha linen"))
	mustAkin(t, "suggest", "accept", numberOf(t, list, "sopha -> sofa"), "--config", config)
	for _, replace := range [][]string{{"push", "--activate", file}, {"activate", waiting}} {
		mustAkin(t, append(append([]string{"matrix"}, replace...), at...)...)
		contains(t, replace[0], mustAkin(t, "matrix", "show", "--redis", redis, "demo@active", "sopha"), "sofa", "1.0000")
	}
	versions := len(strings.Split(mustAkin(t, append([]string{"matrix", "list"}, at...)...), "\n"))
	active := mustAkin(t, append([]string{"matrix", "push", file}, at...)...)
	mustAkin(t, append([]string{"matrix", "activate", active}, at...)...)
	check.Equal(t, versions+1, len(strings.Split(mustAkin(t, append([]string{"matrix", "list"}, at...)...), "\n")), "one that has the pairs is activated as it is")
}

func TestAnAcceptedWordThatNoDocumentHasAnyMoreIsSaid(t *testing.T) {
	t.Parallel()
	matrix := demoMatrix(t)
	with := func(body string) (config string) {
		engine := newIndex(t, "catalogue", demoMapping, []documents.Document{{ID: "1", Source: map[string]string{"title": "For the living room", "body": body}}})
		return write(t, "akin.yml", "cluster: {urls: ['"+engine+"']}\nmatrices: [{name: demo, file: '"+matrix+"'}]\n")
	}
	list := func(config string) string {
		return mustAkin(t, "suggest", "--config", config, "--searches", searchesFile(t, "sopha linen"))
	}
	config := with("a sofa of linen")
	mustAkin(t, "suggest", "accept", numberOf(t, list(config), "sopha -> sofa"), "--by", "Ann", "--config", config)
	said := list(config)
	check.That(t, strings.Contains(said, "sopha -> sofa accepted by Ann on ") && !strings.Contains(said, "any more"), "%s", said)
	without := with("a bench of linen")
	contains(t, "the list", list(without), ": no document has sofa any more\n")
	onPage := string(check.Got(json.Marshal(check.Got(suggestPage{check.Got(configs.Load(t.Context(), without))(t)}.List(t.Context(), nil))(t)))(t))
	contains(t, "the page's list", onPage, `"to":"sofa"`, `"gone":true`)
}

// A log of clicks says whether searches that an accepted pair helps are
// answered better.
func TestClicksAreCountedBeforeAndAfterAPairIsAccepted(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	count := func(log string) (before, after searchCounts, err error) {
		var p suggestPage
		p.cfg = &configs.Config{Searches: configs.Searches{Clicks: write(t, "clicks.jsonl", log)}}
		pair := suggest.Decision{Word: "sopha", To: "sofa", Similarity: 1, At: at}
		all := []brought{{acceptedPair: acceptedPair{Decision: pair}}, {acceptedPair: acceptedPair{Decision: suggest.Decision{Word: "linen", To: "flax"}}}}
		err = p.countClicks(all)
		check.Equal(t, searchCounts{}, all[1].After, "a dismissed pair brings nothing")
		return all[0].Before, all[0].After, err
	}
	before, after, err := count(`{"query": "Sopha  LINEN", "shown": ["1"], "clicked": [], "at": "2026-12-01T11:59:59Z"}
{"query": "sopha linen", "shown": ["1", "2"], "clicked": ["2"], "at": "2026-12-01T13:30:00+01:00"}
{"query": "sopha", "shown": ["1"], "at": "2026-12-02T00:00:00Z"}
{"query": "sopha", "shown": ["1"], "clicked": ["1"]}
{"query": "sophas", "shown": ["1"], "clicked": ["1"], "at": "2026-12-02T00:00:00Z"}
`)
	check.OK(t, err)
	check.Equal(t, [2]searchCounts{{Shown: 1}, {Shown: 2, Clicked: 1}}, [2]searchCounts{before, after})

	old := `{"query": "sopha", "shown": ["1"], "at": "2026-11-01T00:00:00Z"}` + "\n"
	before, _, err = count(old + strings.Repeat(" ", maxClicks-len(old)) + "\n" + old)
	check.OK(t, err)
	check.Equal(t, int64(1), before.Shown, "more than the end of a long log is read")
	_, _, err = count("{\"query\": 7}\n")
	check.That(t, err != nil && strings.Contains(err.Error(), "line 1: "), "%v", err)
	check.OK(t, suggestPage{&configs.Config{Searches: configs.Searches{Clicks: "not-there.jsonl"}}}.countClicks(make([]brought, 1)))
}

func TestSuggestionsInABrowser(t *testing.T) {
	ctx, b := browser.Open(t)
	const token = "token-of-the-page-0"
	s := startServe(t, "listen: {address: '127.0.0.1:0'}\nadmin: {address: '127.0.0.1:0', token_file: '"+write(t, "token", token)+"'}\nshutdown: {delay: 0s}\n"+
		"cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: demo, file: '"+demoMatrix(t)+"'}]\n"+
		"searches: {collect: true, file: '"+searchesFile(t, "sopha linen", "<img src=x onerror=alert(1)> zq")+"', clicks: '"+
		write(t, "clicks.jsonl", `{"query": "sopha linen", "shown": ["1"], "clicked": ["1"], "at": "2020-01-01T00:00:00Z"}`)+"'}\n"+asTyped)
	page := strings.Replace(s.admin, "//", "//ann:"+token+"@", 1) + "/suggestions"
	do(ctx, t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(page))
	finds := func() int { return total(t, s.proxy+"/catalogue/_search", allWordsOf("sopha linen")) }

	listed := inPage[[]string](ctx, t, `return texts('#searches > li > .term > .hit')`)
	check.Equal(t, []string{"sopha linen", "<img src=x onerror=alert(1)> zq"}, listed)
	const propose = `all('#searches > li')[0].querySelector('button').click(); await settled(); `
	const pair = `const li = all('#searches > li > ol > li').find(e => e.querySelector('.hit').textContent == 'sopha → sofa'); `
	proposed := inPage[string](ctx, t, propose+pair+`return li.textContent`)
	contains(t, "the proposal", proposed, "spelling, would find 2", "Three-seater sofa in grey linen mix")
	why := inPage[string](ctx, t, pair+`all('button', li).find(b => b.textContent == 'Accept').click(); await settled(); return id('error').textContent`)
	check.Equal(t, "Type your name first.", why)
	accepted := inPage[string](ctx, t, `id('by').value = 'Ann <b>'; `+pair+`all('button', li).find(b => b.textContent == 'Accept').click(); await settled()
		return [id('done').textContent, id('error').textContent, ...texts('#decided li .hit'), ...texts('#decided .by')].join('|')`)
	contains(t, "after accepting", accepted, "Accepted: sopha → sofa||sopha → sofa|exact, by Ann <b> on ", "after, 1 day: 2 a day found nothing", "before, 1 of 1 answer clicked")
	poll(t, "the search finds the sofa", func() bool { return finds() > 0 })
	check.Equal(t, []string{"<img src=x onerror=alert(1)> zq"}, inPage[[]string](ctx, t, `return texts('#searches > li > .term > .hit')`))

	judge := inPage[string](ctx, t, `return document.querySelector('#searches a').href`)
	contains(t, "the link to the playground", judge, "/playground#index=catalogue&q=%3Cimg+src", "&fields=title%2Cbody")

	undone := inPage[string](ctx, t, `id('decided').querySelector('button').click(); await settled(); return id('done').textContent + texts('#decided li').length`)
	check.Equal(t, "Taken back: sopha → sofa0", undone)
	poll(t, "the search finds nothing again", func() bool { return finds() == 0 })

	dismissed := inPage[string](ctx, t, propose+pair+`all('button', li).find(b => b.textContent == 'Dismiss').click(); await settled()
		return [id('done').textContent, id('error').textContent, ...texts('#decided li .hit'), ...texts('#decided .by')].join('|')`)
	contains(t, "after dismissing", dismissed, "Dismissed: sopha → sofa||sopha → sofa|dismissed, by Ann <b> on ")
	left := inPage[[]string](ctx, t, propose+`return texts('#searches > li > ol > li > .hit')`)
	check.That(t, len(left) > 0 && !slices.Contains(left, "sopha → sofa"), "still proposed are %q", left)

	do(ctx, t, chromedp.EmulateViewport(390, 844))
	check.That(t, inPage[bool](ctx, t, propose+`return document.documentElement.scrollWidth <= innerWidth`), "the page is wider than a phone")
	for _, url := range b.Check(t) {
		check.That(t, strings.HasPrefix(url, s.admin) || strings.HasPrefix(url, "data:") || strings.Contains(url, "@127.0.0.1"), "it asks %s", url)
	}
}

// Without a token nobody writes, on this machine as well.
func TestTheSuggestionsPageWritesOnlyWithAToken(t *testing.T) {
	t.Parallel()
	s := serveDemo(t, "searches: {collect: true, file: '"+searchesFile(t, "sopha linen")+"'}\n")
	_, list := get(t, s.admin+"/_akin/suggestions/list")
	contains(t, "the list", list, `"writable":false`, `"text":"sopha linen"`)
	for path, body := range map[string]string{
		"decide":  `{"index":"catalogue","fields":"title,body","text":"sopha linen","action":"accept","word":"sopha","to":"sofa","similarity":1,"by":"Ann"}`,
		"propose": `{"index":"catalogue","fields":"title,body","text":"what nobody searched for"}`,
	} {
		res, err := http.Post(s.admin+"/_akin/suggestions/"+path, "application/json", strings.NewReader(body))
		check.OK(t, err)
		res.Body.Close()
		check.That(t, slices.Contains([]int{http.StatusForbidden, http.StatusNotFound}, res.StatusCode), "%s: status %d", path, res.StatusCode)
	}
}

func writeTo(path, content string) error { return os.WriteFile(path, []byte(content), 0o600) }
