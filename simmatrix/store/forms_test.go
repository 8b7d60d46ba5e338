package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

func TestFormsGoWithTheirVersion(t *testing.T) {
	s, a, c := setup(t)
	one := newMatrix(t, "one", 10)
	first, second := publishMatrix(t, a, one), publish(t, a, "two", 2) // which has one form
	store := open(t, Options{Redis: s.at()})
	inFile := open(t, Options{Files: map[string]Loader{"main": InMemory(one)}})
	terms := []string{term(0), term(1), term(3), "none"}
	for _, tt := range []struct {
		of      *Store
		version string
		want    map[string]string
	}{
		{store, "main@" + first, map[string]string{term(0): formOf(0), term(3): formOf(3)}},
		{store, "main@" + second, map[string]string{term(0): formOf(0)}},
		{store, "main@20260921T021503.104233-9f3c21ab", map[string]string{}},
		{inFile, "main@" + inFile.State()[0].Version, map[string]string{term(0): formOf(0), term(3): formOf(3)}},
		{store, "", nil},
		{store, "main", nil},
		{store, "main@", nil},
		{store, "other@" + first, nil},
		{store, "main@a b", nil},
	} {
		words, notes := tt.of.Forms(t.Context(), tt.version, terms)
		check.Equal(t, tt.want, words, tt.version)
		check.That(t, len(notes) == 0, "notes %v", notes)
	}
	_, err := a.Prune(t.Context(), "main", 1)
	check.OK(t, err)
	ttl := c.PTTL(t.Context(), formsKey("main", first)).Val()
	check.That(t, ttl > 0 && ttl <= graceFor, "forms of a pruned version expire in %v", ttl)
	check.Equal(t, -1, c.PTTL(t.Context(), formsKey("main", second)).Val())
}

func TestPushThatEndsAfterItsFormsLeavesNone(t *testing.T) {
	s := startRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := 0
	_, err := s.admin(t).Push(ctx, "main", newMatrix(t, "one", 10), "", func(stage string, done, total int) {
		if stage == "push" && done == total { // once with the rows, once with the forms
			if sent++; sent == 2 {
				keys := unfinished(t, s, ":forms:")
				check.That(t, len(keys) == 1, "keys that expire: %q", keys)
				cancel()
			}
		}
	})
	keys := s.keys(t)
	check.That(t, errors.Is(err, context.Canceled) && len(keys) == 0, "error %v, keys %q", err, keys)
}

func TestFormsLostOnTheWayAreSentAgain(t *testing.T) {
	s := startRedis(t)
	m := newMatrix(t, "one", 10)
	var stages []string
	v, err := s.admin(t).Push(t.Context(), "main", m, "", func(stage string, _, _ int) {
		if stages = append(stages, stage); len(stages) == 3 { // check, rows, forms, and then words
			check.OK(t, s.client(t).HDel(t.Context(), unfinished(t, s, ":forms:")[0], term(3)).Err())
		}
	})
	check.OK(t, err)
	check.Equal(t, []string{"check", "push", "push", "push", "push again", "push again", "push again"}, stages, "stages")
	checkComplete(t, s, v, m)
}

func TestFormsOfManyTermsAreBounded(t *testing.T) {
	s, a, _ := setup(t)
	m := newMatrix(t, "one", 3*maxForms)
	version := publishMatrix(t, a, m)
	terms := slices.Collect(m.Terms())
	got, err := a.AllForms(t.Context(), "main", version)
	diff := cmp.Diff(maps.Collect(m.Forms()), got)
	check.That(t, diff == "" && err == nil, "%v, forms (-want +got):\n%s", err, diff)
	if got, _ := open(t, Options{Redis: s.at()}).Forms(t.Context(), "main@"+version, terms); len(got) == 0 || len(got) > maxForms {
		t.Errorf("%d forms of %d terms", len(got), len(terms))
	}
}

func TestDamagedFormsAreLeftOutAndRowsServed(t *testing.T) {
	s, a, c := setup(t)
	version := publish(t, a, "one", 10)
	store := open(t, Options{Redis: s.at()})
	key := formsKey("main", version)
	terms := []string{term(0), term(3), term(6), term(9)}
	check.OK(t, c.HSet(t.Context(), key, term(0), "\x1b[2J", term(3), strings.Repeat("s", 10_000), term(6), "\xff").Err())
	got, _ := store.Forms(t.Context(), "main@"+version, terms)
	check.Equal(t, map[string]string{term(9): formOf(9)}, got)
	got, err := a.AllForms(t.Context(), "main", version)
	check.That(t, err == nil && cmp.Equal(got, map[string]string{term(9): formOf(9)}), "all forms: %v, %v", got, err)
	pullSays := func(want string) {
		t.Helper()
		_, _, err := a.Pull(t.Context(), "main", "", nil)
		check.That(t, errors.Is(err, ErrBadVersion) && strings.Contains(err.Error(), want), "pull: %v, want %q", err, want)
	}
	pullSays("")
	check.OK(t, c.HSet(t.Context(), key, "more", "mores").Err())
	pullSays("more than 4 forms")
	check.OK(t, c.Del(t.Context(), key).Err())
	pullSays("0 forms")
	check.OK(t, c.Set(t.Context(), key, "no hash", 0).Err())
	got, _ = store.Forms(t.Context(), "main@"+version, terms)
	check.That(t, len(got) == 0, "forms %v of a key that is no hash", got)
	_, err = a.AllForms(t.Context(), "main", version)
	check.That(t, err != nil, "a key that is no hash is no error")
	_, rows, err := a.Rows(t.Context(), "main", "", terms)
	check.That(t, err == nil && markOf(rows[0]) == "one" && served(store) == version, "rows %v, %v", rows, err)
}

// A Redis that hangs keeps somebody who looks at an explanation waiting for the
// timeout only.
func TestFormsOfARedisThatHangsAreNone(t *testing.T) {
	s := startRedis(t)
	version := publish(t, s.admin(t), "one", 10)
	store := open(t, Options{Redis: s.at(), RedisTimeout: 100 * time.Millisecond})
	s.hang()
	defer s.resume()
	begin := time.Now()
	got, _ := store.Forms(t.Context(), "main@"+version, []string{term(0)})
	took := time.Since(begin)
	check.That(t, len(got) == 0 && took <= longest/2, "%d forms after %v", len(got), took)
}
