package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func TestPullReturnsWhatWasPushed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a := s.admin(t)
	uneven := make([]simmatrix.TermRow, 60) // rows from a few bytes to some 30 KB, two origins
	for i := range uneven {
		uneven[i] = simmatrix.TermRow{Term: strings.Repeat("x", 1+i*500), DocFreq: uint32(i)}
		for j := range i {
			uneven[i].Neighbors = append(uneven[i].Neighbors, simmatrix.Neighbor{
				Term: uneven[j].Term, Similarity: 1 / float32(j+1), Origins: uint8(1 + j%3),
			})
		}
	}
	origins, err := simmatrix.New(simmatrix.Meta{Source: "two", Origins: []string{"a", "b"}, Params: map[string]string{"k": "v"}}, uneven)
	must(t, err)
	for name, m := range map[string]*simmatrix.Matrix{"few": newMatrix(t, "one", 3), "many": manyBatches(t, "one"), "uneven": origins} {
		v, err := a.Push(t.Context(), "main", m, "me", nil)
		must(t, err)
		must(t, a.Activate(t.Context(), "main", v.ID))
		newer, err := a.Push(t.Context(), "main", newMatrix(t, "newer", 2), "", nil)
		must(t, err)
		for version, want := range map[string]string{"": m.Checksum(), v.ID: m.Checksum(), newer.ID: newer.Checksum} {
			last := 0
			got, gotVersion, err := a.Pull(t.Context(), "main", version, func(stage string, done, total int) {
				if stage != "pull" || done < last || done > total {
					t.Errorf("%s: progress %s %d of %d after %d", name, stage, done, total, last)
				}
				last = done
			})
			if err != nil || got.Checksum() != want || gotVersion.Checksum != want || last != got.Len() {
				t.Errorf("%s: %v, version %+v, %d rows reported", name, err, gotVersion, last)
			}
		}
	}
}

func TestPullRefusesWhatIsNotWhatWasPushed(t *testing.T) {
	s := startRedis(t)
	a, c := s.admin(t), s.client(t)
	if _, _, err := a.Pull(t.Context(), "main", "", nil); !errors.Is(err, ErrNoVersion) {
		t.Errorf("nothing active: %v", err)
	}
	good := publish(t, a, newMatrix(t, "one", 50))
	changed, err := simmatrix.PackRow(3, []simmatrix.Neighbor{{Term: "one", Similarity: 0.25, DocFreq: 7}})
	must(t, err)
	for _, tt := range []struct {
		name  string
		spoil func(ctx context.Context, id string) error
		want  error
	}{
		{"a row is missing", func(ctx context.Context, id string) error { return c.HDel(ctx, rowsKey("main", id), term(3)).Err() }, ErrBadVersion},
		{"a row too many", func(ctx context.Context, id string) error {
			return c.HSet(ctx, rowsKey("main", id), "x", seal("x", changed.Packed())).Err()
		}, ErrBadVersion},
		{"another row", func(ctx context.Context, id string) error {
			return c.HSet(ctx, rowsKey("main", id), term(3), seal(term(3), changed.Packed())).Err()
		}, ErrBadVersion},
		{"a row without a checksum", func(ctx context.Context, id string) error {
			return c.HSet(ctx, rowsKey("main", id), term(3), changed.Packed()).Err()
		}, ErrBadRow},
		{"the row of another term", func(ctx context.Context, id string) error {
			return c.HSet(ctx, rowsKey("main", id), term(3), c.HGet(ctx, rowsKey("main", id), term(4)).Val()).Err()
		}, ErrBadRow},
		{"no row", func(ctx context.Context, id string) error {
			return c.HSet(ctx, rowsKey("main", id), term(3), "junk").Err()
		}, ErrBadRow},
		{"an empty row", func(ctx context.Context, id string) error { return c.HSet(ctx, rowsKey("main", id), term(3), "").Err() }, ErrBadRow},
		{"another header", func(ctx context.Context, id string) error {
			return c.Set(ctx, metaKey("main", id), strings.Replace(c.Get(ctx, metaKey("main", id)).Val(), "1000", "2000", 1), 0).Err()
		}, ErrBadVersion},
		{"a bad header", func(ctx context.Context, id string) error { return c.Set(ctx, metaKey("main", id), "{", 0).Err() }, ErrBadVersion},
		{"no header", func(ctx context.Context, id string) error { return c.Del(ctx, metaKey("main", id)).Err() }, ErrUnknownVersion},
		{"not complete", func(ctx context.Context, id string) error {
			return c.HDel(ctx, rowsKey("main", id), completeField).Err()
		}, ErrUnknownVersion},
		{"no rows", func(ctx context.Context, id string) error { return c.Del(ctx, rowsKey("main", id)).Err() }, ErrUnknownVersion},
	} {
		v, err := a.Push(t.Context(), "main", newMatrix(t, "one", 50), "", nil)
		must(t, err)
		must(t, tt.spoil(t.Context(), v.ID))
		if m, _, err := a.Pull(t.Context(), "main", v.ID, nil); !errors.Is(err, tt.want) || m != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, _, err := a.Pull(t.Context(), "main", "20200101", nil); !errors.Is(err, ErrUnknownVersion) {
		t.Errorf("an unknown version: %v", err)
	}
	if _, v, err := a.Pull(t.Context(), "main", "", nil); err != nil || v.ID != good {
		t.Errorf("the good one: %v", err)
	}
}

// TestPullThatLosesItsVersion takes it away in the middle.
func TestPullThatLosesItsVersion(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	id := publish(t, a, manyBatches(t, "one"))
	_, _, err := a.Pull(t.Context(), "main", "", func(_ string, done, total int) {
		if done < total {
			s.client(t).Del(t.Context(), rowsKey("main", id))
		}
	})
	if !errors.Is(err, ErrUnknownVersion) {
		t.Errorf("error %v", err)
	}
}

func TestPullEndsWithItsContext(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	publish(t, a, manyBatches(t, "one"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if m, _, err := a.Pull(ctx, "main", "", func(string, int, int) { cancel() }); !errors.Is(err, context.Canceled) || m != nil {
		t.Errorf("error %v", err)
	}
}

// TestPullReadsInPages bounds one answer of Redis.
func TestPullReadsInPages(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a := s.admin(t)
	m := manyBatches(t, "one")
	publish(t, a, m)
	var pages []int
	last := 0
	if _, _, err := a.Pull(t.Context(), "main", "", func(_ string, done, _ int) {
		pages = append(pages, done-last)
		last = done
	}); err != nil {
		t.Fatal(err)
	}
	for i, n := range pages {
		if n > 2*maxPage || (i == 0 && n > 4*firstPage) {
			t.Errorf("page %d has %d rows", i, n)
		}
	}
	if len(pages) < m.Len()/(2*maxPage) || len(pages) > m.Len()/100 {
		t.Errorf("%d pages for %d rows: %s", len(pages), m.Len(), cmp.Diff(nil, pages))
	}
}
