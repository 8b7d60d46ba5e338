package answers

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Hit is a document as a page of a scan has it.
type Hit struct {
	Index       string                    `json:"_index"`
	ID          string                    `json:"_id"`
	Routing     string                    `json:"_routing"`
	Source      jsontext.Value            `json:"_source"`
	SeqNo       int64                     `json:"_seq_no"`
	PrimaryTerm int64                     `json:"_primary_term"`
	Version     int64                     `json:"_version"`
	Fields      map[string]jsontext.Value `json:"fields"`
}

// ErrShards says that a page misses what some shards have.
var ErrShards = errors.New("shards failed: the documents would not be all")

// A Page reads the pages of a scroll.
type Page struct {
	// Each gets the hits, at most [HitBatch] at once. It must not keep them.
	Each func([]Hit) error
	// ScrollID is the last one read, Hits the number of hits in the last page.
	ScrollID string
	Hits     int
}

// HitBatch is the number of hits handed on at once, so that a page is never
// held as a whole.
const HitBatch = 100

// Read reads a page and hands on its hits.
func (p *Page) Read(r io.Reader) error {
	d := jsontext.NewDecoder(r, Lenient())
	return EachMember(d, func(name string) error {
		switch name {
		case "_scroll_id":
			return json.UnmarshalDecode(d, &p.ScrollID)
		case "_shards":
			var shards struct {
				Failed int `json:"failed"`
			}
			if err := json.UnmarshalDecode(d, &shards); err != nil {
				return err
			}
			if shards.Failed > 0 {
				return fmt.Errorf("%d of them: %w", shards.Failed, ErrShards)
			}
			return nil
		case "hits":
			return EachMember(d, func(name string) error {
				if name != "hits" {
					return d.SkipValue()
				}
				return p.readHits(d)
			})
		default:
			return d.SkipValue()
		}
	})
}

func (p *Page) readHits(d *jsontext.Decoder) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return cmp.Or(err, errors.New("want an array of hits"))
	}
	batch := make([]Hit, 0, HitBatch)
	for d.PeekKind() != ']' {
		var h Hit
		if err := json.UnmarshalDecode(d, &h); err != nil {
			return err
		}
		p.Hits++
		if batch = append(batch, h); len(batch) < HitBatch {
			continue
		}
		if err := p.Each(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if len(batch) == 0 {
		return nil
	}
	return p.Each(batch)
}

// Texts returns the texts that the document has at the paths.
func (h *Hit) Texts(paths []string) ([]string, error) {
	if len(h.Source) == 0 {
		return nil, fmt.Errorf("index %q keeps no _source to read the texts from", h.Index)
	}
	var values []string
	for _, path := range paths {
		var err error
		if values, err = AppendTexts(values, h.Source, path); err != nil {
			return nil, fmt.Errorf("document %q of index %q: %w", h.ID, h.Index, err)
		}
	}
	return values, nil
}

// AppendTexts appends the texts that v has at path, at v itself if path is "".
func AppendTexts(dst []string, v jsontext.Value, path string) ([]string, error) {
	switch kind := v.Kind(); {
	case kind == jsontext.KindBeginArray:
		var list []jsontext.Value
		err := Decode(v, &list)
		for i := 0; i < len(list) && err == nil; i++ {
			dst, err = AppendTexts(dst, list[i], path)
		}
		return dst, err
	case kind == jsontext.KindBeginObject:
		return appendMembers(dst, v, path)
	case path != "" || kind == jsontext.KindNull:
		return dst, nil
	case kind == jsontext.KindString:
		var s string
		err := Decode(v, &s)
		return append(dst, s), err
	default:
		return append(dst, string(v)), nil
	}
}

// appendMembers appends the texts that the object v has at path. A name in v
// may span several segments of the path.
func appendMembers(dst []string, v jsontext.Value, path string) ([]string, error) {
	if path == "" {
		return dst, nil
	}
	var members map[string]jsontext.Value
	if err := Decode(v, &members); err != nil {
		return dst, err
	}
	for end := range len(path) + 1 {
		if end < len(path) && path[end] != '.' {
			continue
		}
		m, ok := members[path[:end]]
		if !ok {
			continue
		}
		var err error
		if dst, err = AppendTexts(dst, m, path[min(end+1, len(path)):]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
