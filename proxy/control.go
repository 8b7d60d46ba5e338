package proxy

import (
	"net/http"
	"strings"

	"github.com/akin-search/akin/proxy/wire"
)

// The headers and the parameters by which a client says what is to become of
// its search. None of them reaches the cluster.
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
)

// Reasons to leave a search alone that lie in what it asks for.
const (
	reasonOff            = "off"             // the client asked for it
	reasonDisabled       = "disabled"        // there is no expander, or the profile is switched off
	reasonUnknownProfile = "unknown_profile" // no profile has the name that the client gave
)

// A control is what a client asks of akin for one search. The zero value is
// what one asks that does not know of akin.
type control struct {
	off, dryRun, explain bool
	// profile names the profile to expand with; "" is the configuration's own.
	profile string
}

// asks reports whether the client wants to know what becomes of its search.
func (c *control) asks() bool { return c.explain || c.dryRun }

// cutControl returns the raw query without akin's own parameters, all else byte
// for byte, and what they and the headers ask for. Values that mean nothing are
// ignored. A profile in a parameter goes before one in a header, and the first
// of several counts.
func cutControl(rawQuery string, h http.Header) (rest string, c control) {
	for _, v := range h[controlHeader] {
		c.ask(v)
	}
	profile := ""
	rest = wire.CutParameters(rawQuery, func(name, value string) bool {
		switch name {
		case controlParameter:
			c.ask(value)
		case profileParameter:
			if profile == "" {
				profile = strings.TrimSpace(value)
			}
		default:
			return false
		}
		return true
	})
	if profile == "" && len(h[profileHeader]) > 0 {
		profile = strings.TrimSpace(h[profileHeader][0])
	}
	c.profile = profile
	return rest, c
}

// ask takes in one value of the header or the parameter, which may be a list.
func (c *control) ask(list string) {
	for value := range strings.SplitSeq(list, ",") {
		switch value = strings.TrimSpace(value); {
		case strings.EqualFold(value, controlOff):
			c.off = true
		case strings.EqualFold(value, controlDryRun):
			c.dryRun = true
		case strings.EqualFold(value, controlExplain):
			c.explain = true
		}
	}
}

// expanderFor returns the expander of a profile, or the reason why a search
// with it is not expanded.
func (s *Server) expanderFor(profile string) (e Expander, reason string) {
	e = s.opts.Expander
	if profile != "" {
		var known bool
		if e, known = s.opts.Profiles[profile]; !known {
			return nil, reasonUnknownProfile
		}
	}
	if e == nil {
		return nil, reasonDisabled
	}
	return e, ""
}
