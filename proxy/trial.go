package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"slices"
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

// drawArm returns the first trial that covers an index expression and the arm
// that a search gets in it, "" for none. A search without the header of the
// trial gets the first arm.
func drawArm(trials []Trial, index, client string, h http.Header) (trial, arm string) {
	at := slices.IndexFunc(trials, func(t Trial) bool { return t.Covers(index) })
	if at < 0 {
		return "", ""
	}
	t, unit := &trials[at], client
	if t.Header != "" {
		unit = h.Get(t.Header)
	}
	if unit != "" && t.Draws(unit) {
		return t.Name, t.Arms[1]
	}
	return t.Name, t.Arms[0]
}

// Draws reports whether a unit is in the share: the same each time, in every
// process, and apart from other trials.
func (t *Trial) Draws(unit string) bool {
	const all = 1 << 53 // what a float64 holds exactly
	h := sha256.New()
	addText(h, t.Name)
	addText(h, unit)
	return float64(binary.BigEndian.Uint64(h.Sum(nil))%all)/all < t.Share
}
