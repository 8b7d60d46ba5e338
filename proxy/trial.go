package proxy

import (
	"net/http"
	"slices"

	"github.com/akin-search/akin/proxy/playground"
)

// enroll has a search take part in the first trial of its index, unless the
// client says how it is to be searched, or it is no user's: it becomes one of
// the profile that its arm names.
func (s *Server) enroll(x *search, r *http.Request) {
	at := slices.IndexFunc(s.opts.Trials, func(t Trial) bool { return t.Covers(x.index) })
	if _, tried := playground.Adjusted(r.Context()); tried || at < 0 || x.control.off || x.control.profile != "" || x.control.feedback != 0 {
		return
	}
	t, unit := &s.opts.Trials[at], x.client.Name
	if t.Header != "" {
		unit = r.Header.Get(t.Header)
	}
	arm := t.Arms[0]
	if unit != "" && t.Draws(unit) {
		arm = t.Arms[1]
	}
	x.report.Trial, x.report.Arm = t.Name, arm
	if x.control.off = arm == Off; !x.control.off {
		x.control.profile = arm
	}
	s.metrics.Trial(t.Name, arm)
}
