package proxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
)

// How a client controls its search. None of these is sent to the cluster.
const (
	controlHeader    = "X-Akin"
	profileHeader    = "X-Akin-Profile"
	controlParameter = "akin"
	profileParameter = "akin_profile"
)

// Values of controlHeader and controlParameter, in upper or lower case.
const (
	controlOff     = "off"     // send the original, unread
	controlDryRun  = "dry-run" // send the original, and keep what the search would have become
	controlExplain = "explain" // keep what became of the search

	controlFeedback     = "feedback"      // add terms of the first hits
	controlNoFeedback   = "no-feedback"   // add none
	controlEmbeddings   = "embeddings"    // put the first hits in order by vectors of a language model
	controlNoEmbeddings = "no-embeddings" // do not
	// The names of efforts set what the search may cost.
)

// A control is what a client asks of akin for one search; the zero value asks
// for nothing. The profile "" is the default one.
type control struct {
	off, dryRun, explain bool
	feedback             expand.FeedbackWish
	embeddings           expand.EmbeddingsWish
	effort               expand.Effort // 0 means the profile's
	profile              string
}

// asks reports whether the client wants to know what becomes of its search.
func (c *control) asks() bool { return c.explain || c.dryRun }

// cutControl returns the raw query without akin's own parameters, the rest byte
// for byte, and what these and the headers ask for. It ignores unknown values.
// A profile in a parameter overrides the header; the first of several counts.
func cutControl(rawQuery string, h http.Header) (rest string, c control) {
	for _, v := range h[controlHeader] {
		c.ask(v)
	}
	rest = answer.CutParameters(rawQuery, func(name, value string) bool {
		switch name {
		case controlParameter:
			c.ask(value)
		case profileParameter:
			c.profile = cmp.Or(c.profile, strings.TrimSpace(value))
		default:
			return false
		}
		return true
	})
	if c.profile == "" && len(h[profileHeader]) > 0 {
		c.profile = strings.TrimSpace(h[profileHeader][0])
	}
	return rest, c
}

// ask applies one value of the header or parameter, which may be a list.
func (c *control) ask(list string) {
	for value := range strings.SplitSeq(list, ",") {
		value = strings.TrimSpace(value)
		c.off = c.off || strings.EqualFold(value, controlOff)
		c.dryRun = c.dryRun || strings.EqualFold(value, controlDryRun)
		c.explain = c.explain || strings.EqualFold(value, controlExplain)
		for _, e := range expand.Efforts {
			if strings.EqualFold(value, e.String()) {
				c.effort = e
			}
		}
		if strings.EqualFold(value, controlFeedback) {
			c.feedback = expand.FeedbackOn
		}
		if strings.EqualFold(value, controlNoFeedback) {
			c.feedback = expand.FeedbackOff
		}
		if strings.EqualFold(value, controlEmbeddings) {
			c.embeddings = expand.EmbeddingsOn
		}
		if strings.EqualFold(value, controlNoEmbeddings) {
			c.embeddings = expand.EmbeddingsOff
		}
	}
}

// Off is the arm that sends searches unchanged. Other arms are profiles.
const Off = "off"

// A Trial compares two arms on the searches that it covers.
type Trial struct {
	// Name is its name in metrics and explanations.
	Name string
	// Covers reports whether searches of an index expression take part.
	Covers func(index string) bool
	// Arms are the way searches go without the trial, and the new one.
	Arms [2]string
	// Share in [0, 1] is the part of the units that gets the second arm; the
	// others get the first one.
	Share float64
	// Header has the unit that arms are drawn for, such as a session; "" draws by
	// address.
	Header string
}

// drawArm returns the first trial that covers an index expression and the
// search's arm in it, or "". Without the trial's header that is the first arm.
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

// Draws reports whether a unit is in the share. The answer is the same each
// time, in every process, and independent of other trials.
func (t *Trial) Draws(unit string) bool {
	const all = 1 << 53 // a float64 holds it exactly
	h := sha256.New()
	addText(h, t.Name)
	addText(h, unit)
	return float64(binary.BigEndian.Uint64(h.Sum(nil))%all)/all < t.Share
}
