package tracing_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/tracing"
)

// A request whose body looks like another request is answered before the body
// is read, and the body is so large that net/http gives up to read it. The
// connection has to end with the answer, and the answer has to say so.
func TestBodyThatIsNotReadIsNotTheNextRequest(t *testing.T) {
	for name, expect := range map[string]string{"plain": "", "a 100 is expected": "Expect: 100-continue\r\n"} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tracing.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				check.Equal(t, "/outer", r.URL.Path)
				_ = r.Body.Close() // as a transport does
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				_ = http.NewResponseController(w).Flush()
			}), tracing.NewProvider(1)))
			defer server.Close()
			conn := check.Got(net.Dial("tcp", server.Listener.Addr().String()))(t)
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			check.OK(t, check.ErrOf(io.WriteString(conn, "POST /outer HTTP/1.1\r\nHost: akin\r\n"+expect+"Content-Length: 300000\r\n\r\n"+
				"GET /inner HTTP/1.1\r\nHost: akin\r\n\r\n")))
			from := bufio.NewReader(conn)
			answer, err := http.ReadResponse(from, nil)
			check.OK(t, err)
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge || !answer.Close {
				t.Errorf("answered with %d, the last one: %t, %v", answer.StatusCode, answer.Close, err)
			}
			rest, err := io.ReadAll(from)
			check.That(t, err == nil && len(rest) == 0, "after the answer comes %q, %v", rest, err)
		})
	}
}

func TestEnvironmentSaysWhereTracesGo(t *testing.T) {
	for _, tt := range []struct {
		endpoint, sample, wrong string
		traced                  bool
	}{
		{"", "a lot", "", false},
		{"http://127.0.0.1:4318/otlp", "0.5", "", true},
		{"127.0.0.1:4318", "", "OTEL_EXPORTER_OTLP_ENDPOINT: must be", false},
		{"https://", "", "OTEL_EXPORTER_OTLP_ENDPOINT: must be", false},
		{"http://collector", "1.5", "OTEL_TRACES_SAMPLER_ARG: must be", false},
		{"http://collector", "NaN", "OTEL_TRACES_SAMPLER_ARG: must be", false},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", tt.endpoint)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", tt.sample)
		p, err := tracing.Export(t.Context(), "dev")
		if (p != nil) != tt.traced || (err != nil) != (tt.wrong != "") || err != nil && !strings.HasPrefix(err.Error(), tt.wrong) {
			t.Errorf("%q, %q: %v, %v", tt.endpoint, tt.sample, p, err)
		}
	}
}
