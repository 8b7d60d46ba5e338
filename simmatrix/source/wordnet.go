package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type sense struct {
	synset uint64
	term   string
	units  uint16 // the similarity that holds at its line
}

var errNoSense = errors.New("want s(SYNSET,NUMBER,'WORD',TYPE,SENSE,COUNT). and nothing else")

func (t *thesaurus) addSense(line string) error {
	synset, word, err := parseSense(line)
	if err != nil {
		return err
	}
	term, err := t.term(word)
	if err != nil {
		return err
	}
	t.synsets[synset] = struct{}{}
	if term != "" {
		t.senses = append(t.senses, sense{synset: synset, term: strings.Clone(term), units: t.units})
	}
	if max(len(t.synsets), len(t.senses)) > t.maxSenses {
		return fmt.Errorf("more than %d words or sets of synonyms: split the file", t.maxSenses)
	}
	return nil
}

// parseSense reads the number of the set of synonyms and the word of a line
// such as
//
//	s(100001740,1,'entity',n,1,11).
//
// Quotes in the word are doubled. Files of older versions lack the last field.
func parseSense(line string) (synset uint64, word string, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "s(")
	if !ok {
		return 0, "", errNoSense
	}
	rest, ok = strings.CutSuffix(rest, ").")
	if !ok {
		return 0, "", errNoSense
	}
	number, rest, _ := strings.Cut(rest, ",")
	if synset, err = strconv.ParseUint(number, 10, 64); err != nil {
		return 0, "", fmt.Errorf("the number of a set of synonyms: %w", err)
	}
	place, rest, _ := strings.Cut(rest, ",")
	word, rest, ok = cutQuoted(rest)
	fields := strings.Split(rest, ",")
	if !ok || !isWhole(place) || fields[0] != "" || len(fields) < 3 || len(fields) > 4 ||
		!slices.Contains([]string{"n", "v", "a", "r", "s"}, fields[1]) ||
		!isWhole(fields[2]) || !isWhole(fields[len(fields)-1]) {
		return 0, "", errNoSense
	}
	if strings.TrimSpace(word) == "" {
		return 0, "", errors.New("the word is empty")
	}
	return synset, word, nil
}

func isWhole(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// cutQuoted splits s after the quoted text with which it begins, and returns
// that without quotes. Quotes in it are doubled.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '\'' {
		return "", "", false
	}
	var b strings.Builder
	for at := 1; at < len(s); at++ {
		if s[at] != '\'' {
			b.WriteByte(s[at])
			continue
		}
		if at+1 == len(s) || s[at+1] != '\'' {
			return b.String(), s[at+1:], true
		}
		at++
		b.WriteByte('\'')
	}
	return "", "", false
}

// addSenses adds the sets of synonyms as groups, in the order of their numbers,
// words in that of the file. The lines of a set need not follow each other; the
// similarity is that of the first.
func (t *thesaurus) addSenses() error {
	slices.SortStableFunc(t.senses, func(a, b sense) int { return cmp.Compare(a.synset, b.synset) })
	t.counts.Groups += len(t.synsets)
	var terms []string
	for k, s := range t.senses {
		if len(terms) == 0 {
			t.units = s.units
		}
		terms = append(terms, s.term)
		if k+1 < len(t.senses) && t.senses[k+1].synset == s.synset {
			continue
		}
		if err := t.addGroup(terms); err != nil {
			return fmt.Errorf("set of synonyms %d: %w", s.synset, err)
		}
		terms = terms[:0]
	}
	t.senses, t.synsets = nil, nil
	return nil
}
