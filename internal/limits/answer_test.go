package limits

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// whole is an answer.
const wholeOf = `{"responses":[]}`

func TestAnswersAreHeldWithinTheMemory(t *testing.T) {
	const limit = 4 * MaxAnswer
	sizes := []int{0, 1, firstRead - 1, firstRead, firstRead + 1, MaxAnswer, MaxAnswer + 1, MaxAnswer + firstRead, 3 * MaxAnswer}
	for _, size := range sizes {
		for _, taken := range []int64{0, limit/2 - leastRead, limit / 2} {
			memory := New(limit)
			memory.Hold(SearchBody, "one").Add(taken)
			held := func() int64 { return memory.Stats(Answer).Held }
			body := bytes.Repeat([]byte("x"), size)
			res := &http.Response{ContentLength: -1, Body: io.NopCloser(bytes.NewReader(body))}
			answer, err := (&Recipient{Name: "one"}).Whole(memory, res)
			check.That(t, held() <= min(limit/2-taken, MaxAnswer+1), "%d bytes, %d taken: %d are held", size, taken, held())
			var want error
			switch {
			case taken == limit/2, taken > 0 && size >= leastRead:
				want = ErrNoRoom
			case size > MaxAnswer:
				want = ErrTooLarge
			}
			check.That(t, errors.Is(err, want) && (err == nil || want != nil), "%d bytes, %d taken: error %v, want %v", size, taken, err, want)
			check.That(t, err != nil || bytes.Equal(answer, body), "%d bytes: held %d", size, len(answer))
			got, err := io.ReadAll(res.Body)
			check.That(t, err == nil && bytes.Equal(got, body), "%d bytes: %d are left, %v", size, len(got), err)
			for range 2 { // a body may be closed twice
				err := res.Body.Close()
				check.That(t, err == nil && held() == 0, "%d bytes: %d are held behind the end, %v", size, held(), err)
			}
		}
	}
}

func TestAnAnswerIsNotHeldTwice(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   error
		held   int64
	}{
		{wholeOf, nil, leastRead},
		{strings.Repeat("x", 2*MaxAnswer), ErrTooLarge, MaxAnswer + 1},
	} {
		memory, client := New(128<<20), new(Recipient)
		held := func() int64 { return memory.Stats(Answer).Held }
		res := &http.Response{ContentLength: -1, Body: io.NopCloser(strings.NewReader(c.answer))}
		first, err := client.Whole(memory, res)
		again, errAgain := client.Whole(memory, res)
		if !errors.Is(err, c.want) || err != nil && c.want == nil || !errors.Is(errAgain, err) || len(first) != len(again) {
			t.Errorf("held %d bytes, %v, then %d, %v", len(first), err, len(again), errAgain)
		}
		check.That(t, err != nil || string(again) == c.answer && &first[0] == &again[0], "held %s", again)
		check.Equal(t, c.held, held())
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != c.answer {
			t.Errorf("%d bytes are left, %v", len(got), err)
		}
		if err := res.Body.Close(); err != nil || held() != 0 {
			t.Errorf("%v, %d bytes are counted after it is closed", err, held())
		}
	}
}

func TestWhatIsWrittenOfAnAnswerIsHeld(t *testing.T) {
	memory, client := New(128<<20), new(Recipient)
	held := func() int64 { return memory.Stats(Answer).Held }
	closed := false
	res := &http.Response{ContentLength: -1, Body: struct {
		io.Reader
		io.Closer
	}{strings.NewReader(wholeOf), closerFunc(func() error { closed = true; return nil })}}
	check.OK(t, check.ErrOf(client.Whole(memory, res)))
	out := append(make([]byte, 0, 100), "{}"...)
	client.Replace(memory, res, out)
	check.Equal(t, 100, held())
	got, err := io.ReadAll(res.Body)
	check.That(t, err == nil && string(got) == "{}", "read %q, %v", got, err)
	err = res.Body.Close()
	check.That(t, err == nil && closed && held() == 0, "%v, closed %v, %d bytes are counted", err, closed, held())
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }
