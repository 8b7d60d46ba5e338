package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clientsIndex is the index that the programs make; one of them adds a month
// to its name.
const clientsIndex = "akin-e2e-clients"

// TestClientLibrariesWorkAsWithoutAkin runs every program directly, through
// an akin that has nothing to add to its searches, and through one that does.
func TestClientLibrariesWorkAsWithoutAkin(t *testing.T) {
	t.Parallel()
	matrix := relatedFile(t, vectorsA)
	var documents []section
	for _, d := range relatedDocuments() {
		documents = append(documents, section{"id": d.id, "fields": d.fields})
	}
	fixture := writeFile(t, "fixture.json", `{"definition":`+relatedDefinition+`,"documents":`+toJSON(t, documents)+`}`)
	eachEngine(t, func(t *testing.T, e *engine) {
		programs := slices.DeleteFunc(slices.Clone(clientPrograms), func(p clientProgram) bool { return !slices.Contains(p.engines, e.name) })
		if len(programs) == 0 {
			return // no library is made for this engine
		}
		idle := serveClients(t, e, section{"name": "main", "file": matrix, "indices": []string{"akin-e2e-elsewhere"}})
		wide := serveClients(t, e, section{"name": "main", "file": matrix})
		for _, p := range programs {
			t.Run(p.name, func(t *testing.T) {
				direct := p.runFresh(t, e, e.url, fixture)
				p.checkErrors(t, direct.steps)
				compareRuns(t, direct, p.runFresh(t, e, idle.url, fixture))
				compareWidened(t, direct, p.runFresh(t, e, wide.url, fixture))
			})
		}
	})
}

// serveClients starts akin before e with one matrix.
func serveClients(t *testing.T, e *engine, matrix section) *akin {
	t.Helper()
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience, "default_fields": []string{"body"}},
		"matrices":  []section{matrix},
	})
	a.awaitMatrix(t, "main")
	return a
}

// A clientRun is what a program did, and how it used its connections.
type clientRun struct {
	steps   []clientStep
	traffic traffic
}

// runFresh runs the program on an engine that has none of its indices.
func (p clientProgram) runFresh(t *testing.T, e *engine, base, fixture string) clientRun {
	t.Helper()
	drop := func() {
		for _, suffix := range []string{"", "-2026.01", "-2026.02"} {
			e.dropIndex(clientsIndex + suffix)
		}
	}
	drop()
	t.Cleanup(drop)
	r := startRelay(t, base)
	steps := p.run(t, r.url, clientsIndex, fixture)
	return clientRun{steps, r.traffic()}
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

// compareRuns compares every step of a run through akin with the direct one,
// and the use of compression and of connections. A client that does not read
// an answer to its end can reuse the connection only where the end came in
// one piece, so that the number of connections is not the same every time.
func compareRuns(t *testing.T, direct, through clientRun) {
	t.Helper()
	compareSteps(t, direct.steps, through.steps)
	if want, got := direct.traffic.ZippedRequests, through.traffic.ZippedRequests; got != want || got == 0 {
		t.Errorf("%d compressed requests directly, %d through akin", want, got)
	}
	for _, n := range []traffic{direct.traffic, through.traffic} {
		if n.ZippedAnswers == 0 || n.Requests < 3*n.Connections {
			t.Errorf("want compressed answers, and several requests over a connection: %+v", n)
		}
	}
	t.Logf("directly %+v, through akin %+v", direct.traffic, through.traffic)
}

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
func compareWidened(t *testing.T, direct, through clientRun) {
	t.Helper()
	others := func(steps []clientStep) []clientStep {
		return slices.DeleteFunc(slices.Clone(steps), clientStep.searchesCar)
	}
	compareSteps(t, others(direct.steps), others(through.steps))
	searched := 0
	for i, s := range direct.steps {
		if !s.searchesCar() {
			continue
		}
		searched++
		before, after := s.text(t), through.steps[i].text(t)
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
