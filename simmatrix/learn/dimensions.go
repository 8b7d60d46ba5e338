package learn

import (
	"context"
	"math"
)

// How many dimensions the vectors of terms take. In too few the words of one
// topic lie almost on one line: whatever is near is a word of the topic, and
// its similarity says little. In too many the rarer relations drown.
const (
	fewestDimensions, mostDimensions = 100, 1000
	// Vectors whose crowding in the fewest dimensions is above usualCrowding get as
	// many as bring it there, or nearly so.
	usualCrowding = 0.04
	// usualPower is that of [DefaultCorpusOptions]. Crowding is of cosines to this
	// power, whatever that of the similarities.
	usualPower = 3
)

// dimensionsFor returns how many dimensions vectors need that have a crowding
// in fewer: as it falls about as their number grows,
//
//	dimensions · crowding / usualCrowding
//
// at most mostDimensions, and at least fewestDimensions, from which on that
// holds. If they need no more than they have, it returns dimensions.
func dimensionsFor(crowding float64, dimensions int) int {
	wanted := min(mostDimensions, int(math.Round(float64(dimensions)*crowding/usualCrowding)))
	if wanted <= dimensions {
		return dimensions
	}
	return max(wanted, fewestDimensions)
}

// crowding returns the mean cosine, to the power of usualPower, of the 30th
// neighbors of some words, spread evenly over the first rows vectors, among all
// of these.
func (t *vectorTable) crowding(ctx context.Context, rows int) (float64, error) {
	p := newPanels(t.dim, rows)
	for i := range rows {
		p.add(uint32(i), t.row(i))
	}
	ids := p.sample()
	cosines, err := p.cosines(ctx, ids, nil)
	sum := 0.0
	for _, id := range ids {
		sum += math.Pow(cosines[id], usualPower)
	}
	return sum / float64(max(len(ids), 1)), err
}

// affordable returns the largest number of dimensions up to wanted that memory
// suffices for, and the room for entries; those of o if it suffices for no
// more.
func (c *Corpus) affordable(v *vocabulary, rare *rareTerms, wanted int, o *CorpusOptions) (dimensions int, room int64) {
	for dimensions = wanted; dimensions > o.Dimensions; dimensions = dimensions * 9 / 10 {
		if room, err := memoryRoom(c, v, len(rare.terms), dimensions, o); err == nil {
			return dimensions, room
		}
	}
	return o.Dimensions, 0
}
