//go:build race

package expand

// raceEnabled reports whether the race detector is on; sync.Pool then drops
// what it is given now and then.
const raceEnabled = true
