package e2e

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// Each test here checks one slip of the papers: that the printed value does not
// follow, and that the right one does. None touches an idea or a result. n is the
// number of terms, C the most neighbors of a term, M the most terms of a text.
// reproductionDoc names the tests.

// slipSpace returns the space of n terms with the given weights and entries;
// no weights are weights of 1.
func slipSpace(t *testing.T, n int, weights []float64, entries map[[2]int32]float64) *softcosine.Space {
	t.Helper()
	s, err := softcosine.NewSimilarities(n, maps.All(entries))
	if err != nil {
		t.Fatal(err)
	}
	if weights == nil {
		weights = slices.Repeat([]float64{1}, n)
	}
	space, err := softcosine.NewSpace(weights, s)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// bothWays returns entries both ways.
func bothWays(entries map[[2]int32]float64) map[[2]int32]float64 {
	all := maps.Clone(entries)
	for at, s := range entries {
		all[[2]int32{at[1], at[0]}] = s
	}
	return all
}

func slipVector(values ...float64) softcosine.Vector {
	coordinates := map[int32]float64{}
	for k, v := range values {
		coordinates[int32(k)] = v
	}
	return softcosine.NewVector(coordinates)
}

// checkSlip compares a value with the right one, to the digits given.
func checkSlip(t *testing.T, what string, got, right, precision float64) {
	t.Helper()
	if math.Abs(got-right) > precision {
		t.Errorf("%s is %v, want %v", what, got, right)
	}
}

// TestSlipCosineOfTheExample is of thesis 4.1: when, Antony, found, Julius, Caesar, dead, I,
// did, enact, was, killed, i', the, Capitol. Printed: cosine ≈ 0.26. Right: 0.2265: "I" is
// there twice.
func TestSlipCosineOfTheExample(t *testing.T) {
	d1 := slipVector(1, 1, 1, 1, 1, 1)
	once := slipVector(0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1)
	twice := slipVector(0, 0, 0, 1, 1, 0, 2, 1, 1, 1, 1, 1, 1, 1)
	plain := slipSpace(t, 14, nil, nil)
	checkSlip(t, "cosine, I counted once", plain.Cosine(d1, once), 0.2582, 5e-5)
	checkSlip(t, "cosine of the frequencies", plain.Cosine(d1, twice), 0.2265, 5e-5)
}

// TestSlipWeightFive is of thesis 4.1. Printed: 0.89 for weight 5 on Antony, Julius, Caesar.
// Right: 0.7434; 0.8934 is of the last two.
func TestSlipWeightFive(t *testing.T) {
	d1 := slipVector(1, 1, 1, 1, 1, 1)
	d2 := slipVector(0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1)
	weights := slices.Repeat([]float64{1}, 14)
	weights[3], weights[4] = 5, 5
	checkSlip(t, "cosine with weight 5 on two terms", slipSpace(t, 14, weights, nil).Cosine(d1, d2), 0.8934, 5e-5)
	weights[1] = 5
	checkSlip(t, "cosine with weight 5 on three terms", slipSpace(t, 14, weights, nil).Cosine(d1, d2), 0.7434, 5e-5)
}

// TestSlipWeightsCountedTwice is of thesis 4.3 and of the notes, lemma 3.3: the vector of a
// term before it is normalized has its weight in it already. Printed: w_i x_i ⟨β_i, β_j⟩ w_j
// y_j over a basis that is not normalized. Right: the normalized one: the other has the
// weights in it.
func TestSlipWeightsCountedTwice(t *testing.T) {
	const w = 2.0
	x := slipVector(1)
	checkSlip(t, "⟨x, x⟩", slipSpace(t, 1, []float64{w}, nil).InnerProduct(x, x), 4, 0)
	lengthOfTerm := w // ‖α‖, since α = w·β and ‖β‖ = 1
	checkSlip(t, "w·x·⟨α, α⟩·w·x", w*1*lengthOfTerm*lengthOfTerm*w*1, 16, 0)
}

// TestSlipTransposeOfE is of thesis 4.3 and 4.4.2 and of the notes, lemma 3.3 and section 4.
// Printed: S = EEᵀ, coordinates EWx. Right: EᵀWx, FᵀPᵀWx.
func TestSlipTransposeOfE(t *testing.T) {
	e := [2][2]float64{{1, 0}, {0.5, math.Sqrt(0.75)}} // E·Eᵀ = S
	space := slipSpace(t, 2, nil, bothWays(map[[2]int32]float64{{0, 1}: 0.5}))
	row := func(i int) float64 { return space.InnerProduct(slipVector(1-float64(i), float64(i)), slipVector(0, 1)) }
	for i := range e {
		checkSlip(t, "(E·Eᵀ)_i2", e[i][0]*e[1][0]+e[i][1]*e[1][1], row(i), 1e-15)
	}
	// Of x = (1, 0) and y = (0, 1), E·x is the first column of E, and Eᵀ·x the
	// first row.
	checkSlip(t, "(E·x)ᵀ(E·y)", e[0][0]*e[0][1]+e[1][0]*e[1][1], 0.4330, 5e-5)
	checkSlip(t, "(Eᵀ·x)ᵀ(Eᵀ·y)", e[0][0]*e[1][0]+e[0][1]*e[1][1], 0.5, 1e-15)
}

// TestSlipProbabilisticFactor is of thesis 3.3.2, table 3.1. Printed: factor p is ln((N −
// n_t)/n_t). Right: 0 above half of the documents; factor L averages over terms.
func TestSlipProbabilisticFactor(t *testing.T) {
	const docs, holders = 10.0, 6.0
	weight := math.Log((docs - holders) / holders)
	checkSlip(t, "factor p of a term in 6 of 10 documents", weight, -0.4055, 5e-5)
	_, err := softcosine.NewSpace([]float64{weight}, softcosine.Identity(1))
	if !errors.Is(err, softcosine.ErrWeights) {
		t.Errorf("error %v, want one that wraps ErrWeights", err)
	}
}

// slipNuggets returns the scorer of the standard model over 10 terms, with
// weights of the terms of results.
func slipNuggets(t *testing.T, result string, terms softcosine.TermWeights) *softcosine.Scorer {
	t.Helper()
	r, q, err := softcosine.ParseSMARTPair(result + ".nnn")
	if err != nil {
		t.Fatal(err)
	}
	st := softcosine.Count(10, nil)
	scorer, err := softcosine.NewStandard(softcosine.Weighting{Letters: r, Terms: terms}, softcosine.Weighting{Letters: q}, st, softcosine.Identity(10))
	if err != nil {
		t.Fatal(err)
	}
	return scorer
}

// TestSlipGodwinFactor is of thesis 3.4.2. Printed: Godwin weights with factor t. Right:
// factor b, weights divided by Σ 1/i.
func TestSlipGodwinFactor(t *testing.T) {
	query := softcosine.Document{{Terms: []int32{1}}}
	whole := softcosine.Document{{Terms: []int32{1, 2, 1}}}
	tokens := softcosine.Document{{Terms: []int32{1}}, {Terms: []int32{2}}, {Terms: []int32{1}}}
	matrix, err := slipNuggets(t, "tnn", nil).Matrix(query, tokens)
	if err != nil {
		t.Fatal(err)
	}
	right := softcosine.Aggregate{Result: softcosine.WavgGodwin, Query: softcosine.WavgLength}.Score(matrix)
	const harmonic = 1 + 1./2 + 1./3
	checkSlip(t, "one nugget for each token", right, (1+1./3)/harmonic, 1e-12)
	for letters, want := range map[string]float64{"tnn": 2 * right, "bnn": right} {
		got, err := slipNuggets(t, letters, softcosine.Godwin).Unsegmented(query, whole)
		if err != nil {
			t.Fatal(err)
		}
		checkSlip(t, "Godwin weights and "+letters, got, want, 1e-12)
	}
}

// TestSlipMurataLength is of thesis 3.3.2, Murata. Printed: place in the document, length of
// the nugget. Right: both of one text.
func TestSlipMurataLength(t *testing.T) {
	long := make([]int32, 300)
	thread := softcosine.Document{{Terms: []int32{1}}, {Terms: long}, {Terms: []int32{2, 3, 4, 5, 6}}}
	const place, nugget, document = 301., 5., 306.
	printed := 1 + 0.15*(nugget-2*place)/nugget
	checkSlip(t, "a term behind 301 others, by the length of its nugget", printed, -16.91, 1e-9)
	checkSlip(t, "the same by the length of the document", softcosine.MurataB(thread, thread[2])[2], 1+0.15*(document-2*place)/document, 1e-12)
}

// TestSlipSpaceOfTheInnerProduct is of thesis 4.4. Printed: space 2M + (n + 1)C; M² + M(1 + C)
// + n. Right: 2M + n(C + 1); M² + M + n(C + 1).
func TestSlipSpaceOfTheInnerProduct(t *testing.T) {
	const n, c, m = 1000.0, 10.0, 50.0
	x, y, w, s := m, m, n, n*c // what the sections name
	checkSlip(t, "2M + n(C+1)", 2*m+n*(c+1), x+y+w+s, 0)
	checkSlip(t, "2M + (n+1)C", 2*m+(n+1)*c, x+y+w+s-(n-c), 0)
	mapped := m * m
	checkSlip(t, "M² + M + n(C+1)", m*m+m+n*(c+1), mapped+x+w+s, 0)
	checkSlip(t, "M² + M(1+C) + n", m*m+m*(1+c)+n, mapped+x+w+s-c*(n-m), 0)
}

// TestSlipCoordinatesOfPhi2 is of thesis 4.4.2. Printed: Φ2(x) has M² coordinates that are not
// 0. Right: 2nm − m² for m terms, or up to m(1 + 2C).
func TestSlipCoordinatesOfPhi2(t *testing.T) {
	const s = 0.2
	two := slipSpace(t, 2, nil, bothWays(map[[2]int32]float64{{0, 1}: s}))
	three := slipSpace(t, 3, nil, bothWays(map[[2]int32]float64{{0, 1}: s, {0, 2}: s, {1, 2}: s}))
	for _, test := range []struct {
		space *softcosine.Space
		x     softcosine.Vector
	}{
		{two, slipVector(1, 0)},
		{three, slipVector(1, 0, 0)},
		{three, slipVector(1, 1, 0)},
		{three, slipVector(1, 1, 1)},
	} {
		phi2, err := softcosine.NewPhi2(test.space)
		if err != nil {
			t.Fatal(err)
		}
		n, m := test.space.Len(), test.x.Len()
		if got, want := phi2.Map(test.x).Len(), 2*n*m-m*m; got != want {
			t.Errorf("Φ2 of %d terms of %d has %d coordinates, want %d", m, n, got, want)
		}
	}
}

// TestSlipPhi2IsNotReal is of thesis 4.4.2, equation 4.4. Printed: for any document vectors.
// Right: needs c_ii ≥ 0, s_ij ≥ 0, s_ij = s_ji.
func TestSlipPhi2IsNotReal(t *testing.T) {
	space := slipSpace(t, 3, nil, bothWays(map[[2]int32]float64{{0, 1}: 0.6, {0, 2}: 0.6, {1, 2}: 0.6}))
	if _, err := softcosine.NewPhi2(space); !errors.Is(err, softcosine.ErrPairs) { // √(1 − 1.2)
		t.Errorf("error %v, want one that wraps ErrPairs", err)
	}
	x := slipVector(1, 0, 0)
	checkSlip(t, "⟨x, x⟩, which is there", space.InnerProduct(x, x), 1, 0)
}

// TestSlipOneNeighborIsNotSymmetric is of thesis 4.5. Printed: C = 1 makes S positive
// definite. Right: S is not symmetric; pairs have to enter together.
func TestSlipOneNeighborIsNotSymmetric(t *testing.T) {
	neighbors := func(of ...simmatrix.Neighbor) []simmatrix.Neighbor { return of }
	whole, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "a", Neighbors: neighbors(simmatrix.Neighbor{Term: "b", Similarity: 0.9})},
		{Term: "b", Neighbors: neighbors(simmatrix.Neighbor{Term: "a", Similarity: 0.9}, simmatrix.Neighbor{Term: "c", Similarity: 0.95})},
		{Term: "c", Neighbors: neighbors(simmatrix.Neighbor{Term: "b", Similarity: 0.95})},
	})
	if err != nil {
		t.Fatal(err)
	}
	one, err := combine.Sparsify(whole, combine.SparsifyOptions{Neighbors: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !whole.Meta().Symmetric || !one.Meta().Dominant || one.Meta().Symmetric {
		t.Errorf("whole: %+v, one neighbor: %+v; want symmetric, and dominant but not symmetric", whole.Meta(), one.Meta())
	}
	// With both directions of each pair kept the determinant is negative.
	checkSlip(t, "determinant", 1-0.9*0.9-0.95*0.95, -0.7125, 1e-15)
}

// TestSlipSpellingAboveOne is of thesis 4.5.1, equation 4.5. Printed: 1.8·(1 − d/m)⁵ as a
// cosine. Right: above 1 from ten letters on; akin caps it.
func TestSlipSpellingAboveOne(t *testing.T) {
	formula := func(letters float64) float64 { return 1.8 * math.Pow(1-1/letters, 5) }
	checkSlip(t, "1 letter of 9", formula(9), 0.9989, 5e-5)
	checkSlip(t, "1 letter of 10", formula(10), 1.0629, 5e-5)
}

// TestSlipNormOfTheExpandedQuery is of thesis 4.6.1. Printed: W⁻¹(Wx)ᵀS; first root without
// W₂. Right: W⁻¹((Wx)ᵀS)ᵀ, with W₂.
func TestSlipNormOfTheExpandedQuery(t *testing.T) {
	space := slipSpace(t, 2, []float64{1, 2}, bothWays(map[[2]int32]float64{{0, 1}: 0.5}))
	expanded := space.Expand(slipVector(1)) // W⁻¹SᵀWx
	if diff := gocmp.Diff(slipVector(1, 0.25), expanded); diff != "" {
		t.Errorf("expanded query (-want +got):\n%s", diff)
	}
	checkSlip(t, "‖x'‖", expanded.Norm(), 1.0308, 5e-5)
	checkSlip(t, "‖Wx'‖ = ‖SᵀWx‖", space.HardNorm(expanded), 1.1180, 5e-5)
}

// TestSlipThresholdOnTheCosine is of thesis 4.8 on figure 4.4. Printed: all neighbors have
// s_ij > 0.2. Right: θ3 is held against the cosine, s_ij is its square: above 0.04.
func TestSlipThresholdOnTheCosine(t *testing.T) {
	const cosine, theta3, power = 0.25, 0.2, 2
	if similarity := math.Pow(cosine, power); cosine <= theta3 || similarity >= theta3 {
		t.Errorf("a neighbor of cosine %v has similarity %v", cosine, similarity)
	}
	checkSlip(t, "the least similarity that is kept", math.Pow(theta3, power), 0.04, 1e-15)
}

// TestSlipRowsAndColumns is of the notes, theorem 3.4. Printed: bounds columns. Right:
// algorithm 1 walks rows; akin bounds rows.
func TestSlipRowsAndColumns(t *testing.T) {
	const n = 50
	entries := map[[2]int32]float64{}
	for j := range int32(n - 1) {
		entries[[2]int32{0, j + 1}] = 1
	}
	s := slipSpace(t, n, nil, entries).Similarities()
	row, _ := s.Row(0)
	if len(row)+1 != n {
		t.Errorf("row 1 has %d entries, want %d", len(row)+1, n)
	}
	for j := range n {
		if column, _ := s.Transposed().Row(j); len(column)+1 > 2 {
			t.Errorf("column %d has %d entries, want 2 at most", j+1, len(column)+1)
		}
	}
}

// TestSlipRowSums is of the remark to theorem 3.4 in the notes. Printed: diag √((WX)ᵀSWX) =
// √((WX)ᵀS ∘ (WX)ᵀ). Right: the root of the row sums.
func TestSlipRowSums(t *testing.T) {
	space := slipSpace(t, 2, nil, bothWays(map[[2]int32]float64{{0, 1}: 0.5}))
	// WX has one column, x = (1, 2). Of it xᵀS = (2, 2.5), and the entrywise
	// product with x has two entries where one is asked for.
	x := slipVector(1, 2)
	product := []float64{2 * 1, 2.5 * 2}
	checkSlip(t, "sum of the row", product[0]+product[1], space.InnerProduct(x, x), 1e-15)
	norm, err := space.SoftNorm(x)
	if err != nil {
		t.Fatal(err)
	}
	checkSlip(t, "norm", norm, math.Sqrt(7), 1e-15)
}

// TestSlipZeroNorm is of the remark to lemma 3.3 in the notes. Printed: (Wx)ᵀS(Wx) ≥ 0. Right:
// > 0; W > 0, too.
func TestSlipZeroNorm(t *testing.T) {
	// S = [[1, −1], [−1, 1]] is positive semi-definite, its eigenvalues are 0 and 2.
	space := slipSpace(t, 2, nil, bothWays(map[[2]int32]float64{{0, 1}: -1}))
	x := slipVector(1, 1)
	checkSlip(t, "xᵀSx", space.InnerProduct(x, x), 0, 0)
	// And of a term that every document contains: ln(N/n) = 0.
	weightless := slipSpace(t, 1, []float64{math.Log(10.0 / 10)}, nil)
	checkSlip(t, "norm of a term in every document", weightless.HardNorm(slipVector(1)), 0, 0)
}

// TestSlipCosineAboveOne is of the remark to lemma 3.3 in the notes and of thesis 4.5.
// Printed: S ≥ 0 is enough for the soft cosine. Right: in [0, 1] only if S is positive
// semi-definite.
func TestSlipCosineAboveOne(t *testing.T) {
	space := slipSpace(t, 3, nil, bothWays(map[[2]int32]float64{{0, 1}: 1, {0, 2}: 1}))
	got, err := space.Soft(slipVector(1, 0, 0), slipVector(0, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	checkSlip(t, "soft cosine", got, math.Sqrt2, 1e-15)
}

// TestSlipZeroCoordinates is of the notes, theorem 4.3: texts without most of the terms are
// ordered as the soft cosine orders them. Printed: x ≠ 0, y, z > 0. Right: ⟨x, x⟩ > 0; y, z ≥
// 0 and not 0.
func TestSlipZeroCoordinates(t *testing.T) {
	space := slipSpace(t, 3, nil, bothWays(map[[2]int32]float64{{0, 1}: 0.5, {1, 2}: 0.25}))
	x := slipVector(1, 0, 2)
	scores := func(y softcosine.Vector) (soft, transformed float64) {
		soft, err := space.Soft(x, y)
		if err != nil {
			t.Fatal(err)
		}
		document, err := space.CosineDocument(y)
		if err != nil {
			t.Fatal(err)
		}
		checkSlip(t, "norm of a transformed document", document.Norm(), 1, 1e-12)
		return soft, space.CosineQuery(x).Dot(document)
	}
	ratio := 0.0
	for _, y := range []softcosine.Vector{slipVector(1), slipVector(0, 1), slipVector(0, 1, 1), slipVector(3, 0, 1)} {
		soft, transformed := scores(y)
		if ratio == 0 {
			ratio = transformed / soft
		}
		checkSlip(t, "transformed score over soft cosine", transformed/soft, ratio, 1e-12)
	}
}

// TestSlipRootsOfPairs is of Sidorov 2.3 and 2.4. Printed: roots of eq. 15 and 18. Right: need
// s_ij ≥ 0, 2.4 also s_ij = s_ji.
func TestSlipRootsOfPairs(t *testing.T) {
	space := slipSpace(t, 2, nil, bothWays(map[[2]int32]float64{{0, 1}: -0.5}))
	if _, err := softcosine.NewPhi2(space); !errors.Is(err, softcosine.ErrPairs) {
		t.Errorf("error %v, want one that wraps ErrPairs", err)
	}
	got, err := space.Soft(slipVector(1), slipVector(0, 1)) // equation 14
	if err != nil {
		t.Fatal(err)
	}
	checkSlip(t, "soft cosine", got, -0.5, 0)
}

// TestSlipIndexOfTheSystem is of Sidorov, equation 23: the product of e^j with the new vector
// is s_j,k+1. Printed: s_i,k+1. Right: s_j,k+1.
func TestSlipIndexOfTheSystem(t *testing.T) {
	entries := map[[2]int32]float64{{0, 1}: 0.2, {0, 2}: 0.3, {1, 2}: 0.4}
	e2 := [2]float64{0.2, math.Sqrt(1 - 0.2*0.2)}
	x := [2]float64{0.3, (0.4 - 0.2*0.3) / e2[1]} // of the third vector, by the right system
	checkSlip(t, "e¹·e³", x[0], entries[[2]int32{0, 2}], 1e-15)
	checkSlip(t, "e²·e³", e2[0]*x[0]+e2[1]*x[1], entries[[2]int32{1, 2}], 1e-15)
}

// TestSlipTriangleInequality is of Sidorov 2.5: five terms that are similar to a sixth and not
// to each other. Printed: the triangle inequality makes the system solvable. Right: S has to
// be positive definite.
func TestSlipTriangleInequality(t *testing.T) {
	const leaves, similarity = 5, 0.5
	entries := map[[2]int32]float64{}
	for j := range int32(leaves) {
		entries[[2]int32{0, j + 1}] = similarity
	}
	space := slipSpace(t, leaves+1, nil, bothWays(entries))
	for name, distance := range map[string]func(s float64) float64{
		"1 − s": func(s float64) float64 { return 1 - s }, "angle": math.Acos,
		"chord": func(s float64) float64 { return math.Sqrt(2 - 2*s) },
	} {
		if 2*distance(similarity) < distance(0) {
			t.Errorf("%s does not obey the triangle inequality", name)
		}
	}
	x := slipVector(1, -similarity, -similarity, -similarity, -similarity, -similarity)
	checkSlip(t, "xᵀSx", space.InnerProduct(x, x), -0.25, 1e-15)
}

// TestSlipsAreDocumentedAndTested compares the tests that reproductionDoc
// names with those in this file.
func TestSlipsAreDocumentedAndTested(t *testing.T) {
	name := regexp.MustCompile(`TestSlip[A-Z]\w*`)
	named := func(path string) []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Compact(slices.Sorted(slices.Values(name.FindAllString(string(text), -1))))
	}
	if diff := gocmp.Diff(named("reproduction_slips_test.go"), named(filepath.FromSlash(reproductionDoc))); diff != "" {
		t.Errorf("tests (-there +in the document):\n%s", diff)
	}
}
