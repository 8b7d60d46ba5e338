package documents

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/answers"
)

// A hit is a document as a page of a scan has it.
type hit struct {
	Index       string                    `json:"_index"`
	ID          string                    `json:"_id"`
	Routing     string                    `json:"_routing"`
	Source      jsontext.Value            `json:"_source"`
	SeqNo       int64                     `json:"_seq_no"`
	PrimaryTerm int64                     `json:"_primary_term"`
	Version     int64                     `json:"_version"`
	Fields      map[string]jsontext.Value `json:"fields"`
}

// hitBatch is the number of hits handed on at once, so that a page is never in
// memory as a whole.
const hitBatch = 100

// A pageReader reads the pages of a scroll.
type pageReader struct {
	// each gets the hits, at most hitBatch at once. It must not keep them.
	each func([]hit) error
	// scrollID is the last one read, hits the number of hits in the last page.
	scrollID string
	hits     int
}

// read reads a page and hands on its hits.
func (p *pageReader) read(r io.Reader) error {
	d := jsontext.NewDecoder(r, answers.Lenient())
	return answers.EachMember(d, func(name string) error {
		switch name {
		case "_scroll_id":
			return json.UnmarshalDecode(d, &p.scrollID)
		case "_shards":
			var shards shardsFailed
			if err := json.UnmarshalDecode(d, &shards); err != nil {
				return err
			}
			return shards.check()
		case "hits":
			return answers.EachMember(d, func(name string) error {
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

func (p *pageReader) readHits(d *jsontext.Decoder) error {
	batch := make([]hit, 0, hitBatch)
	err := answers.EachElement(d, func() error {
		var h hit
		if err := json.UnmarshalDecode(d, &h); err != nil {
			return err
		}
		p.hits++
		if batch = append(batch, h); len(batch) < hitBatch {
			return nil
		}
		err := p.each(batch)
		batch = batch[:0]
		return err
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	return p.each(batch)
}

// texts returns the texts that the document has at the paths.
func (h *hit) texts(paths []string) (values []string, err error) {
	if len(h.Source) == 0 {
		return nil, fmt.Errorf("index %q keeps no _source to read the texts from", h.Index)
	}
	for _, path := range paths {
		if values, err = appendTexts(values, h.Source, path); err != nil {
			return nil, fmt.Errorf("document %q of index %q: %w", h.ID, h.Index, err)
		}
	}
	return values, nil
}

// appendTexts appends the texts that v has at path, at v itself if path is "".
// A name in v may span several segments of the path.
func appendTexts(dst []string, v jsontext.Value, path string) (_ []string, err error) {
	switch v.Kind() {
	case jsontext.KindBeginArray:
		var list []jsontext.Value
		err = answers.Decode(v, &list)
		for i := 0; i < len(list) && err == nil; i++ {
			dst, err = appendTexts(dst, list[i], path)
		}
	case jsontext.KindBeginObject:
		if path == "" {
			return dst, nil
		}
		var members map[string]jsontext.Value
		err = answers.Decode(v, &members)
		for end := 0; end <= len(path) && err == nil; end++ {
			if end < len(path) && path[end] != '.' {
				continue
			}
			if m, ok := members[path[:end]]; ok {
				dst, err = appendTexts(dst, m, path[min(end+1, len(path)):])
			}
		}
	case jsontext.KindNull:
	default:
		if path != "" {
			return dst, nil
		}
		text := string(v)
		if v.Kind() == jsontext.KindString {
			err = answers.Decode(v, &text)
		}
		dst = append(dst, text)
	}
	return dst, err
}
