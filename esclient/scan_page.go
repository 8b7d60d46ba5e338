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

	"github.com/akin-search/akin/esclient/answers"
)

const (
	// maxPage bounds a page in bytes. It is read as a stream.
	maxPage = 512 << 20
	// pageTimeout bounds a page with what the caller does with it, and scrollTime,
	// which is longer, the wait of the cluster for the next one.
	pageTimeout = 5 * time.Minute
	scrollTime  = "10m"
)

// scroll searches with body and hands its hits to fn, page by page, until there
// are none. The cluster's state of the scroll is dropped at the end, however
// that comes. fn must not keep the page.
func (c *Client) scroll(ctx context.Context, index, preference string, body object, fn func([]answers.Hit) error) (err error) {
	const filter = "filter_path=_scroll_id,_shards.failed,hits.hits._index,hits.hits._id," +
		"hits.hits._routing,hits.hits._source,hits.hits._seq_no,hits.hits._primary_term,hits.hits._version,hits.hits.fields"
	r := request{
		method: http.MethodPost, path: indexPath(index, "/_search?scroll="+scrollTime+"&"+filter),
		body: body, timeout: pageTimeout, limit: maxPage,
	}
	if preference != "" {
		r.path += "&preference=" + url.QueryEscape(preference)
	}
	p := answers.Page{Each: fn}
	defer func() { err = cmp.Or(err, c.clearScroll(ctx, p.ScrollID)) }()
	for {
		p.Hits = 0
		if err := c.send(ctx, r, p.Read); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if p.Hits == 0 {
			return nil
		}
		r.path = "/_search/scroll?" + filter
		r.body = object{"scroll": scrollTime, "scroll_id": p.ScrollID}
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
