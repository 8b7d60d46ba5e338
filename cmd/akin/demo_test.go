package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/freeport"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/internal/embed"
)

// TestDemo looks at what one demo prints, and searches through it.
func TestDemo(t *testing.T) {
	t.Parallel()
	out := startDemo(t).String()
	for name, holds := range map[string]func(t *testing.T, out string){
		"fits the screen and speaks in words":    fitsTheScreen,
		"prints what its commands find":          printsWhatItsCommandsFind,
		"shows what helps searches without hits": showsWhatHelps,
		"says truly why it does not help":        saysTrulyWhyItDoesNotHelp,
		"has the search that the README shows":   readmeShowsASearch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds(t, out)
		})
	}
}

func fitsTheScreen(t *testing.T, out string) {
	t.Helper()
	if !regexp.MustCompile(`\nPlayground: http://127\.0\.0\.1:\d+/playground#index=catalogue&q=nappies\n$`).MatchString(out) {
		t.Error("the last line is not the address of the playground")
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if n := strings.Count(out, "  without akin   "); n != 6 {
		t.Errorf("%d searches shown, want 6", n)
	}
	contains(t, "the demo", out,
		"A + marks a text that answers", `"nappies" in catalogue`, "+ Diapers, monthly pack", "+ Night diapers for toddlers", "+ Rechargeable torch",
		"+ Trainers for wide feet", "+ International driving permits",
		"  0 hits, nDCG@10 0.000                  0 and 6 related, nDCG@10 0.567\n", "why it does not help: ", "over 62 judged queries")
	checkAddedWords(t, out)
}

// checkAddedWords looks at each search for a word that anybody understands among
// the first three, and for weights that descend.
func checkAddedWords(t *testing.T, out string) {
	t.Helper()
	lists := regexp.MustCompile(`(?s)added: (.*?)\n( +why|\n|$)`).FindAllStringSubmatch(out, -1)
	check.Must(t, len(lists) == 6, "lists of added words %q", lists)
	for k, want := range []string{"diapers", "vehicle", "torch", "trainers", "mower", "shipment"} {
		var words []string
		last := 1.0
		for _, m := range regexp.MustCompile(`(\w+)\s+([\d.]+)\s+\(\w+\)`).FindAllStringSubmatch(lists[k][1], -1) {
			weight := check.Got(strconv.ParseFloat(m[2], 64))(t)
			check.That(t, weight <= last, "%s of %s weighs more than the word before", m[1], lists[k][1])
			words, last = append(words, m[1]), weight
		}
		check.Must(t, len(words) == shownAdded, "the added words are %q", words)
		check.That(t, slices.Contains(words[:3], want), "%s is not among the first of %q", want, words)
		for _, far := range []string{"waist", "legs", "red", "gloves"} { // what pieces of words and topics once gave
			check.That(t, !slices.Contains(words, far), "%s is among %q", far, words)
		}
	}
}

func printsWhatItsCommandsFind(t *testing.T, out string) {
	t.Helper()
	shown := regexp.MustCompile(`"nappies" in [^≠]*?(\d+) hits, nDCG@10 [\d.]+ +\d+ and (\d+) related, nDCG@10 [\d.]+\n +with matching: same, (\d+) hits`).FindStringSubmatch(out)
	invited := regexp.MustCompile(`(\d+) hits.*\n\n  curl -s '(\S+)'`).FindAllStringSubmatch(out, -1)
	check.Must(t, shown != nil && len(invited) == 3, "hits of nappies %q, commands %q in\n%s", shown, invited, out)
	for i, command := range invited {
		hits := total(t, command[2], "")
		found := hits
		if i == 1 { // related hits are shown besides the others
			found -= 4
		}
		if strconv.Itoa(hits) != command[1] || strconv.Itoa(found) != shown[i+1] {
			t.Errorf("%s finds %d, the command promises %s, the search shown %s", command[2], hits, command[1], shown[i+1])
		}
	}
	if shown[1] != "4" || shown[2] != "49" || shown[3] != "4" {
		t.Errorf("hits of nappies are %v, docs/ and the playground's tests say 4, 49 more with akin, and 4 with matching: same", shown[1:])
	}
	explained := regexp.MustCompile(`curl -s -X POST '(\S+)'`).FindStringSubmatch(out)
	check.Must(t, explained != nil, "no command explains in\n%s", out)
	var answer map[string]any
	post(t, explained[1], "", &answer)
	contains(t, explained[1], fmt.Sprint(answer), "diaper")
}

// showsWhatHelps searches for what is proposed and accepted.
func showsWhatHelps(t *testing.T, out string) {
	t.Helper()
	_, shown, found := strings.Cut(out, "\nSearches without hits in a recorded hour")
	invited := regexp.MustCompile(`curl -s '(http://[^/]+)/catalogue/_search\?q=nappies&pretty'`).FindAllStringSubmatch(out, -1)
	check.Must(t, found && len(invited) == 2, "searches without hits %v, commands %q in\n%s", found, invited, out)
	finds := func(at int, text string) string {
		return strconv.Itoa(total(t, invited[at][1]+"/catalogue/_search", allWordsOf(text)))
	}
	for _, s := range demo.Searches() {
		_, proposed, listed := strings.Cut(shown, fmt.Sprintf("%3d times  %s\n", s.None, s.Text))
		check.That(t, listed && strings.HasPrefix(proposed, "           "), "%s is not listed, or nothing helps it", s.Text)
		check.Equal(t, "0", finds(0, s.Text), s.Text)
		for _, p := range regexp.MustCompile(`(?m)^ +`+s.Text+` -> (.+) \(.*\), would find (\d+)$`).FindAllStringSubmatch(shown, -1) {
			check.Equal(t, finds(0, p[1]), p[2], p[1])
		}
	}
	contains(t, "what helps", shown, "cellphone -> phone (built-in words), would find", "flash light -> flashlight (one word), would find", "matriss -> mattress (spelling), would find")
	accepted := regexp.MustCompile(`akin suggest accept: cellphone -> phone\. "cellphone" found (\d+) before,\nand finds (\d+) now:\n +\S`).FindStringSubmatch(shown)
	check.Must(t, accepted != nil, "no pair is accepted in\n%s", shown)
	now := finds(1, helped)
	for tries := 0; now == "0" && tries < 100; tries++ { // on a slow machine a search may go out as it came
		time.Sleep(100 * time.Millisecond)
		now = finds(1, helped)
	}
	check.Equal(t, []string{"0", now}, accepted[1:])
	check.That(t, now != "0", "the accepted pair finds nothing")
}

// TestDemoShowsTheOrderOfALanguageModel has a model for which one text says just
// what is searched for.
func TestDemoShowsTheOrderOfALanguageModel(t *testing.T) {
	t.Setenv(embed.EnvKey, "k\n")
	model, sent := modelOf(t, func(text string) []float64 {
		v := randomVector(text)
		if text == nappies || strings.HasPrefix(text, "Washable cloth nappies") {
			return randomVector("the same")
		}
		return v
	})
	out := mustAkin(t, "demo", "--once", "--embeddings", model, "--embedding-model", "tiny")
	check.Equal(t, 6, strings.Count(out, "  with akin and the language model\n"), out)
	contains(t, "the demo", out, "With the first hits ordered by the language model as well: 0.")
	first := regexp.MustCompile(`(?s)"nappies" in .*?language model\n 1  (.{37})  . (.*?)\n`).FindStringSubmatch(out)
	check.That(t, first != nil && !strings.Contains(first[1], "Washable") && first[2] == "Washable cloth nappies", "the first hits are %q in\n%s", first, out)
	for line := range strings.Lines(out) {
		check.That(t, utf8.RuneCountInString(line) <= 81, "%d columns: %s", utf8.RuneCountInString(line), line)
	}
	check.That(t, sent.Load() > 645 && sent.Load() < 1000, "the model got %d texts", sent.Load())
	ends(t, exitUsage, []string{"demo", "--once", "--embedding-model", "tiny"}, "--embedding-model needs --embeddings")
	broken := answering(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusInternalServerError) })
	ends(t, exitFailure, []string{"demo", "--once", "--embeddings", broken, "--embedding-model", "tiny"}, "--embeddings: model: ")
}

// saysTrulyWhyItDoesNotHelp looks for what is said of the last search.
func saysTrulyWhyItDoesNotHelp(t *testing.T, out string) {
	t.Helper()
	if !regexp.MustCompile(`(?s)"package never arrived" in help\n[^\n]*\n 1  \+ Tracking a consignment with severa… +My shipment arrived incomplete\n.*nDCG@10 0\.4\d\d +\d+ and \d+ related, nDCG@10 0\.3\d\d\n.*why it does not help: `).MatchString(out) {
		t.Errorf("another search, other hits, or no reason given:\n%s", out)
	}
	docs := demo.Docs("help")
	at := slices.IndexFunc(docs, func(d demo.Doc) bool { return d.Title == "My shipment arrived incomplete" })
	for _, word := range []string{"shipment", "arrived", "package"} {
		check.That(t, at >= 0 && strings.Contains(docs[at].Title+docs[at].Body, word), "the text on a shipment does not have %q", word)
	}
	check.That(t, strings.Contains(out, "added: shipment ") && !strings.Contains(out, "(never)"), "never has related words, or shipment is not the first")
}

// TestDemoHasThePortsThatAreAskedFor starts it where a container would publish
// its ports.
func TestDemoHasThePortsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	port, err := freeport.Pick(t.Context())
	check.OK(t, err)
	first, _ := strconv.Atoi(port) // the next ones are free as a rule: they are not those of outgoing connections
	contains(t, "the demo", startDemo(t, "--port", strconv.Itoa(first)).String(),
		fmt.Sprintf("Playground: http://127.0.0.1:%d/playground", first+1),
		fmt.Sprintf("curl -s 'http://127.0.0.1:%d/catalogue/_search?q=nappies&pretty'\n\nwith akin, 53 hits", first+2),
		fmt.Sprintf("curl -s 'http://127.0.0.1:%d/catalogue/_search?q=nappies&akin_profile=same'", first))
}

// TestDemoThatOthersReachAsksForAPassword listens as in a container, where the
// address with the password is printed.
func TestDemoThatOthersReachAsksForAPassword(t *testing.T) {
	t.Parallel()
	page := playgroundOf(t, startDemo(t, "--listen", "0.0.0.0").String())
	password := regexp.MustCompile(`^http://demo:\w+@127\.0\.0\.1:`)
	check.Must(t, password.MatchString(page), "the playground is %s", page)
	for address, want := range map[string]int{page: http.StatusOK, password.ReplaceAllString(page, "http://127.0.0.1:"): http.StatusUnauthorized} {
		status, _ := get(t, address)
		check.That(t, status == want, "%s answers %d, not %d", address, status, want)
	}
}

// playgroundOf returns the address of the playground in what the demo prints.
func playgroundOf(t *testing.T, printed string) string {
	t.Helper()
	_, address, found := strings.Cut(printed, "\nPlayground: ")
	check.Must(t, found, "the demo prints no playground: %s", printed)
	return strings.TrimSpace(address)
}
