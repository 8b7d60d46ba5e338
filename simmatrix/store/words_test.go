package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// wordy returns a matrix of n words of letters, without neighbors, and "cream".
func wordy(tb testing.TB, n int) *simmatrix.Matrix {
	tb.Helper()
	rows := []simmatrix.TermRow{{Term: "cream", DocFreq: 7}, {Term: "none"}, {Term: "4711", DocFreq: 1}}
	for i := range n {
		word := []byte("q")
		for ; i > 0; i /= 26 {
			word = append(word, byte('a'+i%26))
		}
		rows = append(rows, simmatrix.TermRow{Term: string(word) + "x", DocFreq: 1})
	}
	return check.Got(simmatrix.New(simmatrix.Meta{Source: "words", Docs: 10}, rows))(tb)
}

func nearest(s *Store, word string) string {
	known, _ := s.Pin().Of("main").Nearest(word)
	return fmt.Sprint(known)
}

func TestKnownWordsComeFromRedisAndFromFiles(t *testing.T) {
	s, a, c := setup(t)
	m := wordy(t, 3*chunkWords)
	first := publishMatrix(t, a, m)
	for name, o := range map[string]Options{
		"Redis": {Redis: s.at(), CacheBytes: 16 << 20, Words: true},
		"file":  {Files: map[string]Loader{"main": InMemory(m)}, Words: true},
	} {
		store := open(t, o)
		waitFor(t, name, func() bool { return nearest(store, "craem") == "[cream]" })
		long := strings.Repeat("cream", 200)
		wantMark(t, store, "", long)
		if nearest(store, long) != "[]" || nearest(store, "nonee") != "[]" || store.State()[0].NoWords != "" {
			t.Errorf("%s: near to 1,000 letters %s, to nonee %s, no words: %q", name, nearest(store, long), nearest(store, "nonee"), store.State()[0].NoWords)
		}
	}
	check.Equal(t, "[]", nearest(open(t, Options{Files: map[string]Loader{"main": InMemory(m)}}), "craem"))
	second := publishMatrix(t, a, wordy(t, 1))
	_, err := a.Prune(t.Context(), "main", 1)
	check.OK(t, err)
	ttl := c.PTTL(t.Context(), wordsKey("main", first)).Val()
	check.That(t, ttl > 0 && ttl <= graceFor, "words of a pruned version expire in %v", ttl)
	check.Equal(t, -1, c.PTTL(t.Context(), wordsKey("main", second)).Val())
}

func TestStateSaysWhyNoWordIsKnown(t *testing.T) {
	s, a, c := setup(t)
	noDocFreqsAt := check.Got(simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{{Term: "cream"}}))(t)
	v := pushed(t, a, wordy(t, 1))
	v.Words = nil // as an earlier program pushed it
	header := check.Got(encodeVersion(v))(t)
	check.OK(t, c.Set(t.Context(), metaKey("main", v.ID), header, 0).Err())
	check.OK(t, c.Del(t.Context(), wordsKey("main", v.ID)).Err())
	for _, tt := range []struct {
		version, want string
		words         bool
	}{
		{v.ID, "an earlier akin has pushed it: push it once more", true},
		{v.ID, "", false},
		{publishMatrix(t, a, noDocFreqsAt), noDocFreqs, true},
		{publishMatrix(t, a, wordy(t, 10_000)), "10001 words take 781 KiB, and half of the cache of rows (caches.size), shared by the matrices in Redis, is 512 KiB", true},
	} {
		check.OK(t, a.Activate(t.Context(), "main", tt.version))
		store := open(t, Options{Redis: s.at(), Words: tt.words})
		if got := store.State()[0]; got.NoWords != tt.want || got.Version != tt.version || nearest(store, "craem") != "[]" {
			t.Errorf("no words: %q, want %q; version %s", got.NoWords, tt.want, got.Version)
		}
	}
}

func TestDamagedWordsLeaveTheRowsServed(t *testing.T) {
	s, a, c := setup(t)
	version := publishMatrix(t, a, wordy(t, chunkWords))
	key := wordsKey("main", version)
	short := maps.Collect(chunksOfWords(version, wordy(t, chunkWords-5)))["0"] // and the word behind it is missing, too
	for _, damage := range []*redis.IntCmd{
		c.HSet(t.Context(), key, "1", "x"), c.HDel(t.Context(), key, "1"), c.HSet(t.Context(), key, "0", short, "1", short),
	} {
		check.OK(t, damage.Err())
		store := open(t, Options{Redis: s.at(), CacheBytes: 1 << 20, Words: true})
		waitFor(t, "the damaged chunk", func() bool { return store.State()[0].NoWords != "" })
		rows := make([]simmatrix.Row, 1)
		if err := store.Pin().Of("main").Rows(t.Context(), []string{"cream"}, rows); err != nil || rows[0].DocFreq() != 7 || nearest(store, "craem") != "[]" {
			t.Errorf("row %v, error %v, nearest %s", rows[0], err, nearest(store, "craem"))
		}
		check.Equal(t, 1, store.Stats().BadRows)
		const all = 1 << 20
		fill(t, store.cache, store.Pin().Of("main").version)
		waitFor(t, "rows that take the place of the words", func() bool { return store.cache.kept.Stats().Bytes > all*3/4 })
	}
}

// fill adds rows of 6 MiB to a cache.
func fill(tb testing.TB, c *rowCache, v *version) {
	tb.Helper()
	row := check.Got(simmatrix.PackRow(1, []simmatrix.Neighbor{{Term: strings.Repeat("x", 200), Similarity: 0.5, DocFreq: 1}}))(tb)
	for i := range 16_000 {
		c.kept.Put(question{v.number, "t" + strconv.Itoa(i)}, row, nil, 0)
	}
}

func TestWordsOfAVersionThatIsNoLongerActiveAreNotReadOn(t *testing.T) {
	v := new(version)
	f := &followed{version: v, words: wordReader{version: v}}
	_, err := new(remote).examine(t.Context(), f, redis.NewStringResult("", redis.Nil), answer{})
	check.That(t, errors.Is(err, ErrNoVersion) && f.words.version == nil, "words of %v are read on, error %v", f.words.version, err)
}

func TestRowsLeaveRoomForWordsThatAreBeingRead(t *testing.T) {
	const all = 4 << 20
	c := newRowCache(all, nil)
	v := c.version("main", Version{Words: &Words{Count: 20_000, Bytes: 100_000}})
	f := &followed{version: v}
	r := &remote{cache: c, names: []*followed{f}}
	for _, tt := range []struct {
		reading bool
		most    uint64
	}{{true, all - v.Words.size()}, {false, all}} {
		if f.words = (wordReader{}); tt.reading {
			f.words.version = v
		}
		r.boundRows()
		fill(t, c, v)
		waitFor(t, fmt.Sprintf("rows that fill %d bytes, reading words: %v", tt.most, tt.reading), func() bool {
			kept := c.kept.Stats().Bytes
			return kept <= tt.most && kept > tt.most*3/4
		})
	}
}

func TestChunksOfWordsAreReadAsWritten(t *testing.T) {
	m := wordy(t, 2*chunkWords)
	w := wordReader{version: &version{Version: Version{ID: "id", Words: wordsOf(m)}}}
	chunks := maps.Collect(chunksOfWords("id", m))
	check.Must(t, len(chunks) == 3 && w.version.Words.chunks() == 3, "%d chunks, want %d", len(chunks), w.version.Words.chunks())
	for k := range len(chunks) {
		check.OK(t, w.open(strconv.Itoa(k), chunks[strconv.Itoa(k)]))
	}
	want := slices.DeleteFunc(slices.Collect(m.Terms()), func(term string) bool { return term == "none" || term == "4711" })
	diff := cmp.Diff(want, w.terms)
	check.That(t, diff == "" && w.docFreqs[0] == 7, "words (-want +got):\n%s", diff)
	few := &wordReader{version: &version{Version: Version{ID: "id", Words: &Words{Count: chunkWords + 5}}}}
	check.OK(t, few.open("0", chunks["0"]))
	err := few.open("1", chunks["1"])
	check.That(t, err != nil && len(few.terms) <= chunkWords+5, "%d words are read of a version that has %d, error %v", len(few.terms), chunkWords+5, err)
	err = w.open("0", chunks["0"])
	check.That(t, err != nil, "words that are not in order are taken")
	err = (&wordReader{version: w.version}).open("1", chunks["0"])
	check.That(t, err != nil, "a chunk is taken for another")
}

// FuzzWords reads chunks of which only the checksum is right.
func FuzzWords(f *testing.F) {
	f.Add("")
	f.Add("\x00\x05cream\x07")
	f.Add("\x09\xff\xff\xff\xff\x0f")
	f.Fuzz(func(t *testing.T, plain string) {
		w := wordReader{version: &version{Version: Version{ID: "id", Words: &Words{Count: chunkWords}}}}
		if err := w.open("0", seal(wordsOwner("id", "0"), deflated(plain))); err != nil {
			return
		}
		if len(w.terms) != len(w.docFreqs) || !slices.IsSorted(w.terms) || len(w.terms) > chunkWords {
			t.Errorf("%d words, %d frequencies", len(w.terms), len(w.docFreqs))
		}
	})
}
