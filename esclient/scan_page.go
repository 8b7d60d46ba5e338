package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxPage bounds a page in bytes. It is read as a stream.
	maxPage = 512 << 20
	// pageTimeout bounds a page with what the caller does with it, and scrollTime,
	// which is longer, the wait of the cluster for the next one.
	pageTimeout = 5 * time.Minute
	scrollTime  = "10m"
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

// scroll searches with body and hands its hits to fn, page by page, until there
// are none. The cluster's state of the scroll is dropped at the end, however
// that comes. fn must not keep the page.
func (c *Client) scroll(ctx context.Context, index, preference string, body object, fn func([]hit) error) (err error) {
	const filter = "filter_path=_scroll_id,_shards.failed,hits.hits._index,hits.hits._id," +
		"hits.hits._routing,hits.hits._source,hits.hits._seq_no,hits.hits._primary_term,hits.hits._version,hits.hits.fields"
	r := request{
		method: http.MethodPost, path: indexPath(index, "/_search?scroll="+scrollTime+"&"+filter),
		body: body, timeout: pageTimeout, limit: maxPage,
	}
	if preference != "" {
		r.path += "&preference=" + url.QueryEscape(preference)
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
				return fmt.Errorf("%d of them: %w", shards.Failed, errShards)
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
