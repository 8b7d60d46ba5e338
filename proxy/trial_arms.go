package proxy

import (
	"crypto/sha256"
	"encoding/binary"
)

// Off is the arm whose searches go out as they came. The others are profiles.
const Off = "off"

// A Trial is two arms and the searches that take part.
type Trial struct {
	// Name is that in metrics and explanations.
	Name string
	// Covers reports whether the searches of an index expression take part.
	Covers func(index string) bool
	// Arms are the way that searches go without the trial, and the new one.
	Arms [2]string
	// Share in [0, 1] is how many of the units get the second arm; the others get
	// the first one.
	Share float64
	// Header has the unit that arms are drawn for, such as a session; "" draws
	// for the address of the client.
	Header string
}

// Draws reports whether a unit is in the share: the same each time, in every
// process, and apart from other trials.
func (t *Trial) Draws(unit string) bool {
	const all = 1 << 53 // what a float64 holds exactly
	return float64(drawOf(t.Name, unit)%all)/all < t.Share
}

// hash hashes texts such that the end of each is seen.
func drawOf(texts ...string) uint64 {
	h := sha256.New()
	for _, text := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text))) // a hash takes all
		_, _ = h.Write([]byte(text))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
