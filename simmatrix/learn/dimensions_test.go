package learn

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// mixedDocuments have words of one of many topics each, and common ones.
func mixedDocuments(topics, perTopic int) [][]string {
	const words, length = 40, 25
	random := rand.New(rand.NewPCG(5, 0))
	var docs [][]string
	for topic := range topics {
		for range perTopic {
			var doc []string
			for range length {
				word := fmt.Sprintf("common%d", random.IntN(20))
				if random.IntN(4) > 0 {
					word = fmt.Sprintf("t%d.%d", topic, random.IntN(words))
				}
				doc = append(doc, word)
			}
			docs = append(docs, doc)
		}
	}
	return docs
}

func TestDimensionsGrowWithCrowding(t *testing.T) {
	for _, tt := range []struct {
		crowding float64
		want     int
	}{{0, 100}, {0.07, 100}, {0.071, 142}, {0.172, 344}, {0.281, 562}, {0.9, 1000}} {
		check.Equal(t, tt.want, dimensionsFor(tt.crowding, fewestDimensions), tt.crowding)
	}
}

func TestWordsThatCrowdGetMoreDimensions(t *testing.T) {
	c := corpusOf(mixedDocuments(30, 12)...)
	o := DefaultCorpusOptions()
	o.Dimensions = fewestDimensions
	few := mustLearn(t, c, o).Meta()
	check.That(t, few.CrowdingWarning() != "" && few.Vectors() == "100 dimensions, crowding "+few.Params[simmatrix.CrowdingParam], "%v", few.Params)
	o.Dimensions = 0
	all := mustLearn(t, c, o).Meta()
	before := check.Got(strconv.ParseFloat(few.Params[simmatrix.CrowdingParam], 64))(t)
	crowding := check.Got(strconv.ParseFloat(all.Params[simmatrix.CrowdingParam], 64))(t)
	dimensions := check.Got(strconv.Atoi(all.Params[simmatrix.DimensionsParam]))(t)
	check.That(t, dimensions > fewestDimensions && crowding < before, "%d dimensions, crowding %v, before %v", dimensions, crowding, before)
	check.Equal(t, "", all.Params[simmatrix.WantedDimensionsParam])
}

func TestDimensionsFallToWhatMemorySufficesFor(t *testing.T) {
	c, o := corpusOf(zipfDocuments(300, 30, 2000)...), DefaultCorpusOptions()
	v, rare, _, err := c.prepare(&o)
	check.OK(t, err)
	for _, dimensions := range []int{400, 300, fewestDimensions} {
		o.Dimensions, o.MaxMemory = fewestDimensions, 1
		for ; check.ErrOf(memoryRoom(c, v, len(rare.terms), dimensions, &o)) != nil; o.MaxMemory += 1 << 16 {
		}
		got, room, err := c.affordable(v, rare, 1000, &o)
		check.That(t, err == nil && got <= dimensions && got >= max(dimensions*9/10-1, fewestDimensions) && room >= 0, "%d dimensions, room for %d bytes: %v", got, room, err)
	}
}
