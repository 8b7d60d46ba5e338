package answer

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// Compressors are used again, by answers that are sent at the same time, too.
func TestCompressedAnswersHoldWhatTheyHeld(t *testing.T) {
	var sent sync.WaitGroup
	for client := range 4 {
		sent.Go(func() {
			for n := range 20 {
				text := strings.Repeat(strconv.Itoa(client)+" "+strconv.Itoa(n)+"\n", 5000*n)
				res := &http.Response{Header: http.Header{"Content-Length": {"1"}}, Body: io.NopCloser(strings.NewReader(text))}
				Compress(res)
				check.Equal(t, http.Header{"Content-Encoding": {"gzip"}}, res.Header)
				z, err := gzip.NewReader(res.Body)
				var got []byte
				if err == nil {
					got, err = io.ReadAll(z)
				}
				check.That(t, err == nil && string(got) == text, "%d bytes of %d, %v", len(got), len(text), err)
			}
		})
	}
	sent.Wait()
}
