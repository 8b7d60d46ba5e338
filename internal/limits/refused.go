package limits

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Refuse returns the body, JSON, of the answer with a status to a request that
// net/http cannot read for a reason.
type Refuse func(status int, reason string) []byte

// plainText is in what net/http answers, before there is a request, to a head
// that it does not take. It has no hook for that, but writes each such answer
// in one piece.
const plainText = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// inPlaceOf returns p, which net/http writes before there is a request, or the
// refusal that the client gets in place of net/http's.
func (f Refuse) inPlaceOf(p []byte) []byte {
	line, reason, refused := strings.Cut(string(p), plainText)
	if !refused {
		return p
	}
	_, line, _ = strings.Cut(line, " ")
	status, err := strconv.Atoi(line[:min(len(line), len("400"))])
	if err != nil {
		return p
	}
	return f.answer(status, reason)
}

// answer returns the answer to a head that is refused.
func (f Refuse) answer(status int, reason string) []byte {
	body := f(status, reason)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
}
