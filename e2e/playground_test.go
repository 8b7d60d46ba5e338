package e2e

import (
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
	a := setup(t, e, section{"matrices": []section{{"name": name, "indices": []string{relatedIndex}}}, "redis": redis.section()})
	const page = "/_akin/playground/"
	offered := ask[struct {
		Indices  []struct{ Name string }
		Matrices []struct {
			Versions []struct {
				ID     string
				Active bool
			}
		}
	}](t, a.admin, http.MethodGet, page+"setup", "")
	if len(offered.Indices) != 1 || offered.Indices[0].Name != relatedIndex || len(offered.Matrices) != 1 || len(offered.Matrices[0].Versions) != 2 {
		t.Fatalf("the setup: %+v", offered)
	}
	if v := offered.Matrices[0].Versions; v[0].ID != versionB || !v[0].Active || v[1].ID != versionA || v[1].Active {
		t.Errorf("versions: %+v, want %s (active), %s", v, versionB, versionA)
	}
	for version, want := range map[string]string{versionA: "automobile", versionB: "lorry", "": "lorry"} {
		row := ask[struct{ Neighbors []struct{ Term string } }](t, a.admin, http.MethodPost, page+"neighbors", `{"matrix":"`+name+`","version":"`+version+`","term":"car"}`)
		if len(row.Neighbors) != 1 || row.Neighbors[0].Term != want {
			t.Errorf("neighbors in %q: %+v, want %s", version, row, want)
		}
	}
	type side struct{ Answer found }
	for adjusted, want := range map[string]bool{"": true, `,"adjusted":[{"term":"lorry","factor":0}]`: false} {
		compared := ask[struct{ Direct, Akin side }](t, a.admin, http.MethodPost, page+"search", `{"index":"`+relatedIndex+`","body":`+relatedSearch("car")+adjusted+`}`)
		if compared.Direct.Answer.has("lorry") || compared.Akin.Answer.has("lorry") != want || len(compared.Direct.Answer.ids()) == 0 {
			t.Errorf("with %q: %+v", adjusted, compared)
		}
	}
	analysis := ask[struct {
		Answer struct {
			Tokens []struct {
				Token string
				Start int `json:"start_offset"`
				End   int `json:"end_offset"`
			}
		}
	}](t, a.admin, http.MethodPost, page+"analysis", `{"index":"`+relatedIndex+`","field":"body","text":"🚗 a Car"}`) // offsets are in units of UTF-16
	tokens := analysis.Answer.Tokens
	if last := tokens[len(tokens)-1]; !strings.EqualFold(last.Token, "car") || last.Start != 5 || last.End != 8 {
		t.Errorf("the analysis: %+v", tokens)
	}
}
