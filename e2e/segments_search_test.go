package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The indices of the tests on segments: one whose documents hold theirs, one
// without the nested field, and two where it is no nested one, with and without
// the texts.
const (
	segmentedIndex   = "akin-e2e-segmented"
	unsegmentedIndex = "akin-e2e-unsegmented"
	flatIndex        = "akin-e2e-flat"
	objectIndex      = "akin-e2e-object"
)

// segmentedDefinition is what docs/segments.md says.
const segmentedDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
	"body":{"type":"text"},"title":{"type":"text"},
	"segments":{"type":"nested","properties":{"text":{"type":"text"},"position":{"type":"integer"},"share":{"type":"float"}}}}}}`

// paragraphs returns a document with the texts as its segments, whose order in
// the document is turned around.
func paragraphs(id string, texts ...string) document {
	var segments []section
	words := len(strings.Fields(strings.Join(texts, " ")))
	for i, text := range texts {
		segments = append(segments, section{
			"text": text, "position": i + 1, "share": float64(len(strings.Fields(text))) / float64(words),
		})
	}
	slices.Reverse(segments)
	return document{id, section{"body": strings.Join(texts, "\n\n"), "title": id, "segments": segments}}
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
			{"text": "boat repair", "position": 0, "share": 0}, {"text": "boat", "position": -3, "share": -1},
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

// serveSegments starts akin before e with a profile for each way to score
// segments, by its name.
func serveSegments(t *testing.T, e *engine) *akin {
	t.Helper()
	e.makeIndex(t, segmentedIndex, segmentedDefinition)
	e.index(t, segmentedIndex, segmentedDocuments())
	e.makeIndex(t, unsegmentedIndex, `{"settings":{"number_of_replicas":0,"number_of_shards":1},"mappings":{"properties":{"body":{"type":"text"}}}}`)
	e.index(t, unsegmentedIndex, []document{{"elsewhere", section{"body": "a car repair"}}})
	e.makeIndex(t, flatIndex, strings.Replace(segmentedDefinition, `"type":"nested",`, "", 1))
	e.index(t, flatIndex, segmentedDocuments())
	profiles := section{"whole": section{"segments": []section{}}}
	for _, aggregate := range []string{"max", "avg", "sum", "first-heavy", "length"} {
		for _, combine := range []string{"add", "replace"} {
			profiles[aggregate+"-"+combine] = section{"segments": segmentsOf(section{"aggregate": aggregate, "combine": combine})}
		}
	}
	profiles["passages"] = section{"segments": segmentsOf(section{"inner_hits": 2})}
	profiles["passages-related"] = section{"segments": segmentsOf(section{"inner_hits": 2}), "highlight": "related"}
	profiles["same"] = section{"matching": "same", "segments": segmentsOf(section{"combine": "replace"})}
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience, "segments": segmentsOf(nil)},
		"profiles":  profiles,
		"matrices":  []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	})
	a.awaitMatrix(t, "main")
	return a
}

// scoresOf returns the scores of the hits of a search for words in body.
func scoresOf(t *testing.T, c cluster, path, words string) (ids []string, scores map[string]float64) {
	t.Helper()
	hits, err := c.search(t.Context(), path, `{"size":100,"query":{"match":{"body":`+quote(words)+`}}}`)
	if err != nil {
		t.Fatal(err)
	}
	scores = map[string]float64{}
	for _, h := range hits.Hits.Hits {
		scores[h.ID] = h.Score
	}
	return hits.ids(), scores
}

// A scoredSegment is a segment of a hit with its own score.
type scoredSegment struct {
	Score  float64 `json:"_score"`
	Source struct {
		Text     string
		Position int
		Share    float64
	} `json:"_source"`
}

// innerHits returns the segments in the answer to a search by the ids of the hits.
func innerHits(t *testing.T, c cluster, path, body string) map[string][]scoredSegment {
	t.Helper()
	var answer struct {
		Hits struct {
			Hits []struct {
				ID    string `json:"_id"`
				Inner struct {
					Segments struct {
						Hits struct{ Hits []scoredSegment }
					}
				} `json:"inner_hits"`
			}
		}
	}
	if err := json.Unmarshal(c.must(t, http.MethodPost, path, body), &answer); err != nil {
		t.Fatal(err)
	}
	all := map[string][]scoredSegment{}
	for _, h := range answer.Hits.Hits {
		all[h.ID] = h.Inner.Segments.Hits.Hits
	}
	return all
}

// aggregate is what docs/segments.md says of the scores of segments.
func aggregate(name string, segments []scoredSegment) (score float64) {
	for _, s := range segments {
		switch name {
		case "max":
			score = max(score, s.Score)
		case "avg":
			score += s.Score / float64(len(segments))
		case "sum":
			score += s.Score
		case "first-heavy":
			score += s.Score / float64(max(s.Source.Position, 1))
		case "length":
			if s.Source.Share <= 0 {
				s.Source.Share = 1
			}
			score += s.Score * s.Source.Share
		}
	}
	return score
}

// TestScoresOfSegmentsAreAggregated computes by hand what each way to score
// makes of the segments' own scores.
func TestScoresOfSegmentsAreAggregated(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveSegments(t, e)
		const words = "repair filler20 filler8 nothing" // without related words
		path := "/" + segmentedIndex + "/_search"
		_, whole := scoresOf(t, e.cluster, path, words)
		segments := innerHits(t, e.cluster, path, `{"size":100,"query":{"nested":{"path":"segments","query":{"match":{"segments.text":`+quote(words)+`}},"inner_hits":{"size":100}}}}`)
		if len(whole) < 6 || len(segments["first"]) != 2 {
			t.Fatalf("%d hits, segments %v", len(whole), segments)
		}
		for _, name := range []string{"max", "avg", "sum", "first-heavy", "length"} {
			for combine, own := range map[string]float64{"add": 1, "replace": 0} {
				_, scores := scoresOf(t, a.cluster, path+"?akin_profile="+name+"-"+combine, words)
				if len(scores) != len(whole) {
					t.Errorf("%s, %s: %d hits, want %d", name, combine, len(scores), len(whole))
				}
				for id, score := range whole {
					want := own*score + aggregate(name, segments[id])
					if got, ok := scores[id]; !ok || math.Abs(got-want) > 1e-5*(1+want) {
						t.Errorf("%s, %s: %s scores %v, want %v", name, combine, id, got, want)
					}
				}
			}
		}
		checkNoFallback(t, []contender{{akin: a}})
	})
}

func TestBestSegmentRaisesADocument(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveSegments(t, e)
		path := "/" + segmentedIndex + "/_search"
		place := func(ids []string, id string) int {
			at := slices.Index(ids, id)
			if at < 0 {
				t.Errorf("%s is not found: %v", id, ids)
			}
			return at
		}
		direct, _ := scoresOf(t, e.cluster, path, "car repair")
		if place(direct, "relevant") < place(direct, "scattered") {
			t.Fatalf("the whole text is enough: %v", direct)
		}
		for _, scoring := range []string{"", "?akin_profile=max-replace", "?akin_profile=sum-add", "?akin_profile=avg-add", "?akin_profile=length-add"} {
			ids, _ := scoresOf(t, a.cluster, path+scoring, "car repair")
			if scoring != "?akin_profile=length-add" && place(ids, "relevant") > place(ids, "scattered") {
				t.Errorf("%s: %v", scoring, ids)
			}
			for _, id := range append(direct, "related") { // those without segments among them
				place(ids, id)
			}
		}
		// A segment further in front counts for more.
		heavy, _ := scoresOf(t, a.cluster, path+"?akin_profile=first-heavy-replace", "boat")
		if place(heavy, "first") > place(heavy, "last") {
			t.Errorf("first-heavy: %v", heavy)
		}
		ids, _ := scoresOf(t, a.cluster, path+"?akin_profile=same", "car repair")
		if slices.Sort(ids); !slices.Equal(ids, slices.Sorted(slices.Values(direct))) {
			t.Errorf("with the same matches %v, want %v", ids, direct)
		}
		checkNoFallback(t, []contender{{akin: a}})
	})
}

func TestInnerHitsShowTheBestSegment(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveSegments(t, e)
		for _, index := range []string{segmentedIndex, segmentedIndex + "," + unsegmentedIndex} {
			const body = `{"size":100,"query":{"match":{"body":"car repair"}},"highlight":{"fields":{"body":{},"segments.text":{"require_field_match":false}}}}`
			found := innerHits(t, a.cluster, "/"+index+"/_search?akin_profile=passages", body)
			for id, best := range map[string]string{"relevant": "a car repair", "related": "an automobile repair"} {
				if hits := found[id]; len(hits) == 0 || hits[0].Source.Text != best {
					t.Errorf("%s: %s: %+v, want %q first", index, id, hits, best)
				}
			}
			if hits, ok := found["whole"]; !ok || len(hits) != 0 {
				t.Errorf("%s: whole: %v, %+v", index, ok, hits)
			}
			if related := innerHits(t, a.cluster, "/"+index+"/_search?akin_profile=passages-related", body); len(related) != len(found) {
				t.Errorf("%s: %d hits where related words are marked, want %d", index, len(related), len(found))
			}
			if _, ok := found["elsewhere"]; ok != strings.Contains(index, ",") {
				t.Errorf("%s: elsewhere is found: %v", index, ok)
			}
		}
		checkNoFallback(t, []contender{{akin: a}})
	})
}

// TestFieldThatIsNotNestedHasNoSegments: the search is expanded without.
func TestFieldThatIsNotNestedHasNoSegments(t *testing.T) {
	e := oneEngine(t)
	a := serveSegments(t, e)
	const body = `{"size":100,"query":{"match":{"body":"car repair"}}}`
	e.makeIndex(t, objectIndex, `{"settings":{"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"},"segments":{"properties":{"n":{"type":"long"}}}}}}`)
	e.index(t, objectIndex, []document{{"object", section{"body": "a car repair", "segments": section{"n": 1}}}})
	for index, reason := range map[string]string{
		flatIndex: "not_nested", unsegmentedIndex: "not_text", segmentedIndex + "," + flatIndex: "mixed_indices", segmentedIndex + "," + objectIndex: "mixed_indices",
	} {
		said := a.explain(t, index, body)
		if last := said.Clauses[len(said.Clauses)-1]; last.Reason != reason || last.Field != "segments.text" || strings.Contains(string(said.Body), `"nested"`) {
			t.Errorf("%s: %+v, want %s: %s", index, said.Clauses, reason, said.Body)
		}
		ids, _ := scoresOf(t, a.cluster, "/"+index+"/_search", "car repair")
		want, _ := scoresOf(t, a.cluster, "/"+index+"/_search?akin_profile=whole", "car repair")
		if !slices.Equal(ids, want) || len(ids) == 0 {
			t.Errorf("%s: %v, want %v", index, ids, want)
		}
	}
	if n := a.metric(t, "akin_clauses_total", `reason="not_nested"`); n == 0 {
		t.Error("not counted")
	}
	config := writeFile(t, "check.yml", fmt.Sprintf("cluster: {urls: [%q]}\nexpansion: {segments: [{field: body}]}\nmatrices:\n  - {name: main, fields: [body], file: %q}\n",
		e.url, relatedFile(t, vectorsA)))
	for index, says := range map[string]string{flatIndex: "not_nested", segmentedIndex: "name that in matrices.fields, too"} {
		if r := runAkin(t, "check", "--config", config, "--index", index); !strings.Contains(r.stdout, says) {
			t.Errorf("akin check of %s: %s%s, want %s", index, r.stdout, r.stderr, says)
		}
	}
	checkNoFallback(t, []contender{{akin: a}})
}

// TestSearchForSegmentsIsCollapsedByDocument is the other way to keep segments,
// each as a document of its own, which needs no settings.
func TestSearchForSegmentsIsCollapsedByDocument(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-passages"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
			"document":{"type":"keyword"},"position":{"type":"integer"},"text":{"type":"text"}}}}`)
		var docs []document
		for _, d := range segmentedDocuments() {
			segments, _ := d.fields["segments"].([]section)
			for i, s := range segments {
				docs = append(docs, document{fmt.Sprint(d.id, i), section{"document": d.id, "position": s["position"], "text": s["text"]}})
			}
		}
		e.index(t, index, docs)
		a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
		var answer struct {
			Hits struct {
				Hits []struct {
					Fields struct{ Document []string }
					Inner  struct {
						Passages struct {
							Hits struct{ Hits []scoredSegment }
						}
					} `json:"inner_hits"`
				}
			}
		}
		found := a.must(t, http.MethodPost, "/"+index+"/_search",
			`{"query":{"match":{"text":"car repair"}},"collapse":{"field":"document","inner_hits":{"name":"passages","size":3}}}`)
		if err := json.Unmarshal(found, &answer); err != nil {
			t.Fatal(err)
		}
		best := map[string]string{}
		for _, h := range answer.Hits.Hits {
			if passages := h.Inner.Passages.Hits.Hits; len(passages) > 0 && len(h.Fields.Document) == 1 {
				best[h.Fields.Document[0]] = passages[0].Source.Text
			}
		}
		if best["relevant"] != "a car repair" || best["related"] != "an automobile repair" || len(best) != len(answer.Hits.Hits) {
			t.Errorf("best passages %v in %s", best, found)
		}
		checkNoFallback(t, []contender{{akin: a}})
	})
}
