package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestPullReturnsWhatWasPushed(t *testing.T) {
	t.Parallel()
	_, a, _ := setup(t)
	uneven := make([]simmatrix.TermRow, 60) // rows from a few bytes to some 30 KB, two origins
	for i := range uneven {
		uneven[i] = simmatrix.TermRow{Term: strings.Repeat("x", 1+i*500), DocFreq: uint32(i)}
		for j := range i {
			uneven[i].Neighbors = append(uneven[i].Neighbors, simmatrix.Neighbor{
				Term: uneven[j].Term, Similarity: 1 / float32(j+1), Origins: uint8(1 + j%3),
			})
		}
	}
	origins := check.Got(simmatrix.New(simmatrix.Meta{Source: "two", Origins: []string{"a", "b"}, Params: map[string]string{"k": "v"}}, uneven))(t)
	for name, m := range map[string]*simmatrix.Matrix{"few": newMatrix(t, "one", 3), "many": newMatrix(t, "one", many), "uneven": origins} {
		id, newer := publishMatrix(t, a, m), pushed(t, a, newMatrix(t, "newer", 2))
		for version, want := range map[string]string{"": m.Checksum(), id: m.Checksum(), newer.ID: newer.Checksum} {
			last := 0
			got, gotVersion, err := a.Pull(t.Context(), "main", version, func(stage string, done, total int) {
				check.That(t, stage == "pull" && done >= last && done <= total, "%s: progress %s %d of %d after %d", name, stage, done, total, last)
				last = done
			})
			if err != nil || got.Checksum() != want || gotVersion.Checksum != want || last != got.Len() {
				t.Errorf("%s: %v, version %+v, %d rows reported", name, err, gotVersion, last)
			}
		}
	}
}

func TestPullRefusesWhatIsNotWhatWasPushed(t *testing.T) {
	_, a, c := setup(t)
	_, _, err := a.Pull(t.Context(), "main", "", nil)
	check.Error(t, ErrNoVersion, err, "nothing active")
	good := publish(t, a, "one", 50)
	changed := check.Got(simmatrix.PackRow(3, []simmatrix.Neighbor{{Term: "one", Similarity: 0.25, DocFreq: 7}}))(t)
	set := func(value func(rows string) string) func(_, rows string) error {
		return func(_, rows string) error { return c.HSet(t.Context(), rows, term(3), value(rows)).Err() }
	}
	is := func(value string) func(string) string { return func(string) string { return value } }
	for _, tt := range []struct {
		name  string
		spoil func(meta, rows string) error
		want  error
	}{
		{"a row is missing", func(_, rows string) error { return c.HDel(t.Context(), rows, term(3)).Err() }, ErrBadVersion},
		{"a row too many", func(_, rows string) error {
			return c.HSet(t.Context(), rows, "x", seal("x", changed.Packed())).Err()
		}, ErrBadVersion},
		{"another row", set(is(seal(term(3), changed.Packed()))), ErrBadVersion},
		{"a row without a checksum", set(is(changed.Packed())), ErrBadRow},
		{"the row of another term", set(func(rows string) string { return c.HGet(t.Context(), rows, term(4)).Val() }), ErrBadRow},
		{"no row", set(is("junk")), ErrBadRow},
		{"an empty row", set(is("")), ErrBadRow},
		{"another header", func(meta, _ string) error {
			return c.Set(t.Context(), meta, strings.Replace(c.Get(t.Context(), meta).Val(), "1000", "2000", 1), 0).Err()
		}, ErrBadVersion},
		{"a bad header", func(meta, _ string) error { return c.Set(t.Context(), meta, "{", 0).Err() }, ErrBadVersion},
		{"no header", func(meta, _ string) error { return c.Del(t.Context(), meta).Err() }, ErrUnknownVersion},
		{"not complete", func(_, rows string) error { return c.HDel(t.Context(), rows, completeField).Err() }, ErrUnknownVersion},
		{"no rows", func(_, rows string) error { return c.Del(t.Context(), rows).Err() }, ErrUnknownVersion},
	} {
		v := pushed(t, a, newMatrix(t, "one", 50))
		check.OK(t, tt.spoil(metaKey("main", v.ID), rowsKey("main", v.ID)))
		m, _, err := a.Pull(t.Context(), "main", v.ID, nil)
		check.That(t, errors.Is(err, tt.want) && m == nil, "%s: %v, want %v", tt.name, err, tt.want)
	}
	_, _, err = a.Pull(t.Context(), "main", "20200101", nil)
	check.Error(t, ErrUnknownVersion, err, "an unknown version")
	_, v, err := a.Pull(t.Context(), "main", "", nil)
	check.That(t, err == nil && v.ID == good, "the good one: %v", err)
}

func TestPullThatIsDisturbedInTheMiddleReturnsNoMatrix(t *testing.T) {
	_, a, c := setup(t)
	id := publish(t, a, "one", many)
	for _, tt := range []struct {
		name    string
		disturb func(cancel func())
		want    error
	}{
		{"it is canceled", func(cancel func()) { cancel() }, context.Canceled},
		{"it loses its version", func(func()) { c.Del(t.Context(), rowsKey("main", id)) }, ErrUnknownVersion},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m, _, err := a.Pull(ctx, "main", "", func(_ string, done, total int) {
			if done < total {
				tt.disturb(cancel)
			}
		})
		check.That(t, errors.Is(err, tt.want) && m == nil, "%s: error %v", tt.name, err)
	}
}

func TestPullReadsInPages(t *testing.T) {
	t.Parallel()
	_, a, _ := setup(t)
	publish(t, a, "one", many)
	var pages []int
	last := 0
	_, _, err := a.Pull(t.Context(), "main", "", func(_ string, done, _ int) {
		pages = append(pages, done-last)
		last = done
	})
	check.OK(t, err)
	for i, n := range pages {
		check.That(t, n <= 2*maxPage && (i != 0 || n <= 4*firstPage), "page %d has %d rows", i, n)
	}
	check.That(t, len(pages) >= many/(2*maxPage) && len(pages) <= many/100, "%d pages for %d rows", len(pages), many)
}
