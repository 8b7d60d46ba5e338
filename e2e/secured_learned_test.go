package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The index of the tests that learn as a user who may not see all: twenty topics
// with ten documents each, and six more of the first topic that are hidden from
// userOwn and userLearner. secretWord stands in these only.
const (
	learnedIndex, learnedAlias = "akin-e2e-learned", "akin-e2e-tenant"
	secretWord                 = "zephyr"
	topicWord                  = "topicawordb"
)

func learnedDocuments() []document {
	draw := rand.New(rand.NewPCG(1, 2)) // the same documents in each run
	var docs []document
	add := func(kind string, topic int, more ...string) {
		for _, k := range draw.Perm(12)[:6] {
			more = append(more, fmt.Sprintf("topic%cword%c", 'a'+topic, 'a'+k))
		}
		docs = append(docs, document{strconv.Itoa(len(docs)), map[string]any{"body": strings.Join(more, " "), "kind": kind}})
	}
	for topic := range 20 {
		for range 10 {
			add("visible", topic)
		}
	}
	for range 6 {
		add("hidden", 0, secretWord)
	}
	return docs
}

// makeLearned makes the index, and the alias that its tenant searches.
func makeLearned(t *testing.T, e *engine) {
	t.Helper()
	e.shareIndex(t, learnedIndex, func() {
		e.remakeIndex(t, learnedIndex, `{"settings":{"number_of_shards":1,"number_of_replicas":0},
			"mappings":{"properties":{"body":{"type":"text"},"kind":{"type":"keyword"}}}}`)
		e.index(t, learnedIndex, learnedDocuments())
		e.must(t, http.MethodPut, "/"+learnedIndex+"/_alias/"+learnedAlias, "")
	})
}

// TestSecuredMatrixOfARestrictedUser builds a matrix as a user with document-level
// security, by the command of docs/security.md: it has no word of documents that
// this user may not see, where one that was built with akin's own role shows that
// such a word exists.
func TestSecuredMatrixOfARestrictedUser(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeLearned(t, e)
	ca := filepath.Join(certificates(t), "ca.crt")
	build := func(user string, more ...string) string {
		out := newPath(t, "m.akin")
		r := runAkinAs(t, user, append([]string{
			"matrix", "build", "--from-index", e.as("").url, "--ca-file", ca, "--index", learnedAlias, "--field", "body", "--out", out,
		}, more...)...)
		if r.status != 0 {
			t.Fatalf("%s: status %d\n%s", user, r.status, r.stderr)
		}
		return out
	}
	knows := func(file, word string) bool { return strings.Contains(exported(t, file), word) }
	all := build(userAkin)
	if !knows(all, secretWord) {
		t.Fatal("the matrix of all documents does not know the hidden word: the test says nothing")
	}
	page := openPage(t, "security.md", e)
	page.use("https://127.0.0.1:9200", e.as("").url)
	page.use("ca.crt", ca)
	page.use("tenant-a", learnedAlias)
	page.env = append(page.env, "AKIN_CLUSTER_USERNAME="+userLearner, "AKIN_CLUSTER_PASSWORD="+password)
	page.run(t, page.blocks("sh")[0])
	restricted := filepath.Join(page.dir, learnedAlias+".akin")
	for name, file := range map[string]string{
		"as on the page": restricted, "exact": build(userLearner, "--exact-analysis"), "words": build(userLearner, "--words"),
		"spooled": build(userLearner, "--resume", filepath.Join(newDir(t, "spool"), "s")), "at most": build(userLearner, "--max-docs", "150"),
	} {
		if knows(file, secretWord) || !knows(file, topicWord) {
			t.Errorf("%s: knows the hidden word: %v, a visible one: %v", name, knows(file, secretWord), knows(file, topicWord))
		}
	}

	find := func(c cluster, word string) []string {
		t.Helper()
		return c.as(userOwn).find(t, learnedAlias, relatedSearch(word)).ids()
	}
	serve := func(file string, expansion section) *akin {
		config := securedConfig(t, e, expansion, nil)
		config["matrices"] = []section{{"name": "main", "indices": []string{learnedAlias}, "file": file}}
		return setupSecured(t, e, config)
	}
	if n := len(find(e.cluster, secretWord)); n > 0 {
		t.Fatalf("directly the hidden word finds %d documents", n)
	}
	for _, tt := range []struct {
		name  string
		akin  *akin
		tells bool
	}{
		{"a matrix of all documents", serve(all, nil), true},
		{"the matrix of that role", serve(restricted, nil), false},
		{"matching: same", serve(all, section{"matching": "same"}), false},
	} {
		if found := find(tt.akin.cluster, secretWord); (len(found) > 0) != tt.tells {
			t.Errorf("%s: the hidden word finds %v", tt.name, found)
		}
		plain, expanded := find(e.cluster, topicWord), find(tt.akin.cluster, topicWord)
		if tt.name != "matching: same" && len(expanded) <= len(plain) {
			t.Errorf("%s: %d documents of a visible word, %d directly", tt.name, len(expanded), len(plain))
		}
		if slices.ContainsFunc(expanded, func(id string) bool { return len(id) == 3 && id >= "200" }) {
			t.Errorf("%s: hidden documents are found: %v", tt.name, expanded)
		}
	}
}
