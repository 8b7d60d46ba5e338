package enrich

import (
	_ "embed"
	"fmt"
	"unicode"
)

//go:embed pipeline.painless
var script string

// Pipeline returns an ingest pipeline, as JSON, that gives new documents what
// [Filling.Members] has for them. The clusters know no sentences, so that it is
// an error to ask for these. A document that has too many segments, or that the
// script fails for, is indexed without.
func (f *Filling) Pipeline() ([]byte, error) {
	if f.By == Sentences {
		return nil, fmt.Errorf("a pipeline can cut texts by %s or %s, not by %s", Paragraphs, Windows, Sentences)
	}
	var space []rune
	for _, t := range unicode.White_Space.R16 {
		for r := rune(t.Lo); r <= rune(t.Hi); r += rune(t.Stride) {
			space = append(space, r)
		}
	}
	params := object{
		"source": f.Source, "path": f.Path, "stamp": f.Stamp(), "blank": f.blankStamp(), "words": f.Words, "overlap": f.Overlap, "limit": f.Limit,
		"space": string(space), "feed": "\n", "carriage": "\r", "paragraph": "\u2029",
	}
	return encode(object{
		"description": fmt.Sprintf("Segments of %s in %s, for akin", f.Field, f.Path),
		"processors":  []object{{"script": object{"lang": "painless", "source": script, "params": params, "ignore_failure": true}}},
	})
}
