package proxy

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
)

// How a client controls its search. None of these reaches the cluster.
const (
	controlHeader    = "X-Akin"
	profileHeader    = "X-Akin-Profile"
	controlParameter = "akin"
	profileParameter = "akin_profile"
)

// The values of controlHeader and controlParameter, in any case.
const (
	controlOff     = "off"     // the search goes out as it came, unread
	controlDryRun  = "dry-run" // the search goes out as it came, and what would have become of it is kept
	controlExplain = "explain" // what became of the search is kept

	controlFeedback   = "feedback"    // terms of the first hits are added
	controlNoFeedback = "no-feedback" // none are
)

// A control is what a client asks of akin for one search; the zero value asks
// for nothing. The profile "" is the configuration's own.
type control struct {
	off, dryRun, explain bool
	feedback             expand.FeedbackWish
	profile              string
}

// asks reports whether the client wants to know what becomes of its search.
func (c *control) asks() bool { return c.explain || c.dryRun }

// cutControl returns the raw query without akin's own parameters, all else byte
// for byte, and what they and the headers ask for. Unknown values are ignored.
// A profile in a parameter goes before one in a header; the first of several
// counts.
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

// ask takes in one value of the header or the parameter, which may be a list.
func (c *control) ask(list string) {
	for value := range strings.SplitSeq(list, ",") {
		value = strings.TrimSpace(value)
		c.off = c.off || strings.EqualFold(value, controlOff)
		c.dryRun = c.dryRun || strings.EqualFold(value, controlDryRun)
		c.explain = c.explain || strings.EqualFold(value, controlExplain)
		if strings.EqualFold(value, controlFeedback) {
			c.feedback = expand.FeedbackOn
		}
		if strings.EqualFold(value, controlNoFeedback) {
			c.feedback = expand.FeedbackOff
		}
	}
}
