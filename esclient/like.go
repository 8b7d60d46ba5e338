package esclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// maxLikeTerms is how many terms of a stored document are looked at, the most
// telling ones first.
const maxLikeTerms = 200

// ErrNoDocument says that the cluster does not read a document, as of an
// expression that stands for several indices.
var ErrNoDocument = errors.New("the cluster does not read the document")

// A StoredDocument is named by its id. Without Index it is in the searched
// index, without Routing it is where its id says.
type StoredDocument struct {
	Index   string `json:"_index"`
	ID      string `json:"_id"`
	Routing string `json:"routing,omitempty"`
}

// A TermFilter says which terms of documents are asked for, as in a
// more_like_this: those in so many documents of a shard, and so many letters
// long; 0 is no bound.
type TermFilter struct {
	MinDocFreq int `json:"min_doc_freq,omitempty"`
	MaxDocFreq int `json:"max_doc_freq,omitempty"`
	MinLength  int `json:"min_word_length,omitempty"`
	MaxLength  int `json:"max_word_length,omitempty"`
}

// DocumentTerms are terms of documents, each once and in byte order, with how
// often all of them together have each.
type DocumentTerms struct {
	Terms []string
	Freqs []int
}

// DocumentTerms returns the terms of stored documents in a field that tell most
// about each by tf·idf. It has none of documents that do not exist and of
// fields that a mapping makes of others. The error may wrap [ErrNoDocument].
// What is not cached takes one round trip.
func (c *Cached) DocumentTerms(ctx context.Context, indices Indices, field string, docs []StoredDocument, filter TermFilter) (*DocumentTerms, error) {
	type doc struct {
		StoredDocument

		Fields []string `json:"fields"`
		Filter struct {
			TermFilter

			Most int `json:"max_num_terms"`
		} `json:"filter"`
	}
	asked := make([]doc, len(docs))
	for i, d := range docs {
		asked[i].StoredDocument, asked[i].Fields = d, []string{field}
		asked[i].Filter.TermFilter, asked[i].Filter.Most = filter, maxLikeTerms
	}
	body, err := json.Marshal(Object{"docs": asked})
	if err != nil {
		return nil, err
	}
	k := c.key(indices, field).as(termsOfDocuments)
	k.text = string(body)
	return recall(ctx, c, c.analysis, k, k, func(c *Cached, ctx context.Context, k key) (*DocumentTerms, error) {
		return c.client.documentTerms(ctx, k.text, k.field)
	})
}

func (c *Client) documentTerms(ctx context.Context, body, field string) (*DocumentTerms, error) {
	var answer struct {
		Docs []struct {
			Error struct {
				Type string `json:"type"`
			} `json:"error"`
			TermVectors map[string]struct {
				Terms map[string]struct {
					Freq int `json:"term_freq"`
				} `json:"terms"`
			} `json:"term_vectors"`
		} `json:"docs"`
	}
	off := new(bool)
	err := c.Do(ctx, Call{Limit: smallAnswer, Request: esapi.MtermvectorsRequest{
		Positions: off, Offsets: off, Payloads: off, FieldStatistics: off, TermStatistics: off,
		FilterPath: []string{"docs.error.type", "docs.term_vectors.*.terms.*.term_freq"}, Body: strings.NewReader(body),
	}}, &answer)
	if err != nil {
		return nil, err
	}
	freqs := map[string]int{}
	for _, d := range answer.Docs {
		if d.Error.Type != "" {
			return nil, fmt.Errorf("%w: %s", ErrNoDocument, d.Error.Type)
		}
		for term, t := range d.TermVectors[field].Terms {
			freqs[term] += t.Freq
		}
	}
	all := &DocumentTerms{Terms: slices.Sorted(maps.Keys(freqs))}
	for _, term := range all.Terms {
		all.Freqs = append(all.Freqs, freqs[term])
	}
	return all, nil
}
