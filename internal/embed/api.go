package embed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

type answer struct {
	// Data is from OpenAI's /v1/embeddings; Index gives the order.
	Data []struct {
		Index     int     `json:"index"`
		Embedding numbers `json:"embedding"`
	} `json:"data"`
	// TextEmbedding is from Elasticsearch's _inference.
	TextEmbedding []struct {
		Embedding numbers `json:"embedding"`
	} `json:"text_embedding"`
	// InferenceResults are from Elasticsearch's _infer, with Predicted, and from
	// OpenSearch's _predict, with Output.
	InferenceResults []struct {
		Predicted numbers `json:"predicted_value"`
		Output    []struct {
			Data numbers `json:"data"`
		} `json:"output"`
	} `json:"inference_results"`
	// Error is the error of a model that answers with 200, for example while it is
	// loading.
	Error jsontext.Value `json:"error"`
	// Embeddings are from Ollama's own /api/embed, which is not supported.
	Embeddings jsontext.Value `json:"embeddings"`
}

var (
	errNoNumber = errors.New("the model answers with a vector that contains null")
	errZeros    = errors.New("the model answers only with zeros: check its name and how it is served")
)

// numbers are a vector without null; some models write NaN as null.
type numbers []float32

func (n *numbers) UnmarshalJSON(text []byte) error {
	if bytes.Contains(text, []byte("null")) {
		return errNoNumber
	}
	return json.Unmarshal(text, (*[]float32)(n))
}

// NamesModel reports whether the path of an API contains the model, as those of
// clusters do.
func NamesModel(path string) bool {
	return slices.ContainsFunc([]string{"/_inference/", "/_ml/trained_models/", "/_plugins/_ml/"}, func(part string) bool { return strings.Contains(path, part) })
}

func body(path, model string, texts []string) object {
	switch {
	case strings.Contains(path, "/_inference/"):
		return object{"input": texts}
	case strings.Contains(path, "/_ml/trained_models/"):
		docs := make([]object, len(texts))
		for k, text := range texts {
			docs[k] = object{"text_field": text}
		}
		return object{"docs": docs}
	case strings.Contains(path, "/_plugins/_ml/"):
		return object{"text_docs": texts, "return_number": true, "target_response": []string{"sentence_embedding"}}
	}
	return object{"model": model, "input": texts, "encoding_format": "float"}
}

// vectors returns the vectors of an answer, in the order of the texts. It
// returns nil if an index of Data is missing or repeated.
func (a *answer) vectors() [][]float32 {
	all := make([][]float32, len(a.Data))
	for _, v := range a.Data {
		if v.Index < 0 || v.Index >= len(all) || all[v.Index] != nil {
			return nil
		}
		all[v.Index] = v.Embedding
	}
	for _, v := range a.TextEmbedding {
		all = append(all, v.Embedding)
	}
	for _, v := range a.InferenceResults {
		vector := v.Predicted
		if len(v.Output) > 0 {
			vector = v.Output[0].Data
		}
		all = append(all, vector)
	}
	return all
}

type object = map[string]any

// check checks the vectors of a number of texts. dim is their dimension, 0 if
// unknown, before the first vectors. alike reports whether all are equal.
func check(vectors [][]float32, texts, dim int) (alike bool, err error) {
	if len(vectors) != texts {
		return false, fmt.Errorf("the model answers with %d vectors for %d texts", len(vectors), texts)
	}
	first := dim == 0
	alike = true
	for _, v := range vectors {
		alike = alike && slices.Equal(v, vectors[0])
		switch {
		case len(v) == 0:
			return false, errors.New("the model answers with an empty vector")
		case dim > 0 && len(v) != dim:
			return false, fmt.Errorf("the model answers with vectors of %d and of %d numbers", dim, len(v))
		}
		dim = len(v)
	}
	zero := func(v []float32) bool { return !slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) }
	if first && !slices.ContainsFunc(vectors, func(v []float32) bool { return !zero(v) }) {
		return alike, errZeros
	}
	return alike, nil
}

// Split splits the URL of an API into the node, without a trailing slash, and
// the path with the query. A URL without a path or with the path /v1 is
// OpenAI's API. A path alone belongs to the cluster that is read; its node is
// "".
func Split(text string) (node, path string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("not a URL")
	case u.Scheme == "" && strings.HasPrefix(strings.TrimPrefix(u.Path, "/"), "_"):
		return "", "/" + strings.TrimPrefix(u.RequestURI(), "/"), nil
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", "", fmt.Errorf("want http://HOST:PORT/v1/embeddings or, on the cluster that is read, _inference/text_embedding/NAME, " +
			"_ml/trained_models/NAME/_infer or _plugins/_ml/_predict/text_embedding/ID")
	case u.User != nil:
		return "", "", fmt.Errorf("give the key apart from the URL")
	}
	switch path := strings.TrimRight(u.Path, "/"); {
	case path == "":
		u.Path = "/v1/embeddings"
	case strings.HasSuffix(path, "/v1"):
		u.Path = path + "/embeddings"
	}
	return u.Scheme + "://" + u.Host, u.RequestURI(), nil
}
