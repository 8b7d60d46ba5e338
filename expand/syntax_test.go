package expand

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

const carAndRental = `{"query_string":{"query":"car AND (rental OR zeppelin)","default_field":"body"}}`

func TestSearchWithOperatorsThatFindsEnoughIsOnlyRescored(t *testing.T) {
	r := expandRequest(t, &Request{Body: []byte(`{"query":` + carAndRental + `}`)}, func(_ *fakeCluster, o *Profile) {
		o.Matching, o.Enough, o.Scoring = Auto, 1, form.Auto
	})
	query, rescore, _ := strings.Cut(string(r.Body), `,"rescore":`)
	check.Equal(t, `{"query":`+carAndRental, query)
	check.That(t, strings.Contains(rescore, `{"dis_max":{"queries":[`+carAndRental+`,{"bool":{"must":[`) && strings.Contains(rescore, "automobile") && strings.Contains(rescore, "hire"), "%s", rescore)
}

func TestQueryStringWithoutNeighborsStaysAsItCame(t *testing.T) {
	const client = `{"query_string":{"query":"zeppelin AND (gondola OR \"car\")","default_field":"body"}}`
	r := expandRequest(t, &Request{Body: []byte(`{"query":{"bool":{"must":[` + client + `,{"match":{"body":"car"}}]}}}`)}, nil)
	check.That(t, r.Rewritten && strings.HasPrefix(string(r.Body), `{"query":{"bool":{"must":[`+client+`,{"bool"`), "%s", r.Body)
}

func TestHighlightersMarkTheWordsOfTheClientsQueryString(t *testing.T) {
	r := expandRequest(t, &Request{Body: []byte(`{"highlight":{"fields":{"body":{}}},"query":` + carAndRental + `}`)}, nil)
	check.That(t, strings.HasPrefix(string(r.Body), `{"highlight":{"highlight_query":`+carAndRental+`,"fields"`), "%s", r.Body)
}

func TestTextsWithOperatorsAreLeftInOtherModesAndWithSegments(t *testing.T) {
	for name, change := range map[string]func(c *fakeCluster, o *Profile){
		"hard":     func(_ *fakeCluster, o *Profile) { o.Mode = ModeHard },
		"soft":     func(_ *fakeCluster, o *Profile) { o.Mode = ModeSoft },
		"segments": func(_ *fakeCluster, o *Profile) { o.Segments = []form.Segments{bodySegments(nil)} },
	} {
		r := expandRequest(t, &Request{Body: []byte(`{"query":` + carAndRental + `}`)}, change)
		check.Equal(t, reason.Syntax, r.Reason, name)
	}
}
