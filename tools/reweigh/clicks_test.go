package reweigh

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func clicks(t *testing.T, log string) *ClickLog {
	t.Helper()
	return check.Got(ReadClicks(strings.NewReader(log)))(t)
}

func TestClicksOnWhatWasNotShownAreNamed(t *testing.T) {
	log := clicks(t, "\ufeff"+`{"query_id":"1","query":"car hire","shown":["a","b"],"clicked":["b","c","b"],"arm":["x","y"]}`+"\n\n"+
		`{"query":"wing","shown":["a"],"clicked":[]}`+"\r\n  \r\n")
	want := &ClickLog{
		Impressions: []Impression{{QueryID: "1", Query: "car hire", Shown: []string{"a", "b"}, Clicked: []string{"b"}}, {Query: "wing", Shown: []string{"a"}}},
		NotShown:    []string{"c"},
	}
	check.Equal(t, want, log)
}

func TestADocumentThatWasShownTwiceIsClickedOnce(t *testing.T) {
	log := clicks(t, `{"query":"wing","shown":["a","b","a"],"clicked":["a"]}`)
	check.Equal(t, (Opinion{Gain: 0.5, Count: 1}), log.Searches()[0].Documents["a"])
}

func TestBadLogsAreRefusedWithTheirLine(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"empty":    {"\n\n", ErrEmpty.Error()},
		"no JSON":  {`{"query":"a","shown":["b"]}` + "\nclick", "line 2"},
		"no query": {`{"shown":["b"]}`, "line 1"},
		"nothing":  {`{"query":"a","shown":[]}`, "line 1"},
		"too long": {`{"query":"` + strings.Repeat("a", maxLine), "line 1"},
	} {
		check.Message(t, c.want, check.ErrOf(ReadClicks(strings.NewReader(c.log))), name)
	}
}

func TestClicksFartherDownSayMore(t *testing.T) {
	shown := []string{"a", "b", "c", "d"}
	log := &ClickLog{}
	for k := range 8 {
		i := Impression{Query: "q", Shown: shown}
		if k%4 == 0 {
			i.Clicked = []string{"a", "d"}
		}
		log.add(i)
	}
	searches := log.Searches()
	// 2 clicks; 8 looks and one more at the first, 8/4 and one more at the fourth
	want := []Search{{Text: "q", Documents: map[string]Opinion{"a": {2.0 / 9, 2}, "b": {}, "c": {}, "d": {2.0 / 3, 2}}}}
	check.Equal(t, want, searches)
}

func FuzzGainsAreShares(f *testing.F) {
	f.Add([]byte(`{"query":"a","shown":["b","c"],"clicked":["c"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := ReadClicks(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		for _, q := range log.Searches() {
			for id, d := range q.Documents {
				check.That(t, d.Gain >= 0 && d.Gain <= 1 && (d.Gain > 0) == (d.Count > 0), "%q: %+v", id, d)
			}
		}
	})
}
