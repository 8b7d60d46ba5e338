package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/tools/reweigh"
	"github.com/akin-search/akin/tools/suggest"
)

// suggestPage gives the page "Searches without hits" what it shows. It connects
// for each request: they are rare.
type suggestPage struct{ cfg *configs.Config }

// suggestionsOf returns the suggestions for the page of an akin that serves a
// configuration.
func suggestionsOf(cfg *configs.Config) playground.Suggestions { return suggestPage{cfg} }

// shownSearches limits the list of the page.
const shownSearches = 100

// A shownSearch is a search of the list, with its counts.
type shownSearch struct {
	Index   string `json:"index"`
	Fields  string `json:"fields"`
	Text    string `json:"text"`
	None    int64  `json:"none"`
	Few     int64  `json:"few"`
	Related int64  `json:"related"`
}

// A brought decision has what searches with its word found before and since.
type brought struct {
	acceptedPair

	Before searchCounts `json:"before"`
	After  searchCounts `json:"after"`
}

// searchCounts are searches of some days, that of the decision among the later
// ones.
type searchCounts struct {
	Days  int   `json:"days"` // on which there were any
	None  int64 `json:"none"`
	Found int64 `json:"found"`
	// Shown are the answers that the log of clicks has, and Clicked those of them
	// with a click.
	Shown   int64 `json:"shown"`
	Clicked int64 `json:"clicked"`
}

// List implements [playground.Suggestions].
func (p suggestPage) List(ctx context.Context, all []searches.Search) (any, error) {
	s, err := openSuggestions(p.cfg)
	if err != nil {
		return nil, err
	}
	defer s.close()
	decisions, err := s.decisions(ctx)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Searches  []shownSearch `json:"searches"`
		Decisions []brought     `json:"decisions"`
		Problem   string        `json:"problem,omitempty"` // why some of it is not known
	}{[]shownSearch{}, make([]brought, len(decisions)), ""}
	for k := range all {
		of := &all[k]
		helped := func(d suggest.Decision) bool { return d.Similarity > 0 && hasWord(of.Text, d.Word) }
		if len(answer.Searches) < shownSearches && !slices.ContainsFunc(decisions, helped) {
			t := of.Total()
			answer.Searches = append(answer.Searches, shownSearch{of.Index, of.Fields, of.Text, t.None, t.Few, t.Related})
		}
	}
	pairs := make([]acceptedPair, len(decisions))
	for k, d := range decisions {
		pairs[k].Decision = d
	}
	gone := s.markGone(ctx, pairs)
	for k := range pairs {
		answer.Decisions[k] = bring(&pairs[k], all)
	}
	if err := errors.Join(gone, p.countClicks(answer.Decisions)); err != nil {
		answer.Problem = err.Error()
	}
	return answer, nil
}

// bring counts the searches with the word of a decision.
func bring(d *acceptedPair, all []searches.Search) brought {
	out := brought{acceptedPair: *d}
	date := d.At.UTC().Format(time.DateOnly)
	days := map[string]bool{}
	for k := range all {
		if d.Similarity == 0 || !hasWord(all[k].Text, d.Word) {
			continue
		}
		for _, day := range all[k].Days {
			to := &out.After
			if day.Date < date {
				to = &out.Before
			}
			if !days[day.Date] {
				days[day.Date] = true
				to.Days++
			}
			to.None += day.None
			to.Found += day.Few + day.Related + day.Enough
		}
	}
	return out
}

// maxClicks is how much is read of a log of clicks, from its end.
const maxClicks = 64 << 20

// countClicks counts in the log of clicks the answers to searches with the
// words of decisions, if it says when they were shown.
func (p suggestPage) countClicks(all []brought) (err error) {
	if p.cfg.Searches.Clicks == "" || len(all) == 0 {
		return nil
	}
	log, err := os.Open(p.cfg.Searches.Clicks)
	if errors.Is(err, fs.ErrNotExist) { // nobody has clicked yet
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // nothing was written
	lines := bufio.NewReader(log)
	if _, err := log.Seek(-maxClicks, io.SeekEnd); err == nil { // else it is shorter
		if _, err := lines.ReadString('\n'); err != nil {
			return fmt.Errorf("%s: %w", p.cfg.Searches.Clicks, err)
		}
	}
	err = reweigh.EachImpression(lines, func(i reweigh.Impression) {
		text := searches.Text(i.Query)
		for k := range all {
			d := &all[k]
			if i.At.IsZero() || d.Similarity == 0 || !hasWord(text, d.Word) {
				continue
			}
			to := &d.After
			if i.At.Before(d.At) {
				to = &d.Before
			}
			to.Shown++
			if len(i.Clicked) > 0 {
				to.Clicked++
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s, without the lines before its last %d MB: %w", p.cfg.Searches.Clicks, maxClicks>>20, err)
	}
	return nil
}

// hasWord reports whether a word, or several in a row, stand in a text.
func hasWord(text, word string) bool { return strings.Contains(" "+text+" ", " "+word+" ") }

// Propose implements [playground.Suggestions].
func (p suggestPage) Propose(ctx context.Context, of searches.Search) (any, error) {
	s, err := openSuggestions(p.cfg)
	if err != nil {
		return nil, err
	}
	defer s.close()
	finds, err := s.proposer()
	if err != nil {
		return nil, err
	}
	defer finds.close()
	return finds.propose(ctx, of), nil
}

// Decide implements [playground.Suggestions].
func (p suggestPage) Decide(ctx context.Context, d playground.Decision) error {
	s, err := openSuggestions(p.cfg)
	if err != nil {
		return err
	}
	defer s.close()
	pair := &chosenPair{d.Index, d.Fields, d.Text, d.Word, d.To, d.Similarity}
	how := undo
	switch d.Action {
	case "accept":
		how = s.accept
	case "dismiss":
		how = dismiss
	}
	err = s.decide(ctx, []*chosenPair{pair}, d.By, how)[0]
	for _, known := range []error{suggest.ErrRefused, suggest.ErrUndecided, combine.ErrOverrides, errNoMatrix} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", playground.ErrUndecidable, err)
		}
	}
	return err
}
