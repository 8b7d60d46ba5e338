package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMatricesAreLearnedFromSegments learns from nested segments what it learns
// from an index that has each of them as a document, and something else where the
// same texts are a plain array.
func TestMatricesAreLearnedFromSegments(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		const long, flat, single = "akin-e2e-learn-long", "akin-e2e-learn-flat", "akin-e2e-learn-single"
		const nested = `{"mappings":{"properties":{"body":{"type":"text"},"segments":{"type":"nested","properties":{"text":{"type":"text"}}}}}}`
		e.makeIndex(t, long, nested)
		for _, index := range []string{flat, single} {
			e.makeIndex(t, index, strings.Replace(nested, `"type":"nested",`, "", 1))
		}
		var wholes, parts []document
		for i, d := range formsCorpus() { // six texts in turn, so that five together differ
			segment := section{"text": d.fields["body"]}
			parts = append(parts, document{d.id, section{"segments": segment}})
			if i%5 == 0 {
				wholes = append(wholes, document{d.id, section{"body": "a car or a baby", "segments": []section{}}})
			}
			last := wholes[len(wholes)-1].fields
			last["segments"] = append(last["segments"].([]section), segment)
		}
		e.index(t, long, wholes)
		e.index(t, flat, wholes)
		e.index(t, single, parts)
		dir := newDir(t, "learned")
		learn := func(index, fields string, args ...string) string {
			file := filepath.Join(dir, index+strconv.Itoa(len(args))+".akin")
			mustAkin(t, append([]string{
				"matrix", "build", "--from-index", e.url, "--index", index, "--field", fields, "--out", file,
			}, args...)...)
			return mustAkin(t, "matrix", "export", "--out", "-", file)
		}
		want := learn(single, "segments.text")
		if learn(long, "segments.text") != want {
			t.Error("nested segments are not read as documents")
		}
		if learn(long, "segments.text", "--exact-analysis") != want {
			t.Error("nested segments are not read as documents, analyzed whole")
		}
		if learn(flat, "segments.text") == want {
			t.Error("the elements of an array are read as documents")
		}
	})
}
