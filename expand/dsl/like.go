package dsl

import (
	"math"
	"strconv"
	"strings"

	"github.com/akin-search/akin/internal/jsonspan"
)

// A Like says which words of its text a more_like_this searches for.
type Like struct {
	MaxTerms               int // how many at most
	MinTermFreq            int // in the text
	MinDocFreq, MaxDocFreq int
	MinLength, MaxLength   int // 0 for any
	StopWords              []string
}

// moreLikeThis reads {"like": "text", "fields": […], …}. The engine searches
// for each word in the field in which most documents have it.
func (c *Clause) moreLikeThis(raw []byte) {
	c.Across, c.Additive = AsOne, false
	c.MinimumShouldMatch = []byte(`"30%"`)
	c.Like = &Like{MaxTerms: 25, MinTermFreq: 2, MinDocFreq: 5, MaxDocFreq: math.MaxInt32}
	c.settle(jsonspan.Members(raw, func(name, value []byte) error { return c.likeOption(string(name), value) }))
}

func (c *Clause) likeOption(name string, value []byte) (err error) {
	l := c.Like
	switch name {
	case "like":
		var texts []string
		texts, err = words(value)
		c.Text = strings.Join(texts, "\n")
	case "fields": // neither patterns nor boosts
		var names []string
		names, err = words(value)
		for _, field := range names {
			c.Fields = append(c.Fields, BoostedField{field, 1})
		}
		if len(names) > MaxFields {
			err = errManyFields
		}
	case "max_query_terms":
		l.MaxTerms, err = count(value)
	case "min_term_freq":
		l.MinTermFreq, err = count(value)
	case "min_doc_freq":
		l.MinDocFreq, err = count(value)
	case "max_doc_freq":
		l.MaxDocFreq, err = count(value)
	case "min_word_length":
		l.MinLength, err = count(value)
	case "max_word_length":
		l.MaxLength, err = count(value)
	case "stop_words":
		l.StopWords, err = words(value)
	case "analyzer", "boost", "minimum_should_match":
		err = c.option(name, value)
	case "include", "fail_on_unsupported_field", "_name":
		// These affect only the original.
	case "unlike":
		if string(value) != "[]" {
			err = errOptions
		}
	case "boost_terms":
		var boost float64
		if boost, err = number(value); boost != 0 {
			err = errOptions
		}
	default:
		err = errOptions
	}
	if err != nil {
		c.leave(name)
	}
	return err
}

// words returns a string, or a list of strings.
func words(raw []byte) (out []string, err error) {
	one := func(value []byte) error {
		word, err := scalar(value)
		out = append(out, word)
		return err
	}
	if raw[0] != '[' {
		return out, one(raw)
	}
	err = jsonspan.Elements(raw, one)
	return out, err
}

// count returns a whole number of at least 0, possibly in quotes.
func count(raw []byte) (int, error) {
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < 0 {
		return 0, errOptions
	}
	return n, nil
}
