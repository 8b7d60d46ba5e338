package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// segmentedDefinition is what docs/segments.md says.
const segmentedDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
	"body":{"type":"text"},"title":{"type":"text"},
	"segments":{"type":"nested","properties":{"text":{"type":"text"},"position":{"type":"integer"},"share":{"type":"float"},"godwin":{"type":"float"}}}}}}`

// paragraphs returns a document with the texts as its segments, whose order in
// the document is turned around.
func paragraphs(id string, texts ...string) document {
	var segments []section
	words := len(strings.Fields(strings.Join(texts, " ")))
	for i, text := range texts {
		segments = append(segments, section{
			"text": text, "position": i + 1, "share": float64(len(strings.Fields(text))) / float64(words), "godwin": godwinWeight(i+1, len(texts)),
		})
	}
	slices.Reverse(segments)
	return document{id, section{"body": strings.Join(texts, "\n\n"), "title": id, "segments": segments}}
}

// godwinWeight is the weight of the segment at a position, from 1, of n.
func godwinWeight(position, n int) float64 {
	sum := 0.0
	for i := range n {
		sum += 1 / float64(i+1)
	}
	return 1 / float64(position) / sum
}

// segmentedDocuments are one with the words of a search in one paragraph of
// many, one with each of them in another, and those that have no such segments.
func segmentedDocuments() []document {
	filler := func(n int) string {
		return strings.TrimSpace(strings.Repeat(fmt.Sprintf("filler%d stuffing%d ", n, n), 8))
	}
	docs := []document{
		paragraphs("relevant", filler(1), filler(2), filler(3), filler(4), "a car repair", filler(5), filler(6), filler(7), filler(8)),
		paragraphs("scattered", "a car "+filler(9), filler(10), filler(11), "nothing to repair "+filler(12), filler(13)),
		paragraphs("related", filler(14), filler(15), "an automobile repair", filler(16), filler(17), filler(18)),
		paragraphs("first", "repair of a boat "+filler(19), filler(20), "a boat"),
		paragraphs("last", filler(21), filler(20), "a boat, "+filler(22)),
		{"whole", section{"body": "car repair " + filler(23)}},
		{"empty", section{"body": "a car " + filler(24), "segments": []section{}}},
		{"blank", section{"body": "boat repair " + filler(25), "segments": []section{{"text": "", "position": 1}, {"position": 2}, {"text": "boat repair"}}}},
		{"negative", section{"body": "boat repair", "segments": []section{
			{"text": "boat repair", "position": 0, "share": 0}, {"text": "boat", "position": -3, "share": -1, "godwin": -1},
		}}},
	}
	for i := range 40 {
		docs = append(docs, paragraphs(fmt.Sprint("filler", i), filler(30+i)))
	}
	return docs
}

// segmentsOf are the segments of body with other settings.
func segmentsOf(settings section) []section {
	s := section{"field": "body"}
	maps.Copy(s, settings)
	return []section{s}
}

// aggregate is what docs/segments.md says of the scores of segments.
func aggregate(t *testing.T, name string, segments []hit) (score float64) {
	t.Helper()
	for _, h := range segments {
		var s struct {
			Position int
			Share    float64
			Godwin   float64
		}
		decode(t, h.Source, &s)
		switch name {
		case "max":
			score = max(score, h.Score)
		case "avg":
			score += h.Score / float64(len(segments))
		case "sum":
			score += h.Score
		case "first-heavy":
			score += h.Score / float64(max(s.Position, 1))
		case "length":
			if s.Share <= 0 {
				s.Share = 1
			}
			score += h.Score * s.Share
		case "godwin":
			if s.Godwin <= 0 {
				s.Godwin = 1
			}
			score += h.Score * s.Godwin
		}
	}
	return score
}

// TestScoresOfSegmentsAreAggregated computes by hand what each way to score
// makes of the segments' own scores, and looks for the best segment first in the
// document that it raises.
func TestScoresOfSegmentsAreAggregated(t *testing.T) {
	const index, other, flat = "akin-e2e-segmented", "akin-e2e-unsegmented", "akin-e2e-flat"
	profiles := section{"passages": section{"segments": segmentsOf(section{"inner_hits": 2})}}
	aggregates := []string{"max", "avg", "sum", "first-heavy", "length", "godwin"}
	for _, name := range aggregates {
		for _, combine := range []string{"add", "replace"} {
			profiles[name+"-"+combine] = section{"segments": segmentsOf(section{"aggregate": name, "combine": combine})}
		}
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, segmentedDefinition)
		e.index(t, index, segmentedDocuments())
		e.makeIndex(t, other, oneShard(`"body":{"type":"text"}`))
		e.index(t, other, []document{{"elsewhere", section{"body": "a car repair"}}})
		e.makeIndex(t, flat, strings.Replace(segmentedDefinition, `"type":"nested",`, "", 1))
		a := setupWide(t, e, section{
			"expansion": section{"segments": segmentsOf(nil)}, "profiles": profiles, "matrices": matrices("main", relatedFile(t, vectorsA)),
		})
		const words = "repair filler20 filler8 nothing" // without related words
		whole, segments := e.find(t, index, relatedSearch(words)).scores(), map[string][]hit{}
		for _, h := range e.find(t, index, `{"size":100,"query":{"nested":{"path":"segments","query":{"match":{"segments.text":`+quote(words)+`}},"inner_hits":{"size":100}}}}`).Hits.Hits {
			segments[h.ID] = h.InnerHits["segments"].Hits.Hits
		}
		if len(whole) < 6 || len(segments["first"]) != 2 {
			t.Fatalf("%d hits, segments %v", len(whole), segments)
		}
		for _, name := range aggregates {
			for combine, own := range map[string]float64{"add": 1, "replace": 0} {
				scores := a.find(t, index+"?akin_profile="+name+"-"+combine, relatedSearch(words)).scores()
				if len(scores) != len(whole) {
					t.Errorf("%s, %s: %d hits, want %d", name, combine, len(scores), len(whole))
				}
				for id, score := range whole {
					want := own*score + aggregate(t, name, segments[id])
					if got, ok := scores[id]; !ok || math.Abs(got-want) > 1e-5*(1+want) {
						t.Errorf("%s, %s: %s scores %v, want %v", name, combine, id, got, want)
					}
				}
			}
		}
		for _, searched := range []string{index, index + "," + other} {
			hits := a.find(t, searched+"?akin_profile=passages", `{"size":100,"query":{"match":{"body":"car repair"}}}`)
			best := map[string]string{}
			for _, h := range hits.Hits.Hits {
				for _, inner := range slices.Backward(h.InnerHits["segments"].Hits.Hits) {
					best[h.ID] = string(inner.Source)
				}
			}
			if !strings.Contains(best["relevant"], `"a car repair"`) || !strings.Contains(best["related"], `"an automobile repair"`) ||
				!hits.has("whole") || best["whole"] != "" || hits.has("elsewhere") != (searched != index) {
				t.Errorf("%s: %v with the best segments %v", searched, hits.ids(), best)
			}
			if ids := hits.ids(); slices.Index(ids, "relevant") > slices.Index(ids, "scattered") {
				t.Errorf("%s: %v", searched, ids)
			}
		}
		clauses := a.explain(t, flat, relatedSearch("car repair")).Clauses
		if last := clauses[len(clauses)-1]; last.Reason != "not_nested" || last.Field != "segments.text" {
			t.Errorf("segments that are not nested are explained as %+v", clauses)
		}
		checkNoFallback(t, a)
	})
}

// filledDefinition is of an index without what segments are stored in.
const filledDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"-1"},"mappings":{"properties":{
	"text":{"properties":{"body":{"type":"text","analyzer":"english","similarity":"boolean","fields":{"std":{"type":"text"}}}}}}}}`

// TestSegmentsAreFilled puts the mapping that a backfill without it prints, and
// fills segments of texts as people write them, and as programs do.
func TestSegmentsAreFilled(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-filled"
	docs := map[string]any{
		"prose":    "A first paragraph. It has two sentences.\n\nA second one\nin two lines.\n \n\nThe third.",
		"spaces":   " \t\u00a0one\u2003two\u0085three\u2028four\u2029five\r\n\r\nsix\rseven\r\reight\v\fnine\u3000\u200bten ",
		"scripts":  "Čeština má háčky.\n\nこれは文です。これも。\n\n😀 emoji 👩‍👩‍👧 family",
		"list":     []any{"one two three four", "", []any{"five\n\nsix"}, 7.5, true, nil},
		"empty":    "",
		"blank":    "\n \n",
		"shares":   strings.Repeat("a b c\n\nd ", 7),
		"too many": strings.Repeat("x y\n\n", 10_001),
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, filledDefinition)
		all := []document{{"without", section{"other": "x"}}}
		for id, text := range docs {
			fields := section{"text": section{"body": text}}
			if len(id)%2 == 0 {
				fields = section{"text.body": text}
			}
			all = append(all, document{id, fields})
		}
		e.index(t, index, all)
		fill := func(status int, more ...string) string {
			t.Helper()
			r := runAkin(t, slices.Concat([]string{"index", "segments", "backfill", "--path", "parts.segments"}, e.of(index, "text.body"), more)...)
			if r.status != status {
				t.Errorf("%q: exit status %d, want %d\n%s", more, r.status, status, r.stderr)
			}
			return r.stderr
		}
		stored := func() (segments map[string][]string, seqNos map[string]int) {
			segments, seqNos = map[string][]string{}, map[string]int{}
			e.refresh(t, index)
			for _, h := range e.find(t, index, `{"size":100,"seq_no_primary_term":true,"_source":["parts"]}`).Hits.Hits {
				var source struct {
					Parts struct {
						Segments []struct {
							Text     string
							Position int
							Share    float64
							Godwin   float64
						}
					}
				}
				decode(t, h.Source, &source)
				for i, s := range source.Parts.Segments {
					segments[h.ID] = append(segments[h.ID], s.Text)
					weight := godwinWeight(i+1, len(source.Parts.Segments))
					if s.Position != i+1 || s.Share <= 0 || s.Share > 1 || math.Abs(s.Godwin-weight) > 1e-6 {
						t.Errorf("%s: %+v", h.ID, s)
					}
				}
				seqNos[h.ID] = h.SeqNo
			}
			return segments, seqNos
		}
		_, mapping, found := strings.Cut(fill(1), "PUT /"+index+"/_mapping\n")
		if !found || !strings.Contains(mapping, `"analyzer":"english"`) {
			t.Fatalf("no mapping: %s", mapping)
		}
		e.must(t, http.MethodPut, "/"+index+"/_mapping", mapping)
		said := fill(1)
		for _, want := range []string{`document "too many" of index "akin-e2e-filled"`, "too many segments: 10001, and the index allows 10000", "index.mapping.nested_objects.limit", "7 documents written, 2 of them without text", "1 failed"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not in\n%s", want, said)
			}
		}
		segments, seqNos := stored()
		for id, want := range map[string][]string{
			"prose": {"A first paragraph. It has two sentences.", "A second one\nin two lines.", "The third."},
			"list":  {"one two three four", "five", "six", "7.5", "true"},
			"blank": nil, "too many": nil, "without": nil,
		} {
			if !slices.Equal(segments[id], want) {
				t.Errorf("%s: %q, want %q", id, segments[id], want)
			}
		}
		fill(1)
		if _, again := stored(); !maps.Equal(seqNos, again) {
			t.Errorf("documents are written again: %v, before %v", again, seqNos)
		}
		// By the analyzer of the text.
		hits := e.find(t, index, `{"query":{"nested":{"path":"parts.segments","query":{"match":{"parts.segments.text":"paragraphs"}}}}}`)
		if !slices.Equal(hits.ids(), []string{"prose"}) {
			t.Errorf("a nested search finds %q", hits.ids())
		}
		e.must(t, http.MethodPut, "/"+index+"/_settings", `{"index.mapping.nested_objects.limit":10001}`)
		e.must(t, http.MethodPost, "/"+index+"/_update/prose", `{"doc":{"text":{"body":"Changed. In part."}}}`)
		fill(0, "--by", "sentences")
		if segments, _ := stored(); len(segments["too many"]) != 10_001 || !slices.Equal(segments["prose"], []string{"Changed.", "In part."}) {
			t.Errorf("with a raised limit %d segments, by sentences %q", len(segments["too many"]), segments["prose"])
		}
	})
}
