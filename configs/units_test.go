package configs

import (
	"math"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]Bytes{
		"0B":                   0,
		"7B":                   7,
		"007B":                 7,
		"100kB":                100_000,
		"1MB":                  1_000_000,
		"2GB":                  2_000_000_000,
		"1KiB":                 1024,
		"64MiB":                64 * 1024 * 1024,
		"3GiB":                 3 * 1024 * 1024 * 1024,
		"9223372036854775807B": math.MaxInt64,
	} {
		check.Equal(t, want, check.Got(ParseBytes(in))(t), "ParseBytes", in)
	}
}

func TestParseBytesRefusesWhatIsNotExact(t *testing.T) {
	for _, in := range []string{
		"", "1", "B", "MiB", "1 MiB", " 1MiB", "1MiB ", "1mb", "1mib", "1KB", "1M", "1Mi", "1.5MiB", "-1MiB", "+1MiB",
		"1e3B", "0x10B", "1_000B", "1MiBB", "9223372036854775808B", "8589934592GiB", "9223372037GB", "١MiB",
	} {
		got, err := ParseBytes(in)
		check.That(t, err != nil, "ParseBytes(%q) = %d, want an error", in, got)
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"50ms": 50 * time.Millisecond, "1m": time.Minute, "1m30s": 90 * time.Second,
		"1.5s": 1500 * time.Millisecond, "24h": 24 * time.Hour, "0s": 0, "10us": 10 * time.Microsecond,
	} {
		check.Equal(t, Duration(want), check.Got(ParseDuration(in))(t), "ParseDuration", in, want)
	}
}

func TestParseDurationRefusesWhatIsNotExact(t *testing.T) {
	for _, in := range []string{"", "0", "50", "ms", "-1s", "+1s", " 1s", "1s ", "1 s", "1d", "1S", "1m-30s", "99999999h"} {
		got, err := ParseDuration(in)
		check.That(t, err != nil, "ParseDuration(%q) = %s, want an error", in, got)
	}
}
