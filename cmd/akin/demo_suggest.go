package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/internal/searches"
)

// The demo accepts helpedTo for helped, which is a whole search.
const helped, helpedTo = "cellphone", "phone"

// shownProposals is how many are shown for a search.
const shownProposals = 3

// writeDemoSearches writes the recorded hour of searches, as an akin keeps
// them.
func writeDemoSearches(ctx context.Context, path string) error {
	recorded := demo.Searches()
	all := make([]searches.Search, 0, len(recorded))
	for _, s := range recorded {
		day := searches.Day{Date: time.Now().UTC().Format(time.DateOnly), None: s.None}
		all = append(all, searches.Search{Index: s.Index, Fields: "title,body", Text: s.Text, Days: []searches.Day{day}})
	}
	return cli.Replace(ctx, path, 0o600, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(map[string]any{"version": searches.FileVersion, "searches": all})
	})
}

// suggest shows what would help the searches of the recorded hour, and one of
// them before and after its pair was accepted.
func (t *demoTour) suggest(ctx context.Context, cfg *configs.Config) error {
	s, err := openSuggestions(cfg)
	if err != nil {
		return err
	}
	defer s.close()
	options, err := cli.Searches(cfg)
	if err != nil {
		return err
	}
	all, err := searches.Read(ctx, options, "", 0)
	if err != nil {
		return err
	}
	p, err := s.proposer()
	if err != nil {
		return err
	}
	defer p.close()
	t.print("\nSearches without hits in a recorded hour, and what would help them, as the\ncommand akin suggest lists them:\n\n")
	for _, of := range all {
		t.print(fmt.Sprintf("%3d times  %s\n", of.Total().None, of.Text))
		found := p.propose(ctx, of)
		if found.Problem != "" {
			return errors.New(found.Problem)
		}
		for _, one := range found.Proposals[:min(len(found.Proposals), shownProposals)] {
			if one.To != "" {
				t.print(fmt.Sprintf("           %s -> %s (%s), would find %d\n", one.Word, one.To, one.From, one.Found))
			}
		}
	}
	q := demo.Query{Index: "catalogue", Text: helped}
	before, err := t.compare(ctx, q, "and")
	if err != nil {
		return err
	}
	pair := &chosenPair{Index: q.Index, Fields: "title,body", Text: helped, Word: helped, To: helpedTo, Similarity: 1}
	if err := s.decide(ctx, []*chosenPair{pair}, "the demo", s.accept)[0]; err != nil {
		return err
	}
	after := before
	for began := time.Now(); after.found[with].total <= before.found[with].total && time.Since(began) < time.Minute; {
		time.Sleep(50 * time.Millisecond)
		if after, err = t.compare(ctx, q, "and"); err != nil {
			return err
		}
	}
	var titles []string
	for _, h := range after.found[with].hits[:min(len(after.found[with].hits), shownProposals)] {
		titles = append(titles, h.Source.Title)
	}
	t.print(fmt.Sprintf("\nakin suggest accept: %s -> %s. %q found %d before,\nand finds %d now:\n", helped, helpedTo, helped, before.found[with].total, after.found[with].total))
	t.print(wrap(indentation, strings.Join(titles, ", ")))
	return nil
}
