package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// answered are answers by the first digit of their status, at 0 those that
// broke off, and the time that they took.
type answered struct {
	codes [6]prometheus.Counter
	took  prometheus.Observer
}

// traffic counts requests of clients and their answers.
type traffic struct {
	inFlight      prometheus.Gauge
	search, other answered
}

func (r registering) traffic() (t traffic) {
	t.inFlight = r.NewGauge(prometheus.GaugeOpts{
		Name: "akin_requests_in_flight", Help: "Requests of clients whose answer is not sent to its end.",
	})
	codes := r.counter("akin_responses_total",
		"Answers to clients by kind of request (search, other) and class of status (2xx); aborted ones broke off, as the client or the cluster went away.",
		"kind", "code")
	// From 250 µs to 37 s: a bulk request or a slow client takes long.
	took := r.times("akin_request_duration_seconds",
		"Time from the headers of a client's request until its answer was sent to its end, by kind of request.", 250e-6, 2.5, "kind")
	of := func(kind string) (a answered) {
		for class, code := range []string{"aborted", "1xx", "2xx", "3xx", "4xx", "5xx"} {
			a.codes[class] = codes.WithLabelValues(kind, code)
		}
		a.took = took.WithLabelValues(kind)
		return a
	}
	t.search, t.other = of("search"), of("other")
	return t
}

// Begin counts a request that has come and returns the time. It is followed by
// one call of End.
func (t *traffic) Begin() time.Time {
	t.inFlight.Inc()
	return time.Now()
}

// End counts the answer to a request that began at a time. status is 0 for one
// that broke off.
func (t *traffic) End(began time.Time, search bool, status int) {
	t.inFlight.Dec()
	a := &t.other
	if search {
		a = &t.search
	}
	a.codes[min(status/100, len(a.codes)-1)].Inc()
	a.took.Observe(time.Since(began).Seconds())
}
