package shadow

import (
	"bytes"
	"errors"
	"io"

	"github.com/akin-search/akin/internal/budget"
)

// MaxAnswer is the longest answer that is compared: 1000 hits of 1 KiB.
const MaxAnswer = 1 << 20

// Keep returns an answer that keeps what is read of it, in memory of hold, and
// passes it on when it is closed, or else the outcome that tells why it cannot.
func Keep(answer io.ReadCloser, hold *budget.Hold, closed func(answer []byte, outcome string)) io.ReadCloser {
	return &keeper{ReadCloser: answer, hold: hold, closed: closed}
}

type keeper struct {
	io.ReadCloser

	hold   *budget.Hold
	kept   bytes.Buffer
	length int
	ended  bool
	full   bool // there was no memory to keep all of it
	closed func(answer []byte, outcome string)
}

// Read reads from the answer.
func (k *keeper) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	k.length += n
	k.full = k.full || k.length <= MaxAnswer && !k.hold.Take(int64(n))
	if k.length <= MaxAnswer && !k.full {
		k.kept.Write(p[:n])
	} else {
		k.kept = bytes.Buffer{}
	}
	k.ended = k.ended || errors.Is(err, io.EOF)
	return n, err
}

// Close closes the answer.
func (k *keeper) Close() error {
	if closed := k.closed; closed != nil {
		k.closed = nil
		switch {
		case !k.ended:
			closed(nil, ClientGone)
		case k.length > MaxAnswer:
			closed(nil, Unreadable)
		case k.full:
			closed(nil, Dropped)
		default:
			closed(k.kept.Bytes(), "")
		}
	}
	return k.ReadCloser.Close()
}
