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
