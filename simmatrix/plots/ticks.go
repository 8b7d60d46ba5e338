package plots

import (
	"math"
	"strconv"
)

// A tick is a mark on an axis; most have no label.
type tick struct {
	value float64
	label string
}

func (t tick) length() float64 {
	if t.label == "" {
		return tickLength / 2
	}
	return tickLength
}

// minRatio is how far apart the ends of a logarithmic axis are at least, so
// that it has a tick with a label: 1, 2 or 5 of some power of ten.
const minRatio = 4

// logRange returns the ends of a logarithmic axis for the values from least to
// most, both above 0, as common logarithms.
func logRange(least, most float64) (low, high float64) {
	return math.Log10(least / 1.1), math.Log10(max(most*1.15, least*minRatio))
}

// logTicks marks the digits of each power of ten on an axis of common
// logarithms from low to high, and labels the power; on a short axis the digits
// 2 and 5, too.
func logTicks(low, high float64) []tick {
	var ticks []tick
	short := high-low < 4.5
	for power := int(math.Floor(low)); float64(power) <= high; power++ {
		for digit := 1; digit < 10; digit++ {
			t := tick{value: float64(power) + math.Log10(float64(digit))}
			if t.value < low || t.value > high {
				continue
			}
			if digit == 1 || short && (digit == 2 || digit == 5) {
				t.label = decimal(digit, power)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func decimal(digit, power int) string {
	value := float64(digit) * math.Pow10(power)
	if power < 0 {
		return strconv.FormatFloat(value, 'f', -power, 64)
	}
	return group(uint64(value))
}

func group(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// tenths marks 0, 0.05, 0.1, … 1 and labels the tenths, whatever the range.
func tenths(_, _ float64) []tick {
	ticks := make([]tick, 21)
	for k := range ticks {
		ticks[k].value = float64(k) / 20
		if k%2 == 0 {
			ticks[k].label = strconv.FormatFloat(ticks[k].value, 'f', 1, 64)
		}
	}
	return ticks
}
