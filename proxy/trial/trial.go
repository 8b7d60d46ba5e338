// Package trial tries two ways to search on the searches of real users: which
// search gets which of the two arms, pages that have hits of both (team draft),
// and the log of these pages.
package trial

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Off is the arm whose searches go out as they came. The others are profiles.
const Off = "off"

// A Trial is two arms and the searches that take part.
type Trial struct {
	// Name is that in metrics, explanations and the log of pages.
	Name string
	// Covers reports whether the searches of an index expression take part.
	Covers func(index string) bool
	// Arms are the way that searches go without the trial, and the new one.
	Arms [2]string
	// Share in [0, 1] is how many of the units get the second arm, or, with
	// Interleave, pages of both; the others get the first arm.
	Share float64
	// Interleave makes one page of the hits of both arms.
	Interleave bool
	// Header has the unit that arms are drawn for, such as a session; "" draws
	// for the address of the client.
	Header string
}

// Draws reports whether a unit is in the share: the same each time, in every
// process, and apart from other trials.
func (t *Trial) Draws(unit string) bool {
	const all = 1 << 53 // what a float64 holds exactly
	return float64(hash(t.Name, unit)%all)/all < t.Share
}

// Draft is [Draft] with draws that are the same for each search of a unit for
// the same text.
func (t *Trial) Draft(unit, text string, a, b []string, n int) []Pick {
	return Draft(a, b, n, hash(t.Name, unit, text))
}

// hash hashes texts such that the end of each is seen.
func hash(texts ...string) uint64 {
	h := sha256.New()
	for _, text := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text))) // a hash takes all
		_, _ = h.Write([]byte(text))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Neither is the arm of hits that say nothing about the arms.
const Neither = -1

// A Pick is a document of an interleaved ranking: the one at Rank, from 0, of
// the ranking List, 0 or 1, which counts for Arm: the same, or [Neither].
type Pick struct{ List, Rank, Arm int }

// Draft interleaves two rankings by team draft (Radlinski, Kurup and Joachims
// 2008), to at most n documents, each once: the arm that has fewer picks, or of
// equally many the one that a coin chooses, picks its best document that is not
// there yet. When one arm has no more, the rest of the other follows and counts
// for neither, so that clicks at random prefer none. With a larger n the
// documents before are the same, also where both rankings are longer.
func Draft(a, b []string, n int, seed uint64) (picks []Pick) {
	random := rand.New(rand.NewPCG(seed, 2008)) //nolint:gosec // A fair draw, no secret.
	rankings, next, team := [2][]string{a, b}, [2]int{}, [2]int{}
	taken := make(map[string]bool, min(n, len(a)+len(b)))
	for len(picks) < n {
		for k, ranking := range rankings {
			for next[k] < len(ranking) && taken[ranking[next[k]]] {
				next[k]++
			}
		}
		arm, out := 0, [2]bool{next[0] == len(a), next[1] == len(b)}
		switch {
		case out[0] && out[1]:
			return picks
		case out[0] || team[1] < team[0] || team[1] == team[0] && random.Uint64()%2 == 1:
			arm = 1
		}
		if out[1] {
			arm = 0
		}
		pick := Pick{List: arm, Rank: next[arm], Arm: arm}
		if out[0] || out[1] {
			pick.Arm = Neither
		}
		taken[rankings[arm][next[arm]]] = true
		team[arm]++
		picks = append(picks, pick)
	}
	return picks
}
