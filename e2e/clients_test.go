package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clientsIndex is the index that the programs make, and another one with a month
// behind its name.
const clientsIndex = "akin-e2e-clients"

// TestClientLibrariesWorkAsWithoutAkin runs every program directly, through
// an akin that has nothing to add to its searches, and through one that does.
func TestClientLibrariesWorkAsWithoutAkin(t *testing.T) {
	long(t)
	t.Parallel()
	matrix := relatedFile(t, vectorsA)
	var documents []section
	for _, d := range relatedDocuments() {
		documents = append(documents, section{"id": d.id, "fields": d.fields})
	}
	fixture := writeFile(t, "fixture.json", `{"definition":`+relatedDefinition+`,"documents":`+toJSON(t, documents)+`}`)
	eachEngine(t, func(t *testing.T, e *engine) {
		serve := func(matrix section) *akin {
			return setupWide(t, e, section{"expansion": section{"default_fields": []string{"body"}}, "matrices": []section{matrix}})
		}
		idle := serve(section{"name": "main", "file": matrix, "indices": []string{"akin-e2e-elsewhere"}})
		wide := serve(section{"name": "main", "file": matrix})
		drop := func() {
			for _, suffix := range []string{"", "-2026.01"} {
				e.dropIndex(clientsIndex + suffix)
			}
		}
		t.Cleanup(drop)
		for _, p := range clientPrograms {
			if !slices.Contains(p.engines, e.name) {
				continue // the library is not made for this engine
			}
			t.Run(p.name, func(t *testing.T) {
				var runs [3][]clientStep
				var used [3]traffic
				for i, base := range []string{e.url, idle.url, wide.url} {
					drop()
					r := startRelay(t, base) // whose address is none that the engine tells of its nodes
					runs[i] = p.run(t, r.url, clientsIndex, fixture)
					used[i] = r.traffic()
				}
				p.checkErrors(t, runs[0])
				compareSteps(t, runs[0], runs[1])
				compareTraffic(t, used[0], used[1])
				compareWidened(t, runs[0], runs[2])
			})
		}
	})
}

// clientErrors are the steps that end in an error, with status and type as
// the engines answer.
var clientErrors = map[string]string{
	"create index again": "400 resource_already_exists_exception",
	"missing index":      "404 index_not_found_exception",
	"bad query":          "400 parsing_exception",
	"bad value":          "400 search_phase_execution_exception",
	"get missing":        "404",
	"delete missing":     "404",
	"update conflict":    "409 version_conflict_engine_exception",
	"create conflict":    "409 version_conflict_engine_exception",
	"cluster's timeout":  "408",
}

// checkErrors checks that steps fail which have to, in the way that the
// library surfaces it, and no other: else two runs could be equal because
// nothing works.
func (p clientProgram) checkErrors(t *testing.T, steps []clientStep) {
	t.Helper()
	for _, s := range steps {
		switch want := clientErrors[s.Step]; {
		case s.Step == "async search", s.Step == "no JSON":
			// The engines of these tests have no asynchronous search, and
			// each has its own word for broken JSON.
		case s.Step == "client's timeout":
			if s.Error == nil || s.Error.Class != p.timesOut {
				t.Errorf("%s: %s, want %s", s.Step, s.text(t), p.timesOut)
			}
		case want == "" && s.Error != nil, want != "" && s.Error == nil:
			t.Errorf("%s: %s, want error: %q", s.Step, s.text(t), want)
		case want != "" && (s.Error.kind() != want || s.Error.Class != p.class(s.Error)):
			t.Errorf("%s: %s %s, want %s %s", s.Step, s.Error.Class, s.Error.kind(), p.class(s.Error), want)
		}
	}
}

// class returns the class that the library has for an error.
func (p clientProgram) class(e *clientError) string {
	for _, key := range []string{e.kind(), strconv.Itoa(e.Status)} {
		if class := p.classes[key]; class != "" {
			return class
		}
	}
	return p.classes[""]
}

// compareTraffic compares the use of compression and of connections. A client
// that does not read an answer to its end can reuse the connection only where
// the end came in one piece, so that the number of connections varies.
func compareTraffic(t *testing.T, direct, through traffic) {
	t.Helper()
	if want, got := direct.ZippedRequests, through.ZippedRequests; got != want || got == 0 {
		t.Errorf("%d compressed requests directly, %d through akin", want, got)
	}
	for _, n := range []traffic{direct, through} {
		if n.ZippedAnswers == 0 || n.Requests < 3*n.Connections {
			t.Errorf("want compressed answers, and several requests over a connection: %+v", n)
		}
	}
}

// compareSteps compares every step of a run through akin with the direct one.
func compareSteps(t *testing.T, direct, through []clientStep) {
	t.Helper()
	if len(direct) != len(through) {
		t.Fatalf("%d steps directly, %d through akin", len(direct), len(through))
	}
	for i, s := range direct {
		if diff := cmp.Diff(s.text(t), through[i].text(t)); diff != "" {
			t.Errorf("%s (-direct +through akin):\n%s", s.Step, diff)
		}
	}
}

// compareWidened looks for the document that has a related word only in
// every step that searches for car, and compares all other steps.
func compareWidened(t *testing.T, direct, through []clientStep) {
	t.Helper()
	others := func(steps []clientStep) []clientStep {
		return slices.DeleteFunc(slices.Clone(steps), clientStep.searchesCar)
	}
	compareSteps(t, others(direct), others(through))
	searched := 0
	for i, s := range direct {
		if !s.searchesCar() {
			continue
		}
		searched++
		before, after := s.text(t), through[i].text(t)
		found := func(text string) bool {
			return strings.Contains(text, `"automobile"`) || strings.Contains(text, `"count":4`)
		}
		if !strings.Contains(before, `"car-automobile"`) && !strings.Contains(before, `"car automobile"`) && !strings.Contains(before, `"count":3`) {
			t.Errorf("%s does not find the documents about cars: %.600q", s.Step, before)
		}
		if found(before) || !found(after) {
			t.Errorf("%s: want automobile only through akin\ndirectly %.600q\nthrough akin %.600q", s.Step, before, after)
		}
	}
	if searched < 5 {
		t.Errorf("%d steps search for car", searched)
	}
}

// searchesCar reports whether the step searches for a word with neighbors.
func (s clientStep) searchesCar() bool { return strings.Contains(s.Step, "car") }
