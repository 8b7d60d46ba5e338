package softcosine

import "slices"

// A Nugget is a segment of a document.
type Nugget struct {
	Terms []int32 // its tokens in order, as numbers of a vocabulary
	Bytes int64   // its length in bytes, which only norm b reads
}

// A Document is its nuggets in order. The first is the title, without terms
// where there is none.
type Document []Nugget

// joined returns the document as one nugget, for retrieval without segments.
func (d Document) joined() Nugget {
	var all Nugget
	for _, n := range d {
		all.Terms, all.Bytes = append(all.Terms, n.Terms...), all.Bytes+n.Bytes
	}
	return all
}

// A Filter keeps the nuggets of a document that are likely to say what it is
// about, the title always (the thesis, 3.3.1, after Kołcz et al., 2001).
type Filter func(Document) Document

// Unfiltered keeps everything.
func Unfiltered(d Document) Document { return d }

// Title keeps only the title.
func Title(d Document) Document { return d[:min(1, len(d))] }

// FirstPara keeps the title and the nugget after it.
func FirstPara(d Document) Document { return d[:min(2, len(d))] }

// FirstTwoPara keeps the title and the two nuggets after it.
func FirstTwoPara(d Document) Document { return d[:min(3, len(d))] }

// BestSentence returns the filter that keeps the title and the nuggets with at
// least l tokens that occur in the title: with l = 0 everything.
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
