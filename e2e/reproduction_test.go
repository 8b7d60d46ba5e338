package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix/softcosine"
)

// Names in the golden file besides those of settings.
const (
	engineFigures = "search engine"
	cosineFigures = "cosine"
	chosenFigures = "chosen on train2"
)

// targets are the lowest means that the recipe has to reach with C = 100.
var targets = map[string]float64{
	figure(trainPart, hardMeasure): 0.75,
	figure(trainPart, softMeasure): 0.75,
	figure(devPart, hardMeasure):   0.71,
	figure(devPart, softMeasure):   0.72,
}

// engineMargin is how far under the search engine's own order the recipe may
// stay: half a point.
const engineMargin = 0.005

// publishedEngine is what the organizers of the task publish for the search
// engine's own order on dev. It tells that the scorer is theirs: the mean over
// all 50 questions, of which 7 have no relevant candidate and count 0.
const publishedEngine = 0.7135

// A reproduction is one run.
type reproduction struct {
	forum    *forum
	matrices *forumMatrices
	weights  []float64
	parts    map[string]forumVectors
	figures  reproFigures
	// precisions are those of every question by figure.
	precisions map[string]map[string][]float64
}

// TestReproduction repeats the experiments of the thesis, sections 4.7 and 3.4,
// with matrices of akin's own builders. It measures the headline settings in every
// run, and all sweeps with AKIN_E2E_COLLECTIONS=all.
func TestReproduction(t *testing.T) {
	long(t)
	t.Parallel()
	r := newReproduction(loadForum(t))
	r.baselines(t)
	headlines := r.matrices.headlines(t)
	for setting, s := range headlines {
		r.measure(t, setting.String(), s)
	}
	r.threadParts(t, headlines[defaultSetting(relMatrix)])
	r.differences()
	r.segments(t)
	if os.Getenv("AKIN_E2E_COLLECTIONS") == "all" {
		for _, setting := range sweptSettings() {
			r.measure(t, setting.String(), r.matrices.swept(t, setting))
		}
		r.choose()
		r.otherSeeds(t)
		r.allSegments(t)
	}
	if *update {
		r.accept(t)
	}
	for _, moved := range movedReproduction(acceptedReproduction(t), r.figures) {
		t.Errorf("%s (-update accepts it)", moved)
	}
	for _, missed := range r.figures.missed() {
		t.Error(missed)
	}
}

func newReproduction(f *forum) *reproduction {
	r := &reproduction{
		forum: f, matrices: newForumMatrices(f), parts: map[string]forumVectors{},
		figures: reproFigures{}, precisions: map[string]map[string][]float64{},
	}
	r.weights = r.matrices.weights()
	r.take(titleAndText)
	return r
}

// take makes the vectors of a part of the threads.
func (r *reproduction) take(of threadPart) {
	for part, questions := range r.forum.parts {
		r.parts[part] = r.matrices.vectors(questions, of)
	}
}

// threadParts measures the recipe and the cosine on other parts of the threads.
func (r *reproduction) threadParts(t *testing.T, s *softcosine.Similarities) {
	t.Helper()
	for _, of := range []threadPart{titleOnly, wholeThread} {
		r.take(of)
		r.cosine(t, partOf(cosineFigures, of))
		r.measure(t, partOf(defaultSetting(relMatrix).String(), of), s)
	}
	r.take(titleAndText)
}

// partOf names what was measured on a part of the threads.
func partOf(name string, of threadPart) string { return name + ", " + string(of) }

// note takes the average precisions of a figure.
func (r *reproduction) note(name, figure string, precisions []float64) {
	if r.figures[name] == nil {
		r.figures[name], r.precisions[name] = map[string]float64{}, map[string][]float64{}
	}
	r.figures[name][figure], r.precisions[name][figure] = mean(precisions), precisions
}

// baselines measures the search engine's own order, and the cosine.
func (r *reproduction) baselines(t *testing.T) {
	t.Helper()
	for part, vectors := range r.parts {
		r.note(engineFigures, part, vectors.precisions(t, func(_, _ softcosine.Vector) (float64, error) { return 0, nil }))
	}
	if got := r.figures[engineFigures][devPart]; fmt.Sprintf("%.4f", got) != fmt.Sprintf("%.4f", publishedEngine) {
		t.Errorf("the search engine's order scores %.4f on %s, published is %.4f", got, devPart, publishedEngine)
	}
	r.cosine(t, cosineFigures)
}

// cosine measures the cosine under a name.
func (r *reproduction) cosine(t *testing.T, name string) {
	t.Helper()
	space, err := softcosine.NewSpace(r.weights, softcosine.Identity(len(r.weights)))
	if err != nil {
		t.Fatal(err)
	}
	for part, vectors := range r.parts {
		r.note(name, part, vectors.precisions(t, func(x, y softcosine.Vector) (float64, error) { return space.Cosine(x, y), nil }))
	}
}

// measure measures one S under a name.
func (r *reproduction) measure(t *testing.T, name string, s *softcosine.Similarities) {
	t.Helper()
	for measure, of := range spaceMeasures(t, r.weights, s) {
		for part, vectors := range r.parts {
			r.note(name, figure(part, measure), vectors.precisions(t, of))
		}
	}
	r.figures[name][densityFigure] = s.Density()
}

// A reproContrast is of two rankings by S_rel, or of one with a baseline.
type reproContrast struct{ better, than string }

func (c reproContrast) String() string { return c.better + " minus " + c.than }

// reproContrasts are those that get an interval.
func reproContrasts() []reproContrast {
	return []reproContrast{
		{softMeasure, cosineFigures},
		{hardMeasure, cosineFigures},
		{softMeasure, engineFigures},
		{hardMeasure, engineFigures},
		{softMeasure, hardMeasure},
		{softMeasure, innerMeasure},
		{softMeasure, partOf(cosineFigures, wholeThread)},
	}
}

// differences notes the intervals.
func (r *reproduction) differences() {
	rel := defaultSetting(relMatrix).String()
	of := func(ranking, part string) []float64 {
		if baseline := r.precisions[ranking]; baseline != nil {
			return baseline[part]
		}
		return r.precisions[rel][figure(part, ranking)]
	}
	for _, c := range reproContrasts() {
		figures := map[string]float64{}
		for part := range r.parts {
			d := compareMeans(of(c.better, part), of(c.than, part))
			figures[part], figures[part+lowEnd], figures[part+highEnd] = d.mean, d.low, d.high
		}
		r.figures[c.String()] = figures
	}
}

// choose notes the setting with the highest soft cosine on train part 2. Of
// equal ones that with fewer entries is taken.
func (r *reproduction) choose() {
	best := defaultSetting(relMatrix).String()
	for _, setting := range slices.Concat(headlineSettings(), sweptSettings()) {
		a, b := r.figures[setting.String()], r.figures[best]
		train := figure(trainPart, softMeasure)
		if a[train] > b[train] || (a[train] == b[train] && a[densityFigure] < b[densityFigure]) {
			best = setting.String()
		}
	}
	r.figures[chosenFigures+": "+best] = r.figures[best]
}

// otherSeeds measures the recipe with other random projections, which tell
// nothing but how much of a figure is chance.
func (r *reproduction) otherSeeds(t *testing.T) {
	t.Helper()
	setting := defaultSetting(relMatrix)
	for _, setting.seed = range reproSeeds() {
		r.measure(t, setting.String(), r.matrices.learnedWith(t, setting))
	}
}

// accept takes what was measured into the golden file and draws the figures
// that show it.
func (r *reproduction) accept(t *testing.T) {
	t.Helper()
	accepted := acceptedReproduction(t)
	for name := range r.figures {
		if strings.HasPrefix(name, chosenFigures) { // in place of what was chosen before
			maps.DeleteFunc(accepted, func(name string, _ map[string]float64) bool { return strings.HasPrefix(name, chosenFigures) })
		}
	}
	maps.Copy(accepted, r.figures)
	if err := os.WriteFile(reproductionFile, []byte(formatReproduction(accepted)), 0o644); err != nil {
		t.Fatal(err)
	}
	accepted = acceptedReproduction(t) // rounded
	for file, drawn := range segmentFigures(t, accepted) {
		if err := os.WriteFile(file, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sweeps() {
		if s.name == "" {
			continue
		}
		if err := os.WriteFile(sweepFile(s), drawSweep(t, s, accepted), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// missed describes every target that the recipe does not reach.
func (all reproFigures) missed() []string {
	var missed []string
	rel := all[defaultSetting(relMatrix).String()]
	for f, least := range targets {
		if !(rel[f] >= least) {
			missed = append(missed, fmt.Sprintf("%s is %.4f, the target is %.4f", f, rel[f], least))
		}
	}
	for _, part := range []string{trainPart, devPart} {
		for _, measure := range []string{hardMeasure, softMeasure} {
			if f := figure(part, measure); !(rel[f] >= all[engineFigures][part]-engineMargin) {
				missed = append(missed, fmt.Sprintf("%s is %.4f, the search engine's order %.4f", f, rel[f], all[engineFigures][part]))
			}
		}
	}
	return append(missed, all.missedSegments()...)
}

func TestAcceptedReproductionReachesTheTargets(t *testing.T) {
	accepted := acceptedReproduction(t)
	for _, missed := range accepted.missed() {
		t.Error(missed)
	}
	accepted[defaultSetting(relMatrix).String()][figure(devPart, softMeasure)] = 0.7
	if got := accepted.missed(); len(got) != 2 {
		t.Errorf("missed with a soft cosine of 0.7: %q, want the target and the search engine", got)
	}
}
