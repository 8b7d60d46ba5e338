package limits

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
)

// keptHead is the most memory that an idle connection keeps for its next head.
const keptHead = 4 << 10

// heads keeps the head of a request as the client sent it. net/http drops
// Transfer-Encoding from a request of HTTP/1.0, and with it the body: a
// _delete_by_query of one document would become one of all.
type heads struct {
	mu sync.Mutex
	// unread is what net/http has read from the connection, from the next head on.
	// body is how much of a body comes before that.
	unread []byte
	body   int64
	// lost says that the place of the next head is unknown: after a body in
	// chunks, or when the connection has another protocol.
	lost bool
}

// add adds what net/http has read.
func (h *heads) add(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return
	}
	rest := p[min(int64(len(p)), h.body):]
	h.body -= int64(len(p) - len(rest))
	h.unread = append(h.unread, rest...)
}

// lose stops keeping heads.
func (h *heads) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unread, h.lost = nil, true
}

// take takes the head of r, whose body was not read yet, and returns what is
// wrong with it, or "". It must be called for every request.
func (h *heads) take(r *http.Request) (fault string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	isOld := !r.ProtoAtLeast(1, 1)
	size := headSize(h.unread)
	switch {
	case isOld && h.lost:
		fault = "HTTP/1.0 may not follow a body in chunks on one connection"
	case isOld && hasTransferEncoding(h.unread[:size]):
		fault = "HTTP/1.0 may not use Transfer-Encoding"
	}
	rest := h.unread[size:]
	came := min(max(r.ContentLength, 0), int64(len(rest)))
	h.body = r.ContentLength - came
	h.unread = append(h.unread[:0], rest[came:]...)
	if h.lost = h.lost || r.ContentLength < 0; h.lost || len(h.unread) == 0 && cap(h.unread) > keptHead {
		h.unread = nil
	}
	return fault
}

// headSize returns the size of the head with which read begins, and of line
// breaks before it, which net/http forgives.
func headSize(read []byte) int {
	begin := len(read) - len(bytes.TrimLeft(read, "\r\n"))
	for at := begin; ; {
		line := bytes.IndexByte(read[at:], '\n')
		if line < 0 {
			return len(read) // net/http has not found the end either: it refuses the request
		}
		at += line + 1
		if end := read[at:]; bytes.HasPrefix(end, []byte("\n")) {
			return at + 1
		} else if bytes.HasPrefix(end, []byte("\r\n")) {
			return at + 2
		}
	}
}

// hasTransferEncoding reports whether net/http has found a Transfer-Encoding in
// head, or has read another head.
func hasTransferEncoding(head []byte) bool {
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(head, "\r\n"))))
	_, err := lines.ReadLine()
	if err != nil {
		return true
	}
	header, err := lines.ReadMIMEHeader()
	return err != nil || header["Transfer-Encoding"] != nil
}

// refuseHead answers r, whose head has a fault, and has net/http close the
// connection.
func (l *Listener) refuseHead(w http.ResponseWriter, fault string) {
	// What the client sends of its body is no request. A reader over its limit
	// makes net/http wait a moment before it closes: the client may still be
	// sending, and could not read the answer.
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(fault)), 0).Read(make([]byte, 1))
	w.Header()["Date"] = nil
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(l.refuse(http.StatusBadRequest, fault)) // on error the client is gone
}
