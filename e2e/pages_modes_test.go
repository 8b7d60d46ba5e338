package e2e

import (
	"strings"
	"testing"
)

// TestModesPageMakesAnIndexReadyForItsModes runs the commands of docs/modes.md
// for the modes hard and softcosine on an index that is there, with their
// configurations, and has akin check look at the field before and after.
func TestModesPageMakesAnIndexReadyForItsModes(t *testing.T) {
	t.Parallel()
	const index, similarity = "akin-e2e-catalogue", `{"type": "scripted", "script.source": "return query.boost * doc.freq;"}`
	e := oneEngine(t)
	e.makeIndex(t, index, oneShard(`"title":{"type":"text","analyzer":"english"}`))
	var docs []document
	for _, d := range relatedDocuments() {
		docs = append(docs, document{d.id, section{"title": d.fields["body"]}})
	}
	e.index(t, index, docs)
	p := openPage(t, "modes.md", e)
	_, text, _ := strings.Cut(strings.ReplaceAll(p.text, "catalogue", index), "\n## Mode softcosine\n")
	softcosine, text, _ := strings.Cut(text, "\n## Mode hard, step by step\n")
	p.text, _, _ = strings.Cut(text, "\n## ")
	if !e.scripts {
		p.text = strings.ReplaceAll(p.text, similarity, `{"type": "BM25", "k1": 10000, "b": 0}`)
	}
	scripts := p.blocks("sh")
	if len(scripts) != 3 {
		t.Fatalf("%d blocks", len(scripts))
	}
	configure := func() {
		config := strings.ReplaceAll(p.blocks("yaml")[0], "file: ", "file: "+p.dir+"/")
		p.write(t, "akin.yml", "cluster:\n  urls: ["+e.url+"]\n"+config)
	}
	configure()
	p.run(t, "akin matrix build --cluster "+e.url+" --index "+index+" --field title --min-df 1 --out main.akin\n"+
		"akin index norms snapshot --cluster "+e.url+" --index "+index+" --field title --out weights.akin")
	check := func(want string) {
		t.Helper()
		if out := p.run(t, "akin check --config akin.yml --index "+index); !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	check("(no_linear_field): docs/modes.md has the mapping")
	p.run(t, strings.ReplaceAll(scripts[0], "curl ", "curl -sS --fail-with-body "))
	check("akin index norms backfill stores them")
	for _, script := range scripts[1:] {
		p.run(t, strings.ReplaceAll(script, "--top 30", "--top 30 --min-df 1"))
	}
	e.refresh(t, index)
	check("hard")
	p.text = softcosine
	configure()
	check(`do not have "akin_soft_norm.title"`)
	p.run(t, p.blocks("sh")[0])
	check("softcosine")
	// A new matrix is served without new numbers.
	p.run(t, "akin matrix build --cluster "+e.url+" --index "+index+" --field title --min-df 1 --top 2 --out main.akin")
	check(`do not have "akin_soft_norm.title"`)
}
