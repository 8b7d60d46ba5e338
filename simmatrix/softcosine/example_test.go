package softcosine_test

import (
	"fmt"
	"maps"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// vector returns term frequencies by the numbers of v.
func vector(v *softcosine.Vocabulary, terms ...string) softcosine.Vector {
	counts := map[int32]float64{}
	for _, term := range terms {
		if number, ok := v.Number(term); ok {
			counts[number]++
		}
	}
	return softcosine.NewVector(counts)
}

func Example() {
	m, err := simmatrix.New(simmatrix.Meta{Source: "by hand"}, []simmatrix.TermRow{
		{Term: "dead", Neighbors: []simmatrix.Neighbor{{Term: "killed", Similarity: 1}}},
		{Term: "killed", Neighbors: []simmatrix.Neighbor{{Term: "dead", Similarity: 1}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	d1 := []string{"when", "antony", "found", "julius", "caesar", "dead"}
	d2 := []string{"I", "did", "enact", "julius", "caesar", "I", "was", "killed", "i'", "the", "capitol"}
	v, s := softcosine.FromMatrix(m, append(d1, d2...)...)

	weights := make([]float64, v.Len())
	for i := range weights {
		weights[i] = 1
	}
	sp, err := softcosine.NewSpace(weights, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := vector(v, d1...), vector(v, d2...)
	soft, err := sp.Soft(x, y)
	fmt.Printf("inner product %.0f\ncosine %.4f\nsoft cosine %.4f %v\n", sp.InnerProduct(x, y), sp.Cosine(x, y), soft, err)
	// Output:
	// inner product 3
	// cosine 0.2265
	// soft cosine 0.3397 <nil>
}

func ExampleSpace_Expand() {
	v := softcosine.NewVocabulary("car", "automobile", "truck")
	s, err := softcosine.NewSimilarities(v.Len(), maps.All(map[[2]int32]float64{
		{0, 1}: 0.8, {0, 2}: 0.5, // s(car, automobile), s(car, truck)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	sp, err := softcosine.NewSpace([]float64{1, 2, 1}, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	expanded := sp.Expand(vector(v, "car"))
	for k, term := range expanded.Terms {
		fmt.Printf("%s^%.1f\n", v.Term(term), expanded.Values[k])
	}
	// Output:
	// car^1.0
	// automobile^0.4
	// truck^0.5
}

func ExampleParseSMARTPair() {
	document, query, err := softcosine.ParseSMARTPair("lnc.ltc")
	fmt.Println(document, query, err)
	_, err = softcosine.ParseSMART("lzc")
	fmt.Println(err)
	// Output:
	// lnc ltc <nil>
	// bad term weighting "lzc": want a letter of the term frequency (one of bntalLd), of the document frequency (xnftp) and of the norm (xncub)
}

func ExampleNewPhi2() {
	s, err := softcosine.NewSimilarities(2, maps.All(map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: 0.5}))
	if err != nil {
		fmt.Println(err)
		return
	}
	sp, err := softcosine.NewSpace([]float64{1, 1}, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	phi, err := softcosine.NewPhi2(sp)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := softcosine.NewVector(map[int32]float64{0: 1}), softcosine.NewVector(map[int32]float64{1: 1})
	fmt.Printf("%.3f %.3f\n", sp.InnerProduct(x, y), phi.Map(x).Dot(phi.Map(y)))
	// Output:
	// 0.500 0.500
}

func ExampleSpace_CosineDocument() {
	s, err := softcosine.NewSimilarities(2, maps.All(map[[2]int32]float64{{0, 1}: 1, {1, 0}: 1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	sp, err := softcosine.NewSpace([]float64{1, 1}, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	// ⟨y, y⟩ = 4, so that y' = (½, ½), and the added coordinate is √(1 - ½).
	stored, err := sp.CosineDocument(softcosine.NewVector(map[int32]float64{0: 1, 1: 1}))
	fmt.Printf("%v %.3f %v\n", stored.Terms, stored.Values, err)
	// Output:
	// [0 1 2] [0.500 0.500 0.707] <nil>
}

func ExampleSimilarities_Symmetrized() {
	s, err := softcosine.NewSimilarities(3, maps.All(map[[2]int32]float64{{0, 1}: 1, {2, 1}: 0.5}))
	if err != nil {
		fmt.Println(err)
		return
	}
	cols, sims := s.Symmetrized().Row(1)
	fmt.Println(cols, sims)
	// Output:
	// [0 2] [0.5 0.25]
}
