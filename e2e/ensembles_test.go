package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestBuildsSayWhatEnsemblesDoOnTheField learns from fields that are stemmed,
// in two languages, and from one that is not, and combines over each.
func TestBuildsSayWhatEnsemblesDoOnTheField(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "ensembles"
		e.makeIndex(t, index, `{"settings":{"number_of_replicas":0,"analysis":{
			"filter":{"light":{"type":"stemmer","language":"german"}},
			"analyzer":{"own":{"type":"custom","tokenizer":"standard","filter":["lowercase","light"]}}}},
			"mappings":{"properties":{"english":{"type":"text","analyzer":"english"},"own":{"type":"text","analyzer":"own"},"plain":{"type":"text"}}}}`)
		var docs []document
		texts := []string{"running cars", "the rental of a car", "boats and boats", "of the", "renting houses"}
		for i := range 25 {
			text := texts[i%len(texts)]
			docs = append(docs, document{strconv.Itoa(i), map[string]any{"english": text, "own": text, "plain": text}})
		}
		e.index(t, index, docs)
		dir := newDir(t, "ensembles")
		pairs := filepath.Join(dir, "pairs.akin")
		mustAkin(t, "matrix", "build", "--from-tsv", writeFile(t, "pairs.tsv", "cars\tboats\t0.5\n"), "--out", pairs)
		for field, stemmed := range map[string]bool{"english": true, "own": true, "plain": false} {
			learned := filepath.Join(dir, field+".akin")
			build := runAkin(t, "matrix", "build", "--from-index", e.url, "--index", index, "--field", field, "--out", learned)
			if said := strings.Contains(build.stderr, field+" is not stemmed"); build.status != 0 || said == stemmed {
				t.Errorf("%s: status %d\n%s", field, build.status, build.stderr)
			}
			combine := []string{"matrix", "build", "--from-matrices", learned + "," + pairs, "--out", filepath.Join(dir, "both.akin")}
			both := runAkin(t, append(combine, "--cluster", e.url, "--index", index, "--field", field)...)
			if said := strings.Contains(both.stderr, "warning: "+field+" is stemmed"); both.status != 0 || said != stemmed {
				t.Errorf("combined over %s: status %d\n%s", field, both.status, both.stderr)
			}
			if both = runAkin(t, combine...); both.status != 0 || !strings.Contains(both.stderr, "note: on stemmed fields") {
				t.Errorf("combined without a field: status %d\n%s", both.status, both.stderr)
			}
		}
	})
}
