package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func mustLearn(tb testing.TB, c *Corpus, o CorpusOptions) *simmatrix.Matrix {
	tb.Helper()
	return check.Got(FromCorpus(tb.Context(), c, o, nil))(tb)
}

// encoded returns the file of a matrix.
func encoded(tb testing.TB, m *simmatrix.Matrix) string {
	tb.Helper()
	var b bytes.Buffer
	check.OK(tb, simmatrix.Encode(&b, m))
	return b.String()
}

func TestFromCorpusDoesNotDependOnProcessorsOrTheOrderOfDocuments(t *testing.T) {
	docs := zipfDocuments(600, 30, 2000)
	docs = append(docs, docs[:100]...) // some twice
	random := rand.New(rand.NewPCG(1, 1))
	o := smallOptions()
	o.MinDocFreq = 8
	first := mustLearn(t, corpusOf(docs...), o)
	check.Must(t, first.Meta().Params["rare_terms"] != "", "no rare terms")
	for _, processors := range []int{1, 3, 7} {
		random.Shuffle(len(docs), func(i, k int) { docs[i], docs[k] = docs[k], docs[i] })
		previous := runtime.GOMAXPROCS(processors)
		m := mustLearn(t, corpusOf(docs...), o)
		runtime.GOMAXPROCS(previous)
		check.Equal(t, encoded(t, first), encoded(t, m), processors)
	}
}

func TestValidateNamesEveryBadCorpusOption(t *testing.T) {
	o := CorpusOptions{Dimensions: -1, ContextPower: 1.5, MaxMemory: -1, Mix: &Mix{Share: 1}}
	err := o.Validate()
	for _, name := range []string{"context power", "max memory", "model share", "min doc freq", "dimensions", "window", "neighbors", "power"} {
		check.Message(t, name+":", err, name)
	}
	if o := DefaultCorpusOptions(); o.Validate() != nil {
		t.Error("the default is not valid")
	}
}

func TestTooLittleMemoryIsAnErrorThatSaysWhatToLower(t *testing.T) {
	c := corpusOf(zipfDocuments(3000, 200, 400)...) // few terms that all meet
	o := DefaultCorpusOptions()
	o.MinDocFreq, o.Dimensions = 1, 100
	want := encoded(t, mustLearn(t, c, o))
	causes := map[string]int64{}
	learned := false
	for o.MaxMemory = 1 << 20; !learned; o.MaxMemory += o.MaxMemory / 8 {
		m, err := FromCorpus(t.Context(), c, o, nil)
		switch {
		case err == nil:
			learned = true
			check.Equal(t, want, encoded(t, m))
		case !errors.Is(err, simmatrix.ErrMemory):
			t.Fatal(err)
		default:
			for _, cause := range []string{"3000 documents take", "vectors of ", "co-occurrences take", "occurrences in documents take"} {
				if strings.Contains(err.Error(), cause) && strings.Contains(err.Error(), "lower the") {
					causes[cause] = o.MaxMemory
				}
			}
		}
	}
	check.That(t, len(causes) >= 3 && causes["vectors of "] != 0, "bounds by the last error of a kind: %v", slices.Collect(maps.Keys(causes)))
	t.Logf("%s is enough; the last bounds of each error: %v", megabytes(o.MaxMemory), causes)
}

func TestEntriesAreCountedAsTheyAreMade(t *testing.T) {
	const rows, perRow = 10_000, 10
	fill := func() func(int, *sparseBlock) {
		return func(_ int, b *sparseBlock) {
			for k := range int32(perRow) {
				b.add(k, 1)
			}
		}
	}
	const all = rows * perRow * nonZeroBytes
	if _, err := makeSparse(t.Context(), rows, perRow, all, fill, simmatrix.NewStage(nil, "", 0)); err != nil {
		t.Errorf("with room for all: %v", err)
	}
	made := 0
	_, err := makeSparse(t.Context(), rows, perRow, all/4, fill, simmatrix.NewStage(func(_ string, done, _ int) { made = done }, "", rows))
	o, ok := errors.AsType[*oversize](err)
	if !ok || o.need < all*9/10 || o.need > all*11/10 || o.room != all/4 || made > rows/2 {
		t.Errorf("error %+v after %d rows, want about %d bytes", err, made, all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Error(t, context.Canceled, check.ErrOf(makeSparse(ctx, rows, perRow, all/4, fill, simmatrix.NewStage(nil, "", 0))))
}

func TestCorpusCountsItsBytes(t *testing.T) {
	c := newCorpus()
	last := c.Bytes()
	for i := range 100 {
		c.addDocument([]string{fmt.Sprintf("term %d", i), "common"})
		if now := c.Bytes(); now <= last {
			t.Fatalf("%d bytes after %d", now, last)
		} else {
			last = now
		}
	}
	check.That(t, last >= 100*(60+8) && last <= 100*200, "%d bytes for 101 terms and 100 documents", last)
}
