package proxy

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/simmatrix/store"
)

// collects returns options to collect searches, in memory.
func collects(t *testing.T, o Options, excluded ...string) Options {
	t.Helper()
	c := check.Got(searches.Open(t.Context(), searches.Options{Keep: 1}))(t)
	t.Cleanup(c.Close)
	o.Collect = Collecting{Searches: c, Below: 5, Covers: store.Covers(append([]string{"*"}, excluded...))}
	return o
}

// collected returns what was collected, as "index fields text: what it found",
// after all that waited was counted.
func (p *rig) collected(t *testing.T) (list []string) {
	t.Helper()
	p.server.collecting.close()
	for _, s := range check.Got(p.server.collecting.Searches.List(t.Context(), "", 0))(t) {
		n, found := s.Total(), []string{}
		for name, n := range map[string]int64{"none": n.None, "few": n.Few, "related": n.Related, "enough": n.Enough} {
			found = append(found, times(name, int(n))...)
		}
		slices.Sort(found)
		list = append(list, s.Index+" "+s.Fields+" "+s.Text+": "+strings.Join(found, " "))
	}
	slices.Sort(list)
	return list
}

// times is a name with how often it is there, if that is not once.
func times(name string, n int) []string {
	switch n {
	case 0:
		return nil
	case 1:
		return []string{name}
	}
	return []string{strconv.Itoa(n) + " " + name}
}

const redCar = `{"query":{"match":{"title":"Red  Car"}}}`

// foundOf is the name of what one answer says, by the metric.
func (p *rig) foundOf(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range append(foundNames(), foundUnread) {
		names = append(names, times(name, int(p.value(t, "akin_searches_found_total", "hits", name)))...)
	}
	return names
}

func TestSearchesAreCountedByWhatTheyFind(t *testing.T) {
	as := func(res expand.Result) Expander {
		return expander(func(context.Context, *expand.Request) (*expand.Result, error) { return &res, nil })
	}
	unmatched := as(expand.Result{Rewritten: true, Body: []byte(rewritten), Parts: []expand.Part{{How: expand.Widened, Nothing: true}}})
	const none, unread = `{"hits":{"total":{"value":0,"relation":"eq"},"hits":[]}}`, foundUnread
	for name, tt := range map[string]struct {
		target, header, body string
		expander             Expander
		answer               string // in HTTP
		want, found          string
	}{
		"none":                    {body: redCar, answer: answerOf(none), want: "i title red car: none", found: "none"},
		"few":                     {body: redCar, answer: answerOf(totalOf(4)), want: "i title red car: few", found: "few"},
		"enough":                  {body: redCar, answer: answerOf(totalOf(5)), found: "enough"},
		"in chunks":               {body: redCar, answer: inChunks(none), want: "i title red car: none", found: "none"},
		"gzip":                    {body: redCar, header: "Accept-Encoding: gzip\n", answer: answerOf(pack(t, none), "Content-Encoding: gzip"), want: "i title red car: none", found: "none"},
		"a packed search":         {body: pack(t, redCar), header: gzipCoding, answer: answerOf(none), want: "i title red car: none", found: "none"},
		"in the URL":              {target: "/i/_search?q=Car&df=title", answer: answerOf(none), want: "i title car: none", found: "none"},
		"in all indices":          {target: "/_search", body: redCar, answer: answerOf(none), want: " title red car: none", found: "none"},
		"no total, an empty page": {body: redCar, answer: answerOf(`{"hits":{"hits":[]}}`), want: "i title red car: none", found: "none"},
		"no total, a short page":  {body: redCar, answer: answerOf(`{"hits":{"hits":[{},{}]}}`), want: "i title red car: few", found: "few"},
		"no total, a page":        {body: redCar, answer: answerOf(`{"hits":{"hits":[{},{},{},{},{},{}]}}`), found: "enough"},
		"no total, a small page":  {body: `{"size":2,"query":{"match":{"title":"red"}}}`, answer: answerOf(`{"hits":{"hits":[{},{}]}}`), found: unread},
		"a total of at least":     {body: `{"size":2,"query":{"match":{"title":"red"}}}`, answer: answerOf(`{"hits":{"total":{"value":1,"relation":"gte"},"hits":[{},{}]}}`), found: unread},
		"a long page":             {body: `{"track_total_hits":false,"query":{"match":{"title":"red"}}}`, answer: answerOf(`{"hits":{"hits":[` + strings.Repeat(`{"a":"`+strings.Repeat("x", 7000)+`"},`, 20) + `{}]}}`), found: "enough"},
		"nothing of hits":         {target: "/i/_search?filter_path=took", body: redCar, answer: answerOf(`{"took":1}`), found: unread},
		"CBOR":                    {body: redCar, answer: answerWith(200, "Content-Type: application/cbor\n", "\xa1"), found: unread},
		"a failed shard":          {body: redCar, answer: answerOf(`{"_shards":{"failed":1},"hits":{"total":{"value":0}}}`), found: unread},
		"refused":                 {body: redCar, answer: answerWith(400, jsonType, `{"error":{}}`), found: unread},
		"no JSON":                 {body: redCar, answer: answerOf(`<html>`), found: unread},
		"a later page":            {body: `{"from":10,"query":{"match":{"title":"red"}}}`, answer: answerOf(none), found: "none"},
		"no hits wanted":          {body: `{"size":0,"query":{"match":{"title":"red"}}}`, answer: answerOf(none), found: "none"},
		"only a filter":           {body: `{"query":{"bool":{"filter":{"match":{"title":"red"}}}}}`, answer: answerOf(none), found: "none"},
		"several fields":          {body: `{"query":{"bool":{"should":[{"match":{"title":"red"}},{"match":{"body":"red"}},{"multi_match":{"query":"red","fields":["title^2","tags"]}}]}}}`, answer: answerOf(none), want: "i title,body,tags red: none", found: "none"},
		"private":                 {body: `{"query":{"match":{"title":"a@b.example"}}}`, answer: answerOf(none), found: "none"},
		"asynchronous":            {target: "/i/_async_search", body: redCar, answer: answerOf(`{"response":` + none + `}`), found: unread},
		"a count":                 {target: "/i/_count", body: redCar, answer: answerOf(`{"count":0}`)},
		"akin is off":             {target: "/i/_search?akin=off", body: redCar, answer: answerOf(none), found: "none"},
		"only related words find": {
			body: redCar, answer: answerOf(totalOf(7)), expander: unmatched,
			want: "i title red car: related", found: "related",
		},
		"nothing at all, by related words": {
			body: redCar, answer: answerOf(none), expander: unmatched,
			want: "i title red car: none", found: "none",
		},
		"several": {
			target: "/i/_msearch", header: ndjsonType, found: "2 none few enough",
			body:   "{}\n" + redCar + "\n{\"index\":\"j\"}\n" + redCar + "\n{}\n{\"query\":{\"match\":{\"a\":\"b\"}}}\n{}\n" + redCar + "\n",
			answer: answerOf(responses(none, totalOf(1), totalOf(9), none)),
			want:   "i title red car: none, j title red car: few",
		},
		"patterns of fields as explained": {
			body: `{"query":{"multi_match":{"query":"red","fields":["ti*"]}}}`, answer: answerOf(none), want: "i title,tint red: none", found: "none",
			expander: as(expand.Result{Clauses: []expand.Explanation{{Path: "query.multi_match", Field: "title"}, {Path: "query.multi_match", Field: "tint"}}}),
		},
		"patterns of fields": {body: `{"query":{"multi_match":{"query":"red","fields":["ti*"]}}}`, answer: answerOf(none), want: "i ti* red: none", found: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.expander == nil {
				tt.expander = expander(leaveAlone)
			}
			if tt.target == "" {
				tt.target = "/i/_search"
			}
			if !strings.Contains(tt.header, "Content-Type") && tt.body != "" {
				tt.header += jsonType
			}
			p := start(t, collects(t, Options{Expander: tt.expander}), inTurn(tt.answer))
			got := p.post(t, tt.target, tt.header, tt.body)
			check.Equal(t, bodyOf(tt.answer), bodyOf(got), "the client")
			check.Equal(t, tt.want, strings.Join(p.collected(t), ", "))
			check.Equal(t, tt.found, strings.Join(p.foundOf(t), " "))
		})
	}
}

// What the search as typed finds was seen in the first answer.
func TestWhatOnlyRelatedWordsFindIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		typed int
		want  string
	}{"nothing as typed": {0, "i title red car: related"}, "little as typed": {1, ""}} {
		p := start(t, collects(t, Options{Expander: waiting{rewriteTo(rewritten), []int{10}}}), inTurn(answerOf(totalOf(tt.typed)), answerOf(totalOf(8))))
		p.post(t, "/i/_search", jsonType, redCar)
		check.Equal(t, tt.want, strings.Join(p.collected(t), ", "), name)
	}
}

func TestATextThatIsKeptIsCountedWhenItFindsEnough(t *testing.T) {
	p := start(t, collects(t, Options{Expander: expander(leaveAlone)}), inTurn(answerOf(totalOf(0)), answerOf(totalOf(9))))
	for range 3 {
		p.post(t, "/i/_search", jsonType, redCar)
	}
	check.Equal(t, []string{"i title red car: 2 enough none"}, p.collected(t))
}

func TestTextsAreNotKept(t *testing.T) {
	for name, tt := range map[string]struct {
		o        Options
		excluded []string
		index    string
		status   int // of the list
	}{
		"of a cluster with security": {Options{Secured: true, HideFrom: expand.DiscloseSecured}, nil, "i", http.StatusForbidden},
		"where words are hidden":     {Options{HideFrom: expand.DiscloseProfile}, nil, "i", http.StatusForbidden},
		"of an excluded index":       {Options{}, []string{"-i*"}, "index", http.StatusOK},
		"of one among others":        {Options{}, []string{"-i*"}, "a,index", http.StatusOK},
		"of a pattern of it":         {Options{}, []string{"-index"}, "i*", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			tt.o.Expander = expander(leaveAlone)
			p := start(t, collects(t, tt.o, tt.excluded...), inTurn(answerOf(totalOf(0))))
			p.post(t, "/"+tt.index+"/_search", jsonType, redCar)
			check.Equal(t, []string(nil), p.collected(t))
			check.Equal(t, []string{"none"}, p.foundOf(t), "the metric")
			var got struct{ Searches []searches.Search }
			check.Equal(t, tt.status, getAdmin(t, p.server, searchesPath, &got))
			check.Equal(t, 0, len(got.Searches))
		})
	}
}

func TestTextsThatAreKeptAreForgottenOnceSecurityIsKnown(t *testing.T) {
	p := start(t, collects(t, Options{Expander: expander(leaveAlone), HideFrom: expand.DiscloseSecured}), inTurn(answerOf(totalOf(0)), answerWith(401, jsonType, `{}`)))
	p.post(t, "/i/_search", jsonType, redCar)
	p.post(t, "/i/_search", jsonType, redCar)
	check.Equal(t, []string(nil), p.collected(t))
}

func TestListOfSearches(t *testing.T) {
	p := start(t, collects(t, Options{Expander: expander(leaveAlone)}), inTurn(answerOf(totalOf(0))))
	for _, index := range []string{"a", "b", "b"} {
		p.post(t, "/"+index+"/_search", jsonType, redCar)
	}
	p.server.collecting.close()
	for query, want := range map[string]string{"": "ba", "?limit=1": "b", "?index=a": "a", "?index=%2A": "ba", "?index=c": ""} {
		var got struct{ Searches []searches.Search }
		check.Equal(t, http.StatusOK, getAdmin(t, p.server, searchesPath+query, &got))
		var indices []string
		for _, s := range got.Searches {
			indices = append(indices, s.Index)
			check.That(t, s.Text == "red car" && len(s.Days) == 1, "%+v", s)
		}
		check.Equal(t, want, strings.Join(indices, ""), query)
	}
	for query, status := range map[string]int{"?limit=0": 400, "?limit=x": 400} {
		var refusal errorAnswer
		check.Equal(t, status, getAdmin(t, p.server, searchesPath+query, &refusal), query)
	}
	var refusal errorAnswer
	check.Equal(t, http.StatusNotFound, getAdmin(t, newServer(t, Options{}), searchesPath, &refusal))
	check.That(t, strings.Contains(refusal.Error.Reason, "searches.collect"), "%v", refusal)
}

// Searches of the playground are trials, and not those of users.
func TestSearchesOfThePlaygroundAreNotCounted(t *testing.T) {
	p := start(t, collects(t, Options{Expander: expander(leaveAlone)}), inTurn(answerOf(totalOf(0))))
	w := answerAdmin(p.server, adminRequest(http.MethodPost, "/_akin/playground/search", `{"index":"i","body":`+redCar+`}`), "Content-Type", "application/json")
	check.Must(t, w.Code == http.StatusOK && len(p.searches()) > 0, "%d %s", w.Code, w.Body)
	check.Equal(t, []string(nil), p.collected(t))
	check.Equal(t, []string(nil), p.foundOf(t))
}
