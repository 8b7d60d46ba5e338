package rowstore

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
)

// Requests to a Sentinel whose answers go-redis v9.23 reads without a look at
// their shape, in goroutines of its own, where a panic ends the process.
var (
	asksMaster = []byte("*3\r\n$8\r\nsentinel\r\n$23\r\nget-master-addr-by-name\r\n")
	subscribes = []byte("*3\r\n$9\r\nsubscribe\r\n")
)

// Shapes of replies. Once subscribed, a connection gets messages.
const (
	anyShape int32 = iota
	addressShape
	messageShape
)

// maxElementText is how much of an element is kept to look at: the longest is
// an announcement of two addresses.
const maxElementText = 2 << 10

// A shapeGuard gathers the elements of each reply that has to have a shape: the
// kind of each, and its text.
type shapeGuard struct {
	wants    atomic.Int32 // set by who writes
	array    bool
	elements []string
}

// sent notes what is asked.
func (g *shapeGuard) sent(p []byte) {
	switch {
	case bytes.HasPrefix(p, asksMaster):
		g.wants.Store(addressShape)
	case bytes.HasPrefix(p, subscribes):
		g.wants.Store(messageShape)
	}
}

// begin notes the kind of a value at a depth.
func (g *shapeGuard) begin(depth int, kind byte, text string) {
	switch {
	case g.wants.Load() == anyShape:
	case depth == 0:
		g.array, g.elements = strings.IndexByte(arrayKinds, kind) >= 0 && !strings.HasPrefix(text, "-"), g.elements[:0]
	case depth == 1 && len(g.elements) < 8:
		if strings.IndexByte(stringKinds, kind) >= 0 {
			if strings.HasPrefix(text, "-") {
				kind = '_'
			}
			text = ""
		}
		g.elements = append(g.elements, string(kind)+text)
	}
}

// text notes a piece of a string at a depth.
func (g *shapeGuard) text(depth int, p []byte) {
	if g.wants.Load() == anyShape || depth != 1 || len(g.elements) == 0 {
		return
	}
	last := &g.elements[len(g.elements)-1]
	*last += string(p[:min(len(p), max(0, maxElementText-len(*last)))])
}

// end returns an error for a reply that has not the shape it has to have.
func (g *shapeGuard) end() error {
	wants := g.wants.Load()
	if wants == addressShape {
		g.wants.CompareAndSwap(wants, anyShape)
	}
	if wants == anyShape || !g.array { // of other kinds the library makes an error
		return nil
	}
	e := g.elements
	ok := false
	switch {
	case len(e) < 2:
	case wants == addressShape, e[0] == "$pong":
		ok = len(e) == 2 && e[0][0] == '$' && e[1][0] == '$'
	case len(e) != 3 || e[1][0] != '$':
	case e[0] == "$subscribe":
		ok = e[2][0] == ':'
	case e[0] == "$message":
		ok = e[2][0] == '$' && (e[1] != "$+switch-master" || strings.Count(e[2], " ") == 4)
	}
	if !ok {
		return fmt.Errorf("%w: an answer of %d values that no Sentinel would give", errReply, len(e))
	}
	return nil
}
