package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestPlaygroundOnAnEngine asks for what the page shows, of an engine and of two
// versions in Redis.
func TestPlaygroundOnAnEngine(t *testing.T) {
	const name = "akin-e2e-playground"
	e, redis := oneEngine(t), commonRedis(t)
	makeRelated(t, e)
	versionA := pushMatrix(t, redis, name, relatedFile(t, vectorsA))
	versionB := pushMatrix(t, redis, name, relatedFile(t, vectorsB))
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": name, "indices": []string{relatedIndex}}},
		"redis":     section{"url": redis.url},
	})
	a.awaitMatrix(t, name)
	ask := func(method, path, body string, answer any) {
		t.Helper()
		if data := a.admin.must(t, method, "/_akin/playground/"+path, body); json.Unmarshal(data, answer) != nil {
			t.Fatalf("%s: %s", path, data)
		}
	}

	var setup struct {
		Indices  []struct{ Name string }
		Matrices []struct {
			Versions []struct {
				ID     string
				Active bool
			}
		}
	}
	ask(http.MethodGet, "setup", "", &setup)
	if len(setup.Indices) != 1 || setup.Indices[0].Name != relatedIndex || len(setup.Matrices) != 1 || len(setup.Matrices[0].Versions) != 2 {
		t.Fatalf("the setup: %+v", setup)
	}
	if v := setup.Matrices[0].Versions; v[0].ID != versionB || !v[0].Active || v[1].ID != versionA || v[1].Active {
		t.Errorf("versions: %+v, want %s (active), %s", v, versionB, versionA)
	}
	for version, want := range map[string]string{versionA: "automobile", versionB: "lorry", "": "lorry"} {
		var row struct{ Neighbors []struct{ Term string } }
		ask(http.MethodPost, "neighbors", `{"matrix":"`+name+`","version":"`+version+`","term":"car"}`, &row)
		if len(row.Neighbors) != 1 || row.Neighbors[0].Term != want {
			t.Errorf("neighbors in %q: %+v, want %s", version, row, want)
		}
	}
	status, data, err := a.admin.call(t.Context(), http.MethodPost, "/_akin/playground/neighbors", `{"matrix":"`+name+`","version":"none","term":"car"}`)
	if err != nil || status != http.StatusNotFound {
		t.Errorf("an unknown version: %d %s, %v", status, data, err)
	}

	type found struct {
		Status int
		Answer struct {
			Hits struct {
				Hits []struct {
					ID string `json:"_id"`
				}
			}
			Tokens []struct {
				Token string
				Start int `json:"start_offset"`
				End   int `json:"end_offset"`
			}
		}
	}
	for adjusted, want := range map[string]bool{"": true, `,"adjusted":[{"term":"lorry","factor":0}]`: false} {
		var compared struct{ Direct, Akin found }
		ask(http.MethodPost, "search", `{"index":"`+relatedIndex+`","body":`+relatedSearch("car")+adjusted+`}`, &compared)
		has := func(f found) bool {
			for _, h := range f.Answer.Hits.Hits {
				if h.ID == "lorry" {
					return true
				}
			}
			return false
		}
		if has(compared.Direct) || has(compared.Akin) != want || len(compared.Direct.Answer.Hits.Hits) == 0 {
			t.Errorf("with %q: %+v", adjusted, compared)
		}
	}
	var analysis found
	text := "🚗 a Car" // offsets are in units of UTF-16
	ask(http.MethodPost, "analysis", `{"index":"`+relatedIndex+`","field":"body","text":"`+text+`"}`, &analysis)
	tokens := analysis.Answer.Tokens
	if last := tokens[len(tokens)-1]; !strings.EqualFold(last.Token, "car") || last.Start != 5 || last.End != 8 {
		t.Errorf("the analysis: %+v", tokens)
	}
}
