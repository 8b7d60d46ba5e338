package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

const thesaurusDirective = "akin:"

// addSolrLine adds a line of Solr's format that is neither blank nor a comment.
func (t *thesaurus) addSolrLine(line string) error {
	sides := solrSides(line)
	switch {
	case len(sides) > 2:
		return errors.New("more than one =>")
	case len(sides) == 2 && (len(sides[0]) == 0 || len(sides[1]) == 0):
		return errors.New("one side of => is empty") // the engines take such a line for a group, with the => in an entry
	case len(sides[0]) == 0: // only commas
		return nil
	}
	for _, side := range sides {
		for k, entry := range side {
			term, err := t.term(entry)
			if err != nil {
				return err
			}
			side[k] = term
		}
	}
	if len(sides) == 1 {
		t.counts.Groups++
		return t.addGroup(sides[0])
	}
	t.counts.Rules++
	return t.addRule(sides[0], sides[1])
}

// addComment applies a comment that is meant for akin.
func (t *thesaurus) addComment(comment string) error {
	directive, ok := strings.CutPrefix(strings.TrimSpace(comment), thesaurusDirective)
	if !ok {
		return nil
	}
	words := strings.Fields(directive)
	if len(words) != 2 || words[0] != "similarity" {
		return fmt.Errorf("%.60q: want similarity and a number in (0, 1] after %s", directive, thesaurusDirective)
	}
	s, ok := lines.ParseDecimal(words[1], 64)
	if !ok || !(s > 0 && s <= 1) {
		return fmt.Errorf("similarity %.40q is no number in (0, 1]", words[1])
	}
	t.units = simmatrix.ToUnits(s)
	return nil
}

// solrSides returns the entries of a line that are not blank, those on each
// side of => apart. There is at least one side. The rules are those of Lucene's
// SolrSynonymParser: a backslash escapes the next character, and stands for
// itself at the end of the line.
func solrSides(line string) [][]string {
	sides := [][]string{nil}
	var entry strings.Builder
	end := func() {
		if e := entry.String(); strings.TrimSpace(e) != "" {
			sides[len(sides)-1] = append(sides[len(sides)-1], e)
		}
		entry.Reset()
	}
	for at := 0; at < len(line); at++ {
		switch c := line[at]; {
		case c == '\\' && at+1 < len(line):
			at++
			entry.WriteByte(line[at])
		case c == ',':
			end()
		case c == '=' && strings.HasPrefix(line[at:], "=>"):
			end()
			sides = append(sides, nil)
			at++
		default:
			entry.WriteByte(c)
		}
	}
	end()
	return sides
}
