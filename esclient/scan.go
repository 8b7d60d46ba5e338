package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// scanPage is the number of documents in a page that holds their texts,
	// exactPage of those whose term vectors are made at once.
	scanPage, exactPage = 500, 100
	// maxPage bounds a page in bytes. It is read as a stream.
	maxPage = 512 << 20
	// pageTimeout bounds a page with what the caller does with it, and scrollTime,
	// which is longer, the wait of the cluster for the next one.
	pageTimeout = 5 * time.Minute
	scrollTime  = "10m"
)

// A hit is a document as a page of a scan has it.
type hit struct {
	Index   string         `json:"_index"`
	ID      string         `json:"_id"`
	Routing string         `json:"_routing"`
	Source  jsontext.Value `json:"_source"`
}

// Scan calls fn for every document of an index expression that has text in one
// of the fields, with its id and its texts: the strings that its source has for
// the fields, in the order of the fields, elements of arrays apart. A number or
// a boolean is given as it is written, since the engine indexes it so. Fields
// made by copy_to are not in the source and have no text.
//
// The documents come in no particular order, as they were when the scan
// started. fn may keep values. Scan ends at the first error, of fn too. It
// returns an error that wraps [ErrNotText] if a field is not text.
func (c *Client) Scan(
	ctx context.Context, index string, fields []string, fn func(id string, values []string) error,
) error {
	sources, err := c.sourcePaths(ctx, index, fields)
	if err != nil {
		return err
	}
	var paths []string
	for _, list := range sources {
		paths = append(paths, list...)
	}
	slices.Sort(paths)
	body := object{"size": scanPage, "sort": []string{"_doc"}, "_source": slices.Compact(paths)}
	return c.scroll(ctx, index, body, func(page []hit) error {
		for _, h := range page {
			if len(h.Source) == 0 {
				return fmt.Errorf("index %q keeps no _source to read the texts from", h.Index)
			}
			var values []string
			for _, path := range sources[h.Index] {
				if values, err = appendTexts(values, h.Source, path); err != nil {
					return fmt.Errorf("document %q of index %q: %w", h.ID, h.Index, err)
				}
			}
			if len(values) == 0 {
				continue
			}
			if err := fn(h.ID, values); err != nil {
				return err
			}
		}
		return nil
	})
}

// sourcePaths returns the paths that documents have the texts of the fields
// under, by index, each once and in the order of the fields.
func (c *Client) sourcePaths(ctx context.Context, index string, fields []string) (map[string][]string, error) {
	if len(fields) == 0 {
		return nil, errors.New("no field to read")
	}
	paths := map[string][]string{}
	for _, f := range fields {
		s, err := c.schema(ctx, index, f)
		if err != nil {
			return nil, err
		}
		for _, t := range s.targets {
			if !slices.Contains(paths[t.index], t.source) {
				paths[t.index] = append(paths[t.index], t.source)
			}
		}
	}
	return paths, nil
}

// appendTexts appends the texts that v has at path, at v itself if path is "".
func appendTexts(dst []string, v jsontext.Value, path string) ([]string, error) {
	switch kind := v.Kind(); {
	case kind == jsontext.KindBeginArray:
		var list []jsontext.Value
		err := decode(v, &list)
		for i := 0; i < len(list) && err == nil; i++ {
			dst, err = appendTexts(dst, list[i], path)
		}
		return dst, err
	case kind == jsontext.KindBeginObject:
		return appendMembers(dst, v, path)
	case path != "" || kind == jsontext.KindNull:
		return dst, nil
	case kind == jsontext.KindString:
		var s string
		err := decode(v, &s)
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
	if err := decode(v, &members); err != nil {
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
		if dst, err = appendTexts(dst, m, path[min(end+1, len(path)):]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// scroll searches with body and hands its hits to fn, page by page, until there
// are none. The cluster's state of the scroll is dropped at the end, however
// that comes. fn must not keep the page.
func (c *Client) scroll(ctx context.Context, index string, body object, fn func([]hit) error) (err error) {
	const filter = "filter_path=_scroll_id,_shards.failed,hits.hits._index,hits.hits._id," +
		"hits.hits._routing,hits.hits._source"
	r := request{
		method: http.MethodPost, path: indexPath(index, "/_search?scroll="+scrollTime+"&"+filter),
		body: body, timeout: pageTimeout, limit: maxPage,
	}
	p := page{fn: fn}
	defer func() { err = cmp.Or(err, c.clearScroll(ctx, p.scrollID)) }()
	for {
		p.hits = 0
		if err := c.send(ctx, r, p.read); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if p.hits == 0 {
			return nil
		}
		r.path = "/_search/scroll?" + filter
		r.body = object{"scroll": scrollTime, "scroll_id": p.scrollID}
	}
}

// clearScroll drops the state of a scroll, after a cancelled scan too.
func (c *Client) clearScroll(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	r := request{method: http.MethodDelete, path: "/_search/scroll", body: object{"scroll_id": []string{id}}}
	err := c.send(context.WithoutCancel(ctx), r, func(io.Reader) error { return nil })
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		return nil // it is gone already
	}
	return err
}

// A page reads the pages of a scroll.
type page struct {
	fn func([]hit) error
	// scrollID is the last one read, hits the number of hits in the last page.
	scrollID string
	hits     int
}

// hitBatch is the number of hits handed on at once, so that a page is never
// held as a whole.
const hitBatch = exactPage

// read reads a page and hands on its hits.
func (p *page) read(r io.Reader) error {
	d := jsontext.NewDecoder(r, lenient())
	return eachMember(d, func(name string) error {
		switch name {
		case "_scroll_id":
			return json.UnmarshalDecode(d, &p.scrollID)
		case "_shards":
			var shards struct {
				Failed int `json:"failed"`
			}
			if err := json.UnmarshalDecode(d, &shards); err != nil {
				return err
			}
			if shards.Failed > 0 {
				return fmt.Errorf("%d shards failed: the documents would not be all", shards.Failed)
			}
			return nil
		case "hits":
			return eachMember(d, func(name string) error {
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

func (p *page) readHits(d *jsontext.Decoder) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return cmp.Or(err, errors.New("want an array of hits"))
	}
	batch := make([]hit, 0, hitBatch)
	for d.PeekKind() != ']' {
		var h hit
		if err := json.UnmarshalDecode(d, &h); err != nil {
			return err
		}
		p.hits++
		if batch = append(batch, h); len(batch) < hitBatch {
			continue
		}
		if err := p.fn(batch); err != nil {
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
	return p.fn(batch)
}

// eachMember calls fn for each member of the object that d comes to, d standing
// before the member's value, which fn reads.
func eachMember(d *jsontext.Decoder, fn func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return cmp.Or(err, errors.New("want an object"))
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := fn(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}
