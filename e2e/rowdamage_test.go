package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestDamagedRowsAreNeverUsed deletes rows of the served version while searches
// run, and flips a bit of one before akin reads it: each search gets the hits of
// a whole version or, counted, those of the original. The version before is
// served until the repair.
func TestDamagedRowsAreNeverUsed(t *testing.T) {
	e, server := oneEngine(t), ownRedis(t)
	makeRelated(t, e)
	before := pushMatrix(t, server, "main", relatedFile(t, vectorsA))
	damaged := pushMatrix(t, server, "main", relatedFile(t, vectorsB))
	options, err := redis.ParseURL(server.url)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(options)
	defer db.Close()
	key := "akin:{main}:rows:" + damaged
	rows, err := db.HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rows deleted", "a bit flipped", "a row deleted and a field added"} {
		t.Run(name, func(t *testing.T) {
			// An akin that has warmed up has the sound row in its cache, and goes on
			// with it: the bit is flipped before. The matrix names no frequent terms,
			// so that the version is taken up before its rows are read.
			if name == "a bit flipped" {
				row := []byte(rows["car"])
				row[len(row)/2] ^= 4
				if err := db.HSet(t.Context(), key, "car", row).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if name == "a row deleted and a field added" {
				if err := errors.Join(db.HDel(t.Context(), key, "car").Err(), db.HSet(t.Context(), key, "x", "y").Err()); err != nil {
					t.Fatal(err)
				}
			}
			a := serveFromRedis(t, e, server.url)
			if name == "rows deleted" {
				a.awaitMatrix(t, "main")
				if err := db.HDel(t.Context(), key, "car", "boat").Err(); err != nil {
					t.Fatal(err)
				}
			}
			awaitVersionHits(t, a, hitsWithA, hitsWithB)
			if served := a.metric(t, "akin_matrix_info", `version="`+before+`"`); served != 1 {
				t.Errorf("the version before is not the one that is reported")
			}
			if healthy := a.metric(t, "akin_matrix_source_healthy"); healthy != 0 {
				t.Errorf("source_healthy is %v", healthy)
			}
			if err := errors.Join(db.HDel(t.Context(), key, "x").Err(), db.HSet(t.Context(), key, rows).Err()); err != nil {
				t.Fatal(err)
			}
			awaitVersionHits(t, a, hitsWithB, hitsWithA)
			if healthy := a.metric(t, "akin_matrix_source_healthy"); healthy != 1 {
				t.Errorf("source_healthy is %v after the repair", healthy)
			}
			var logged []string
			for _, line := range a.logLines(t) {
				if line["msg"] == "matrix" {
					logged = append(logged, fmt.Sprint(line["level"], " ", line["version"]))
				}
			}
			want := "INFO " + damaged + ", WARN " + before + ", INFO " + damaged
			if got := strings.Join(logged, ", "); got != want {
				t.Errorf("log %s, want %s", got, want)
			}
		})
	}
}

// awaitVersionHits searches until the hits are those wanted. Until then they may be
// those of the other version or, where the search counts as failed open, those
// of the original.
func awaitVersionHits(t *testing.T, a *akin, want, other string) {
	t.Helper()
	original := sortedWords("car", "car-red", "car-automobile", "boat", "boat-blue", "boat-ship")
	failed := a.metric(t, requestsMetric, `outcome="failed_open"`)
	plain := 0.0
	waitFor(t, 30*time.Second, "the hits of the other version", func() error {
		switch ids := strings.Join(sortedIDs(a.searchRelated(t, relatedSearch("car boat"))), " "); ids {
		case want:
			return nil
		case original:
			plain++
		case other:
		default:
			t.Fatalf("hits of no version: %s", ids)
		}
		return fmt.Errorf("not yet")
	})
	if counted := a.metric(t, requestsMetric, `outcome="failed_open"`) - failed; counted != plain {
		t.Errorf("%v searches count as failed open, %v came with the original's hits", counted, plain)
	}
}
