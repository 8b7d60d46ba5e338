package embedding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
)

// errTexts is what a fake model rejects texts with.
var errTexts = errors.New("rejected")

// A fakeModel makes vectors of four numbers: how often a text has a, b, c
// and d.
type fakeModel struct {
	mu     sync.Mutex
	texts  []string // that were asked for, but the probe
	err    error
	turned bool          // other vectors come
	dim    int           // unless 0, of the vectors
	half   bool          // only the first half of the vectors comes
	takes  time.Duration // a call
	most   int           // unless 0, how long a text may be
	alone  bool          // it takes one text at a time
}

// wait takes the time that a call takes, or until it ends.
func (m *fakeModel) wait(ctx context.Context) error {
	m.mu.Lock()
	takes := m.takes
	m.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (m *fakeModel) vectors(texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	if m.alone && len(texts) > 1 {
		return nil, errors.New("429")
	}
	var all [][]float32
	for _, text := range texts {
		if m.most > 0 && len(text) > m.most {
			return nil, errTexts
		}
	}
	for _, text := range texts {
		if text != probe {
			m.texts = append(m.texts, text)
		}
		v := make([]float32, 4)
		for i, letter := range "abcd" {
			v[i] = float32(strings.Count(text, string(letter)))
		}
		if m.turned {
			v[0], v[1], v[2], v[3] = v[3], v[2], v[0], v[1]
		}
		if m.dim > 0 {
			v = append(v, make([]float32, 8)...)[:m.dim]
		}
		all = append(all, v)
	}
	if m.half {
		all = all[:len(all)/2]
	}
	return all, nil
}

func (m *fakeModel) set(change func(*fakeModel)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// asked returns the texts since the last call, sorted.
func (m *fakeModel) asked() (texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	texts, m.texts = m.texts, nil
	slices.Sort(texts)
	return texts
}

// A fakeSource has documents by id, each with a number that a write raises.
type fakeSource struct {
	mu    sync.Mutex
	texts map[string]string
	seqNo map[string]int64
	// numbers are the ids by number in an index of one shard, else nil.
	numbers map[int64]string
	writes  int64
	uuid    string
	most    int // unless 0, how many documents are not too large
	err     error
}

func (s *fakeSource) write(id, text string) expand.Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[id] = text
	if s.numbers == nil {
		s.seqNo[id]++
	} else {
		delete(s.numbers, s.seqNo[id])
		s.writes++
		s.seqNo[id] = s.writes
		s.numbers[s.writes] = id
	}
	return expand.Hit{Index: "i", ID: id, SeqNo: s.seqNo[id]}
}

func (s *fakeSource) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *fakeSource) States(_ context.Context, index string, ids []string, seqNos []int64, paths []string) (docs []documents.DocRef, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && len(ids) > s.most {
		return nil, fmt.Errorf("%d documents: %w", len(ids), esclient.ErrTooLarge)
	}
	if ids == nil {
		for _, n := range seqNos {
			ids = append(ids, s.numbers[n])
		}
	}
	for i, id := range ids {
		if text, ok := s.texts[id]; ok && s.seqNo[id] == seqNos[i] && index == "i" {
			source := fmt.Sprintf(`{%q:%q}`, paths[0], text)
			if text == "" {
				source = `{}`
			}
			docs = append(docs, documents.DocRef{Index: index, ID: id, SeqNo: seqNos[i], Source: []byte(source)})
		}
	}
	return docs, s.err
}

func (s *fakeSource) Concrete(_ context.Context, indices []string) (map[string]documents.ConcreteIndex, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]documents.ConcreteIndex{}
	for _, index := range indices {
		all[index] = documents.ConcreteIndex{Name: index, UUID: s.uuid, Shards: 2 - min(len(s.numbers), 1)}
	}
	return all, nil
}

// A fakeStore is a store in memory.
type fakeStore struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
}

func (s *fakeStore) Get(_ context.Context, keys []string) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = s.values[key]
	}
	return values, s.err
}

func (s *fakeStore) Put(_ context.Context, keys []string, values [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if s.err == nil {
			s.values[key] = values[i]
		}
	}
	return s.err
}

// A rig is a reranker with its fakes.
type rig struct {
	*Reranker

	t      *testing.T // of the bubble
	model  *fakeModel
	source *fakeSource
	states []State
}

// inBubble runs test in a bubble of time with a reranker that has a store
// and a model, which may be another one from the start.
func inBubble(t *testing.T, store *fakeStore, test func(r *rig), other ...func(*fakeModel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{model: new(fakeModel), source: &fakeSource{texts: map[string]string{}, seqNo: map[string]int64{}}}
		for _, change := range other {
			change(r.model)
		}
		maker := &Maker{
			Name: "m", Refused: func(err error) bool { return errors.Is(err, errTexts) },
			Documents: func(ctx context.Context, texts []string) ([][]float32, error) {
				if err := r.model.wait(ctx); err != nil {
					return nil, err
				}
				return r.model.vectors(texts)
			},
		}
		if store != nil {
			maker.Store = store
		}
		r.Reranker = New(Options{
			Maker: maker, Fields: []string{"body"}, Sources: r.source, Bytes: 1 << 20, Budget: 40 * time.Millisecond, TTL: time.Minute,
			Search: func(ctx context.Context, text string) ([]float32, error) {
				if err := r.model.wait(ctx); err != nil {
					return nil, err
				}
				vectors, err := r.model.vectors([]string{text})
				if err != nil {
					return nil, err
				}
				return vectors[0], nil
			},
			Rejected: func(err error) bool { return errors.Is(err, errTexts) },
			OnState:  func(s State) { r.states = append(r.states, s) },
		})
		defer r.Close()
		synctest.Wait()
		r.t = t
		test(r)
	})
}

// settle lets the work in the background end.
func settle() {
	time.Sleep(10 * probeAgain)
	synctest.Wait()
}

// order returns the ids by cosine, with "?" behind those without one.
func (r *rig) order(t *testing.T, text string, hits ...expand.Hit) string {
	t.Helper()
	scores, err := r.Scores(t.Context(), &expand.Rerank{Text: text}, hits)
	if err != nil {
		return err.Error()
	}
	var out []string
	for k, s := range scores {
		if s.NoVector {
			out = append(out, hits[k].ID+"?")
		} else {
			out = append(out, fmt.Sprintf("%s%.2f", hits[k].ID, s.Cosine))
		}
	}
	return strings.Join(out, " ")
}

func TestVectorsAreMadeOnceASearchHasFoundTheirDocuments(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one, two, none := r.source.write("1", "aa"), r.source.write("2", "bb"), r.source.write("3", "")
		check.Equal(t, expand.ErrNotRemembered.Error(), r.order(t, "a", one, two, none))
		settle()
		check.Equal(t, "1"+"1.00 20.00 3?", r.order(t, "a", one, two, none))
		check.Equal(t, []string{"a", "aa", "bb"}, r.model.asked())
		settle()
		check.Equal(t, "11.00 20.00 3?", r.order(t, "a", one, two, none))
		check.Equal(t, 0, len(r.model.asked()), "a vector is made twice")
		changed := r.source.write("2", "ab")
		check.Equal(t, "11.00 2?", r.order(t, "a", one, changed))
		settle()
		check.Equal(t, "11.00 20.71", r.order(t, "a", one, changed))
		check.Equal(t, []string{"ab"}, r.model.asked())
		r.source.uuid = "another index of the name"
		time.Sleep(2 * time.Minute)
		check.Equal(t, expand.ErrNotRemembered.Error(), r.order(t, "a", one, changed))
	})
}

// In an index of one shard, hits of most searches have numbers without ids.
func TestNumbersNameTheDocumentsOfOneShard(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		r.source.numbers = map[int64]string{}
		named := []expand.Hit{r.source.write("1", "aa"), r.source.write("2", "ab")}
		numbered := slices.Clone(named)
		for k := range numbered {
			numbered[k].ID = ""
		}
		r.order(t, "a", numbered...)
		settle()
		check.Equal(t, []string{"a", "aa", "ab"}, r.model.asked())
		check.Equal(t, "1.00 0.71", r.order(t, "a", numbered...))
		check.Equal(t, "11.00 20.71", r.order(t, "a", named...), "a page behind the window has ids")
		changed := r.source.write("1", "bb")
		changed.ID = ""
		check.Equal(t, "? 0.71", r.order(t, "a", changed, numbered[1]))
		settle()
		check.Equal(t, []string{"bb"}, r.model.asked())
		room, err := r.Warm(t.Context(), []documents.DocRef{{Index: "i", ID: "2", SeqNo: named[1].SeqNo, Source: []byte(`{"body":"ab"}`)}})
		check.OK(t, err)
		check.That(t, room && len(r.model.asked()) == 0, "a vector is made twice")
	})
}

func TestWhatChangedWhileItWaitedGetsNoVector(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		old := r.source.write("1", "a")
		r.source.write("1", "b")
		r.order(t, "a", old)
		settle()
		check.Equal(t, []string{"a"}, r.model.asked(), "only the search")
		check.Equal(t, expand.ErrNotRemembered.Error(), r.order(t, "a", old))
	})
}

func TestTooManyTextsAreReadInParts(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		r.source.most, r.model.most = 1, 500
		hits := []expand.Hit{r.source.write("1", "a"), r.source.write("2", strings.Repeat("b ", 400)), r.source.write("3", "a b")}
		r.order(t, "a", hits...)
		settle()
		check.Equal(t, "11.00 2? 30.71", r.order(t, "a", hits...), "the model rejects one of them")
	})
}

func TestManyClientsAskTheModelOnceForATextAndNotForAllAtOnce(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one := r.source.write("1", "a")
		r.order(t, "a", one)
		settle()
		r.model.asked()
		r.model.set(func(m *fakeModel) { m.takes = 20 * time.Millisecond })
		const clients = 200
		var same, late atomic.Int64
		all := func(text func(client int) string) {
			var searching sync.WaitGroup
			for k := range clients {
				searching.Go(func() {
					began := time.Now()
					_, err := r.Scores(t.Context(), &expand.Rerank{Text: text(k)}, []expand.Hit{one})
					if err == nil {
						same.Add(1)
					}
					if time.Since(began) > 40*time.Millisecond {
						late.Add(1)
					}
				})
			}
			searching.Wait()
		}
		all(func(int) string { return "ab" })
		check.Equal(t, []string{"ab"}, r.model.asked())
		check.Equal(t, clients, same.Load())
		all(func(client int) string { return fmt.Sprint("b", client) })
		check.Equal(t, 0, late.Load(), "searches wait longer than the budget")
		asked := len(r.model.asked())
		check.That(t, asked > 0 && asked <= 3*maxCalls, "the model got %d of %d texts in 40 ms", asked, clients)
	})
}

func TestLongTextsAndEqualIdsAreToldApart(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one, large := r.source.write("1", "a"), r.source.write("2", strings.Repeat("b ", 500_000))
		words := strings.TrimSpace(strings.Repeat("a ", 5_000))
		r.order(t, words, one, large)
		settle()
		check.Equal(t, "11.00 20.00", r.order(t, words, one, large))
		for _, text := range r.model.asked() {
			check.That(t, text == words || len(text) <= maxText, "the model got %d bytes of a document", len(text))
		}
		keys := check.Got(r.Reranker.states(t.Context(), []expand.Hit{one, {Index: "another", ID: one.ID, SeqNo: one.SeqNo}}))(t)
		check.That(t, keys[0] != keys[1], "documents of two indices with one id have one key")
		routed := one
		routed.Routing = "r"
		keys = check.Got(r.Reranker.states(t.Context(), []expand.Hit{one, routed}))(t)
		check.That(t, keys[0] != keys[1], "documents of two shards with one id have one key")
	})
}

func TestALateModelCostsTheBudgetAndIsRemembered(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one := r.source.write("1", "a")
		r.order(t, "a", one)
		settle()
		r.model.set(func(m *fakeModel) { m.takes = time.Second })
		began := time.Now()
		check.Equal(t, ErrLate.Error(), r.order(t, "b", one))
		check.Equal(t, 40*time.Millisecond, time.Since(began))
		time.Sleep(time.Second)
		check.Equal(t, "10.00", r.order(t, "b", one))
		began = time.Now()
		r.Begin(t.Context(), &expand.Rerank{Text: "c"})
		check.Equal(t, 0, time.Since(began))
		time.Sleep(time.Second)
		check.Equal(t, "10.00", r.order(t, "c", one), "it was asked before")
	})
}

func TestAModelThatIsAlwaysLateIsLeftAloneUntilItIsNot(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one := r.source.write("1", "a")
		r.order(t, "a", one)
		settle()
		r.model.set(func(m *fakeModel) { m.takes = 60 * time.Millisecond })
		for i := range maxFailures {
			check.Equal(t, ErrLate.Error(), r.order(t, fmt.Sprint("b", i), one))
			time.Sleep(time.Second) // the vector has come
			if i < maxFailures-1 {
				check.Equal(t, "11.00", r.order(t, "a", one), "which it is not asked for")
			}
		}
		settle()
		began := time.Now()
		check.Equal(t, ErrModel.Error(), r.order(t, "c", one))
		check.Equal(t, 0, time.Since(began), "it is still waited for")
		check.Error(t, ErrLate, r.State().Err)
		r.model.set(func(m *fakeModel) { m.takes = 0 })
		settle()
		check.Equal(t, "11.00", r.order(t, "a", one))
		check.Equal(t, 3, len(r.states), "%+v", r.states)
	})
}

// A call that hangs ends long before a batch of documents would, and that ends
// before operators look for what is wrong.
func TestAModelThatHangsIsAskedAgainSoonAfterItAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		documents bool // hang, too
		within    time.Duration
	}{
		"searches":               {false, searchTimeout + 2*probeAgain},
		"searches and documents": {true, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				t := r.t
				one := r.source.write("1", "a")
				r.order(t, "a", one)
				settle()
				r.model.set(func(m *fakeModel) { m.takes = time.Hour })
				found := []expand.Hit{one}
				if c.documents {
					found = append(found, r.source.write("2", "c"))
				}
				for i := range maxFailures {
					check.Equal(t, ErrLate.Error(), r.order(t, fmt.Sprint("b", i), found...))
				}
				time.Sleep(time.Second)
				check.Error(t, ErrLate, r.State().Err)
				r.model.set(func(m *fakeModel) { m.takes = 0 })
				time.Sleep(c.within)
				check.Equal(t, "11.00", r.order(t, "a", one))
			})
		})
	}
}

func TestAFailingModelIsLeftAloneUntilItAnswers(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one := r.source.write("1", "a")
		r.order(t, "a", one)
		settle()
		check.That(t, r.Knows("body") && r.Knows("body.english") && !r.Knows("title"), "other fields are known")
		r.model.set(func(m *fakeModel) { m.err = errors.New("down") })
		for i := range maxFailures {
			check.That(t, strings.Contains(r.order(t, fmt.Sprint("b", i), one), "down"), "it does not fail")
		}
		synctest.Wait()
		check.That(t, !r.Knows("body") && r.State().Err != nil, "it is still asked: %+v", r.State())
		check.Equal(t, ErrModel.Error(), r.order(t, "a", one))
		r.model.set(func(m *fakeModel) { m.err = nil })
		settle()
		check.Equal(t, "11.00", r.order(t, "a", one))
		check.Equal(t, 3, len(r.states), "%+v", r.states)
	})
}

// A vendor's limit is reached by many documents sooner than by a search.
func TestAModelThatDoesNotTakeDocumentsStillOrdersHits(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one, two, three := r.source.write("1", "a"), r.source.write("2", "b"), r.source.write("3", "c")
		r.order(t, "a", one)
		settle()
		r.model.set(func(m *fakeModel) { m.alone = true })
		check.Equal(t, "11.00 2? 3?", r.order(t, "a", one, two, three))
		synctest.Wait()
		check.Equal(t, "11.00 2? 3?", r.order(t, "aa", one, two, three), "another search")
		said := r.State().Documents
		check.That(t, r.State().Ready && said != nil && strings.Contains(said.Error(), "429"), "%+v", r.State())
		settle() // one by one they are taken
		check.Equal(t, "11.00 20.00 30.00", r.order(t, "a", one, two, three))
		check.OK(t, r.State().Documents)
		check.Equal(t, 1, len(r.states), "%+v", r.states)
	})
}

func TestDocumentsThatTheClusterDoesNotHaveAreForgotten(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		one, two := r.source.write("1", "a"), r.source.write("2", "b")
		r.order(t, "a", one)
		settle()
		r.source.fail(errors.New("no such index"))
		r.order(t, "a", one, two)
		settle()
		check.Equal(t, 0, r.Stats().Waiting)
		check.That(t, r.State().Ready && r.State().Documents == nil, "%+v", r.State())
		r.source.fail(nil)
		r.order(t, "a", one, two)
		settle()
		check.Equal(t, "11.00 20.00", r.order(t, "a", one, two), "searches ask again")
	})
}

func TestWhatIsNotTheModelsFaultDoesNotCount(t *testing.T) {
	for name, search := range map[string]func(r *rig, i int, one expand.Hit) error{
		"a client that leaves": func(r *rig, i int, one expand.Hit) error {
			ctx, leave := context.WithTimeout(r.t.Context(), time.Millisecond)
			defer leave()
			_, err := r.Scores(ctx, &expand.Rerank{Text: fmt.Sprint("b", i)}, []expand.Hit{one})
			return err
		},
		"a text that the model rejects": func(r *rig, i int, one expand.Hit) error {
			_, err := r.Scores(r.t.Context(), &expand.Rerank{Text: strings.Repeat("b", 1000+i)}, []expand.Hit{one})
			return err
		},
		"a text of zeros": func(r *rig, i int, one expand.Hit) error {
			_, err := r.Scores(r.t.Context(), &expand.Rerank{Text: fmt.Sprint("z", i)}, []expand.Hit{one})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				one := r.source.write("1", "a")
				r.order(r.t, "a", one)
				settle()
				r.model.set(func(m *fakeModel) { m.takes, m.most = 5*time.Millisecond, 900 })
				for i := range 2 * maxFailures {
					err := search(r, i, one)
					check.That(r.t, err != nil && !errors.Is(err, ErrModel), "%v", err)
					synctest.Wait()
				}
				check.Equal(r.t, "11.00", r.order(r.t, "a", one))
				check.Equal(r.t, 1, len(r.states), "%+v", r.states)
			})
		})
	}
}

func TestManyDifferentSearchesAtOnceDoNotCountAsFailures(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		one := r.source.write("1", "a")
		r.order(r.t, "a", one)
		settle()
		r.model.set(func(m *fakeModel) { m.takes = 5 * time.Millisecond })
		var searches sync.WaitGroup
		for i := range 200 {
			searches.Go(func() { _, _ = r.Scores(r.t.Context(), &expand.Rerank{Text: fmt.Sprint("a", i)}, []expand.Hit{one}) })
		}
		searches.Wait()
		check.Equal(r.t, "11.00", r.order(r.t, "a", one))
		check.Equal(r.t, 1, len(r.states), "%+v", r.states)
	})
}

func TestAnotherModelUnderTheNameMakesAllVectorsAgain(t *testing.T) {
	for name, change := range map[string]func(*fakeModel){
		"other numbers":     func(m *fakeModel) { m.turned = true },
		"another dimension": func(m *fakeModel) { m.dim = 6 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &fakeStore{values: map[string][]byte{}}, func(r *rig) {
				t := r.t
				one := r.source.write("1", "ab")
				r.order(t, "a", one)
				settle()
				check.Equal(t, "10.71", r.order(t, "a", one))
				r.model.set(change)
				time.Sleep(2 * probeEvery)
				check.Equal(t, expand.ErrNotRemembered.Error(), r.order(t, "a", one))
				settle()
				check.Equal(t, "10.71", r.order(t, "a", one))
				check.That(t, r.states[len(r.states)-1].Changed, "%+v", r.states)
			})
		})
	}
}

func TestAnswersOfAnotherShapeFail(t *testing.T) {
	for name, change := range map[string]func(*fakeModel){
		"another dimension": func(m *fakeModel) { m.dim = 3 },
		"half of a batch":   func(m *fakeModel) { m.half = true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				t := r.t
				r.model.set(change)
				hits := []expand.Hit{r.source.write("1", "a"), r.source.write("2", "b")}
				vectors, made, err := r.options.Maker.Make(t.Context(), []string{"a", "b"})
				check.That(t, errors.Is(err, ErrModel) && vectors == nil && made == 0, "%v %d %v", vectors, made, err)
				r.order(t, "", hits...)
				synctest.Wait()
				check.Equal(t, uint64(0), r.Stats().Documents)
			})
		})
	}
}

func TestTheNextProcessTakesVectorsFromTheStore(t *testing.T) {
	store := &fakeStore{values: map[string][]byte{}}
	use := func(want ...string) func(*rig) {
		return func(r *rig) {
			t := r.t
			one := r.source.write("1", "aab")
			r.order(t, "a", one)
			settle()
			check.Equal(t, "10.89", r.order(t, "a", one))
			check.Equal(t, want, r.model.asked())
		}
	}
	inBubble(t, store, use("a", "aab"))
	inBubble(t, store, use("a"))
	store.err = errors.New("the store is down")
	inBubble(t, store, func(r *rig) {
		t := r.t
		use("a", "aab")(r)
		check.Error(t, store.err, r.State().Store)
		store.err = nil
		r.order(t, "a", r.source.write("2", "b"))
		settle()
		check.OK(t, r.State().Store)
	})
	inBubble(t, store, func(r *rig) {
		t := r.t
		check.That(t, r.states[0].Changed, "%+v", r.states)
		use("a", "aab")(r)
	}, func(m *fakeModel) { m.turned = true })
}

func TestAStoreThatLostTheProbeKeepsModelsApart(t *testing.T) {
	store := &fakeStore{values: map[string][]byte{}}
	asked := func(change func(*fakeModel)) (texts []string) {
		delete(store.values, keyOf("probe", "m"))
		inBubble(t, store, func(r *rig) {
			r.order(r.t, "a", r.source.write("1", "aab"))
			settle()
			texts = r.model.asked()
		}, change)
		return texts
	}
	check.Equal(t, []string{"a", "aab"}, asked(func(*fakeModel) {}))
	check.Equal(t, []string{"a", "aab"}, asked(func(m *fakeModel) { m.turned = true }), "another model has the vectors of the first")
	check.Equal(t, []string{"a", "aab"}, asked(func(*fakeModel) {}), "they may be of the model in between")
}

func TestAModelThatRejectsEverythingFails(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		r.model.set(func(m *fakeModel) { m.most = 1 })
		_, _, err := r.options.Maker.Make(t.Context(), []string{"ab", "bc"})
		check.Error(t, ErrModel, err)
	})
}

func TestWarmUpEndsWhereMemoryIsFull(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		t := r.t
		r.slab.limit = 3 * (headBytes + scaleBytes + 4 + placeBytes)
		r.slab.reset(4)
		docs := func(from, to int) (docs []documents.DocRef) {
			for i := from; i < to; i++ {
				docs = append(docs, documents.DocRef{Index: "i", ID: strconv.Itoa(i), SeqNo: int64(i), Source: []byte(`{"body":["a","b"]}`)})
			}
			return docs
		}
		for _, step := range []struct {
			from, to int
			room     bool
		}{{0, 2, true}, {0, 2, true}, {1, 3, true}, {3, 5, false}, {0, 3, true}} {
			got, err := r.Warm(t.Context(), docs(step.from, step.to))
			check.OK(t, err)
			check.Equal(t, step.room, got, "%+v", step)
		}
		check.Equal(t, []string{"a b", "a b"}, r.model.asked(), "once for each call that lacks it")
	})
}

func TestTextIsThatOfTheFieldsInOrder(t *testing.T) {
	source := []byte(`{"body":{"en":["one\n two",3]},"title":"zero","other":"x"}`)
	check.Equal(t, "zero one two 3", Text(source, []string{"title", "body.en"}))
	check.Equal(t, "", Text(source, []string{"none"}))
	check.Equal(t, "", Text(nil, []string{"title"}))
	long := Text([]byte(`{"t":"`+strings.Repeat("ü", 5000)+`"}`), []string{"t"})
	check.That(t, len(long) == maxText && strings.Trim(long, "ü") == "", "%d bytes: %.20q", len(long), long)
}
