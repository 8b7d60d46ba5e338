package dsl

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A Like says which words of its text a more_like_this searches for.
type Like struct {
	MaxTerms               int // how many at most
	MinTermFreq            int // in the text
	MinDocFreq, MaxDocFreq int
	MinLength, MaxLength   int // 0 for any
	StopWords              []string
	// Unlike is a text whose words are not searched for, "" for none.
	Unlike string
	// Stored are documents whose words in the only field of the clause are searched
	// for. The clause has no text then.
	Stored []StoredDocument
	// Boost multiplies each word by its weight over the least one, unless it is 0.
	Boost float64
}

// A StoredDocument is a document of the cluster; Index is "" for the searched
// one.
type StoredDocument struct{ Index, ID, Routing string }

// A likeReader reads a more_like_this.
type likeReader struct {
	c             *Clause
	texts, unlike []string
	// fields are those with texts of documents in the query, each once.
	fields []likeField
	// stored are documents of the cluster, as they are written in storedJSON.
	stored     []StoredDocument
	storedJSON []string
	// unread says that like has documents that are not read.
	unread bool
	others string // options, as members
}

// A likeField is a field of documents in the query.
type likeField struct {
	name  string
	texts []string
}

// moreLikeThis reads {"like": …, "fields": […], …} with texts, or documents in
// the query, {"doc": {"field": "text"}}. The engine searches for each word of
// the texts in the field in which most documents have it, and for those of a
// document's field in this field, whatever "fields" says.
func (c *Clause) moreLikeThis(raw []byte) {
	c.Across, c.Additive = AsOne, false
	c.MinimumShouldMatch = []byte(`"30%"`)
	c.Like = &Like{MaxTerms: 25, MinTermFreq: 2, MinDocFreq: 5, MaxDocFreq: math.MaxInt32}
	r := likeReader{c: c}
	err := jsonspan.Members(raw, func(name, value []byte) error {
		err := r.option(string(name), value)
		if err != nil {
			c.leave(string(name))
		}
		return err
	})
	if err == nil {
		r.choose()
	}
	c.settle(err)
}

func (r *likeReader) option(name string, value []byte) (err error) {
	c, l := r.c, r.c.Like
	switch name {
	case "like":
		return oneOrMore(value, r.like)
	case "unlike":
		return oneOrMore(value, r.notLike)
	case "fields": // neither patterns nor boosts
		var names []string
		names, err = words(value)
		for _, field := range names {
			c.Fields = append(c.Fields, BoostedField{field, 1})
		}
		if len(names) > MaxFields {
			err = errManyFields
		}
		return err
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
	case "boost_terms":
		l.Boost, err = number(value)
	case "analyzer": // of texts
		return c.option(name, value)
	case "boost", "minimum_should_match":
		err = c.option(name, value)
	case "include", "fail_on_unsupported_field", "_name":
		return nil // These affect only the original.
	default:
		err = errOptions
	}
	r.others += `,"` + name + `":` + string(value)
	return err
}

// like reads a text or a document.
func (r *likeReader) like(value []byte) error {
	if value[0] != '{' {
		text, err := scalar(value)
		r.texts = append(r.texts, text)
		return err
	}
	var doc []byte
	var one StoredDocument
	err := jsonspan.Members(value, func(name, value []byte) (err error) {
		switch string(name) {
		case "doc":
			doc = value
		case "_index":
			one.Index, err = scalar(value)
		case "_id":
			one.ID, err = scalar(value)
		case "routing", "_routing":
			one.Routing, err = scalar(value)
		case "_type":
		default: // only some fields, or with other analyzers
			r.unread = true
		}
		return err
	})
	switch {
	case err != nil || r.unread || doc == nil && one.ID == "" || len(r.stored) == maxStored:
		r.unread = true
		return err
	case doc != nil:
		return r.document("", doc)
	}
	r.stored, r.storedJSON = append(r.stored, one), append(r.storedJSON, string(value))
	return nil
}

// maxStored is how many stored documents a more_like_this may name.
const maxStored = 16

// document reads the fields of a document, or of an object in it.
func (r *likeReader) document(path string, raw []byte) error {
	switch raw[0] {
	case '{':
		return jsonspan.Members(raw, func(name, value []byte) error {
			return r.document(strings.TrimPrefix(path+"."+string(name), "."), value)
		})
	case '[':
		return jsonspan.Elements(raw, func(value []byte) error { return r.document(path, value) })
	case '"':
		value, err := text(raw)
		at := slices.IndexFunc(r.fields, func(f likeField) bool { return f.name == path })
		if at < 0 {
			at = len(r.fields)
			r.fields = append(r.fields, likeField{name: path})
		}
		r.fields[at].texts = append(r.fields[at].texts, value)
		return err
	default: // a number is no word that has related ones
		return nil
	}
}

// notLike reads what words must not be from.
func (r *likeReader) notLike(value []byte) error {
	if value[0] == '{' {
		r.c.leave("unlike")
		r.c.Reason = reason.LikeDocuments
		return nil
	}
	text, err := scalar(value)
	r.unlike = append(r.unlike, text)
	return err
}

// choose sets what the clause searches for: texts, a field of documents, or a
// query with both beside the client's.
func (r *likeReader) choose() {
	c := r.c
	c.Text = strings.Join(r.texts, "\n")
	c.Like.Unlike = strings.Join(r.unlike, "\n")
	// Without "fields" the engine takes the words of all fields of a stored document.
	if r.unread = r.unread || len(r.stored) > 0 && len(c.Fields) == 0; r.unread {
		c.leave("like")
		r.fields, r.stored = nil, nil
		if len(r.texts) == 0 {
			c.Reason = reason.LikeDocuments
		}
	}
	if r.unread || len(r.stored) > 0 { // the engine keeps these documents out of the hits
		c.Matches = Same
	}
	switch {
	case c.Reason != "" || len(r.fields)+len(r.stored) == 0:
	case len(r.fields) == 1 && len(r.texts)+len(r.stored) == 0:
		f := r.fields[0]
		c.Like.Unlike = strings.Join(r.unlikeIn(f.name), "\n")
		c.Text, c.Analyzer = strings.Join(f.texts, "\n"), ""
		c.Fields = []BoostedField{{f.name, 1}}
	case len(c.Fields) == 1 && len(r.fields)+len(r.texts) == 0:
		c.Like.Stored, c.Analyzer = r.stored, ""
	case len(r.fields)+len(c.Fields) > MaxFields:
		c.Reason = reason.TooManyClauses
	default:
		c.Reason = reason.LikeDocuments
		c.parts = r.query()
		for _, f := range r.fields {
			c.Text += "\n" + strings.Join(f.texts, "\n")
		}
		// The engine counts the words of all fields of documents together.
		if least := strings.Trim(string(c.MinimumShouldMatch), `" `); len(r.fields) > 1 && least != "1" && least != "0" {
			c.Matches = Same
			c.leave("minimum_should_match")
		}
	}
}

// query returns a query of the same words, by the texts and fields one by one.
func (r *likeReader) query() string {
	var parts []string
	add := func(like string, unlike, fields []string, analyzer string) {
		part := `{"more_like_this":{"like":` + like
		if len(unlike) > 0 {
			part += `,"unlike":` + quotedList(unlike)
		}
		if len(fields) > 0 {
			part += `,"fields":` + quotedList(fields)
		}
		if analyzer != "" {
			part += `,"analyzer":` + quoted(analyzer)
		}
		parts = append(parts, part+r.others+`}}`)
	}
	names := make([]string, len(r.c.Fields))
	for i, f := range r.c.Fields {
		names[i] = f.Name
	}
	if len(r.texts) > 0 {
		add(quotedList(r.texts), r.unlike, names, r.c.Analyzer)
	}
	for _, f := range r.fields {
		add(quotedList(f.texts), r.unlikeIn(f.name), []string{f.name}, "")
	}
	for _, name := range names {
		if len(r.stored) > 0 {
			add("["+strings.Join(r.storedJSON, ",")+"]", r.unlikeIn(name), []string{name}, "")
		}
	}
	return `{"bool":{"should":[` + strings.Join(parts, ",") + `]}}`
}

// unlikeIn returns the texts whose words are not searched for in a field of
// documents: the engine leaves out only those of the first field.
func (r *likeReader) unlikeIn(field string) []string {
	if len(r.c.Fields) > 0 && r.c.Fields[0].Name == field {
		return r.unlike
	}
	return nil
}

// words returns a string, or a list of strings.
func words(raw []byte) (out []string, err error) {
	err = oneOrMore(raw, func(value []byte) error {
		word, err := scalar(value)
		out = append(out, word)
		return err
	})
	return out, err
}

// oneOrMore calls f with a value, or with each of a list.
func oneOrMore(raw []byte, f func(value []byte) error) error {
	if raw[0] != '[' {
		return f(raw)
	}
	return jsonspan.Elements(raw, f)
}

// count returns a whole number of at least 0, possibly in quotes.
func count(raw []byte) (int, error) {
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < 0 {
		return 0, errOptions
	}
	return n, nil
}
