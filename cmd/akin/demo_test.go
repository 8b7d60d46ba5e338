package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/freeport"
	"github.com/akin-search/akin/internal/demo"
)

func TestDemoFitsTheScreenAndSpeaksInWords(t *testing.T) {
	t.Parallel()
	out := startDemo(t).String()
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
	}
}

func TestDemoPrintsWhatItsCommandsFind(t *testing.T) {
	t.Parallel()
	out := startDemo(t).String()
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

// TestDemoSaysTrulyWhyItDoesNotHelp looks for what is said of the last search.
func TestDemoSaysTrulyWhyItDoesNotHelp(t *testing.T) {
	t.Parallel()
	out := mustAkin(t, "demo", "--once")
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
