package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A normsFollower is a backfill that follows an index.
type normsFollower struct {
	*normsFixture

	weights string
	process *process
}

// follow starts one.
func (f *normsFixture) follow(weights string, args ...string) *normsFollower {
	f.t.Helper()
	cmd := exec.Command(akinPath(f.t), f.command(f.url, weights, append(args, "--follow", "--interval", "1s")...)...)
	cmd.Env = cleanEnvironment()
	p, err := startProcess("follower", newDir(f.t, "follower"), cmd)
	if err != nil {
		f.t.Fatal(err)
	}
	p.logOnFailure(f.t)
	f.t.Cleanup(func() { _ = p.stop() })
	return &normsFollower{f, weights, p}
}

// await waits until the index has so many documents with the field, all with
// their norms.
func (f *normsFollower) await(what string, docs int) {
	f.t.Helper()
	waitFor(f.t, time.Minute, what, func() error {
		if f.process.ended() {
			f.t.Fatalf("the follower has ended\n%s", f.process.tail())
		}
		stored := f.stored()
		if len(stored) != docs {
			return fmt.Errorf("%d documents, want %d", len(stored), docs)
		}
		if wrong := f.wrong(f.weights, stored); len(wrong) > 0 {
			return fmt.Errorf("%d are wrong: %s", len(wrong), wrong[0])
		}
		return nil
	})
}

// checkQuiet checks that nothing is written while nobody else writes.
func (f *normsFollower) checkQuiet() {
	f.t.Helper()
	before := f.stored()
	time.Sleep(3500 * time.Millisecond)
	for id, d := range f.stored() {
		if d.SeqNo != before[id].SeqNo {
			f.t.Fatalf("document %s was written again\n%s", id, f.process.tail())
		}
	}
}

// stop ends the follower as an operator does.
func (f *normsFollower) stop() {
	f.t.Helper()
	f.process.signal(f.t, syscall.SIGTERM)
	if status, err := f.process.wait(20 * time.Second); status != 0 || err != nil {
		f.t.Errorf("status %d, %v\n%s", status, err, f.process.tail())
	}
}

func TestNormsOfWhatIsWrittenLater(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		f := makeNorms(t, e, "akin-e2e-norms-followed", "part.title")
		weights := f.snapshot()
		_ = f.backfill(weights)
		const update = `{"doc":{"part":{"title":%q}}}`
		f.must(t, http.MethodPost, "/"+f.index+"/_update/2", fmt.Sprintf(update, "changed before it was started, as only --all sees"))
		n := f.follow(weights, "--all")
		all := normsDocs * 49 / 50
		n.await("the documents that are there", all)
		n.checkQuiet()

		t.Run("index, update and delete", func(t *testing.T) {
			n := n.with(t)
			n.add(normsDocs, normsDocs+50, "later")
			n.add(0, 50, "again")
			n.must(t, http.MethodPost, "/"+n.index+"/_update/2", fmt.Sprintf(update, "changed in part"))
			n.must(t, http.MethodPost, "/"+n.index+"/_update/4", fmt.Sprintf(update, ""))
			n.must(t, http.MethodDelete, "/"+n.index+"/_doc/1", "")
			all += 49 - 1
			n.await("what was written", all)
			n.checkQuiet()
		})
		t.Run("during writes", func(t *testing.T) {
			n := n.with(t)
			const writes = 400
			for i := range writes { // of ten documents without routing, which the follower writes, too
				n.must(t, http.MethodPost, fmt.Sprintf("/%s/_update/%d?retry_on_conflict=5", n.index, 110+3*(i%10)),
					fmt.Sprintf(`{"doc":{"part":{"title":"%s write%d"}}}`, strings.Repeat("once more ", i%7), i))
			}
			n.await("what was written", all)
			for i := range 10 { // no write is lost
				doc := n.must(t, http.MethodGet, fmt.Sprintf("/%s/_doc/%d", n.index, 110+3*i), "")
				if want := fmt.Sprintf("write%d\"", writes-10+i); !strings.Contains(string(doc), want) {
					t.Errorf("no %s in %s", want, doc)
				}
			}
		})
		t.Run("an index made again", func(t *testing.T) { n.with(t).testMadeAgain() })
		n.stop()
	})
}

// with returns the follower for a sub-test.
func (f *normsFollower) with(t *testing.T) *normsFollower {
	t.Helper()
	return &normsFollower{f.normsFixture.with(t), f.weights, f.process}
}

func (f *normsFollower) testMadeAgain() {
	f.must(f.t, http.MethodDelete, "/"+f.index, "")
	time.Sleep(2500 * time.Millisecond)
	if status, answer, err := f.call(f.t.Context(), http.MethodGet, "/"+f.index, ""); err != nil || status != http.StatusNotFound {
		f.t.Fatalf("the index is there again: %d, %v: %s", status, err, answer)
	}
	bare, norms, _ := strings.Cut(f.definition(), `"akin_norm":`)
	f.must(f.t, http.MethodPut, "/"+f.index, strings.TrimRight(bare, ",\n\t ")+"}}}")
	f.add(0, 100, "")
	waitFor(f.t, 20*time.Second, "word of an index without the mapping", func() error {
		if !strings.Contains(fileTail(f.process.stderr), "left out until it is ready") {
			return errors.New("nothing")
		}
		return nil
	})
	f.must(f.t, http.MethodPut, "/"+f.index+"/_mapping", `{"properties":{"akin_norm":`+strings.TrimSuffix(norms, "}"))
	f.await("the documents of the other index", 98)
	f.must(f.t, http.MethodPost, "/"+f.index+"/_update/2", `{"doc":{"part":{"title":"changed in part"}}}`)
	f.await("an update of it", 98)
	f.checkQuiet()
}
