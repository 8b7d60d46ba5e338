package e2e

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// embeddings are the language model that is mixed into matrices.
type embeddings struct {
	url, name string
	fake      bool
}

// languageModel returns the model of AKIN_E2E_EMBEDDINGS, or one that knows only
// how words are spelled, and gives the same vectors on every machine.
func languageModel(t *testing.T) embeddings {
	t.Helper()
	if url := os.Getenv("AKIN_E2E_EMBEDDINGS"); url != "" {
		return embeddings{url, "all-MiniLM-L6-v2", false}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Errorf("the model is asked for no texts: %v", err)
		}
		data := make([]map[string]any, len(asked.Input))
		for k, word := range asked.Input {
			data[k] = map[string]any{"index": k, "embedding": spelled(word)}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	return embeddings{server.URL, "spelling", true}
}

// spelled counts the groups of three letters of a word.
func spelled(word string) []float64 {
	v := make([]float64, 64)
	letters := []rune("^" + word + "$")
	for k := 3; k <= len(letters); k++ {
		h := fnv.New32a()
		_, _ = h.Write([]byte(string(letters[k-3 : k])))
		v[h.Sum32()%uint32(len(v))]++
	}
	return v
}
