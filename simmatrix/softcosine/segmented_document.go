package softcosine

import "slices"

// A Nugget is a segment of a document.
type Nugget struct {
	Terms []int32 // its tokens in order, as numbers of a vocabulary
	Bytes int64   // its length in bytes, used only by norm b
}

// frequencies returns f_i, the number of times each term occurs.
func (n Nugget) frequencies() Vector {
	counts := map[int32]float64{}
	for _, t := range n.Terms {
		counts[t]++
	}
	return NewVector(counts)
}

// Statistics are those of a collection of nuggets. In parentheses are the
// letters of [SMART], whose description is about documents, that use them.
type Statistics struct {
	Docs       int64   // N, the number of nuggets, at least 1 (f, t, p)
	DocFreqs   []int64 // n_t by term, at most N (f, t, p)
	MeanTerms  float64 // avg u, the mean number of distinct terms, above 0 (u)
	MeanBytes  float64 // avg b, the mean length in bytes, above 0 (b)
	MeanTokens float64 // avg_i Σ_t f_it, the mean number of tokens
	// Slope is s in [0, 1]; 0 makes m = 1; 0.2 to 0.3 is usual (Singhal, Buckley,
	// Mitra: Pivoted Document Length Normalization, 1996) (u, b).
	Slope float64
}

// Count returns the statistics of nuggets over n terms, with slope 0. It does
// not count nuggets without terms.
func Count(n int, nuggets []Nugget) *Statistics {
	st := &Statistics{DocFreqs: make([]int64, n)}
	var terms, bytes, tokens float64
	for _, nugget := range nuggets {
		if len(nugget.Terms) == 0 {
			continue
		}
		different := nugget.frequencies().Terms
		for _, t := range different {
			st.DocFreqs[t]++
		}
		st.Docs++
		terms += float64(len(different))
		bytes += float64(nugget.Bytes)
		tokens += float64(len(nugget.Terms))
	}
	docs := float64(max(1, st.Docs))
	st.MeanTerms = terms / docs
	st.MeanBytes = bytes / docs
	st.MeanTokens = tokens / docs
	return st
}

// A Document is its nuggets in order. The first is the title; without a title
// it has no terms.
type Document []Nugget

// joined returns the document as one nugget, for unsegmented retrieval.
func (d Document) joined() Nugget {
	var all Nugget
	for _, n := range d {
		all.Terms, all.Bytes = append(all.Terms, n.Terms...), all.Bytes+n.Bytes
	}
	return all
}

// lengths returns the number of tokens of each nugget.
func (d Document) lengths() []float64 {
	lengths := make([]float64, 0, len(d))
	for _, n := range d {
		lengths = append(lengths, float64(len(n.Terms)))
	}
	return lengths
}

// A Filter keeps the nuggets that are likely to represent a document, always
// with the title (the thesis, 3.3.1, after Kołcz et al., 2001).
type Filter func(Document) Document

// Unfiltered keeps everything.
func Unfiltered(d Document) Document { return d }

// Title keeps only the title.
func Title(d Document) Document { return d[:min(1, len(d))] }

// FirstPara keeps the title and the next nugget.
func FirstPara(d Document) Document { return d[:min(2, len(d))] }

// FirstTwoPara keeps the title and the next two nuggets.
func FirstTwoPara(d Document) Document { return d[:min(3, len(d))] }

// BestSentence returns a filter that keeps the title and the nuggets with at
// least l tokens that occur in the title; l = 0 keeps everything.
func BestSentence(l int) Filter {
	return func(d Document) Document {
		kept := Title(slices.Clone(d))
		for j := 1; j < len(d); j++ {
			if d.titleTokens(j) >= l {
				kept = append(kept, d[j])
			}
		}
		return kept
	}
}

// titleTokens counts the tokens of nugget j that occur in the title.
func (d Document) titleTokens(j int) int {
	count := 0
	for _, t := range d[j].Terms {
		if slices.Contains(d[0].Terms, t) {
			count++
		}
	}
	return count
}
