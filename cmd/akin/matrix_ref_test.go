package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

func TestMatrixIsAFileOrAVersionInRedis(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", "")
	m := fleet(t)
	file := encodedFile(t, "docs@active", m) // goes before Redis
	var flags cli.Redis
	got, err := flags.Matrix(t.Context(), io.Discard, file)
	check.That(t, err == nil && got.Checksum() == m.Checksum(), "a file named like a version: %v", err)
	if _, err := flags.Matrix(t.Context(), io.Discard, "docs@7"); err == nil || !errors.As(err, new(cli.UsageError)) ||
		!strings.Contains(err.Error(), "docs@7 is no file") || !strings.Contains(err.Error(), "--redis") {
		t.Errorf("no file and no Redis: %v", err)
	}
	for _, ref := range []string{"docs.akin", "folder/docs@7", "@7", "docs@", "a@b@c"} {
		if _, err := flags.Matrix(t.Context(), io.Discard, ref); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "NAME@VERSION") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	check.OK(t, os.WriteFile("bad@1", []byte("garbage"), 0o600))
	if _, err := flags.Matrix(t.Context(), io.Discard, "bad@1"); !errors.Is(err, simmatrix.ErrFormat) {
		t.Errorf("a damaged file named like a version: %v", err)
	}
}

func TestMatrixCommandsReadVersionsInRedis(t *testing.T) {
	url := redisServer(t)
	t.Setenv("AKIN_REDIS_URL", url)
	m := fleet(t)
	file := encodedFile(t, "docs.akin", m)
	version := mustAkin(t, "matrix", "push", "--name", "docs", "--activate", file)
	for _, ref := range []string{"docs@active", "docs@" + version} {
		ends(t, 0, []string{"matrix", "check", ref}, m.Checksum(), "pull: 5 of 5")
	}
	ends(t, 0, []string{"matrix", "diff", "--redis", url, file, "docs@active"}, "rows changed  0 of 5")
	ends(t, exitFailure, []string{"matrix", "check", "docs@nosuchversion"}, "nosuchversion", "akin matrix list --name docs")
	ends(t, exitFailure, []string{"matrix", "check", "others@active"}, "akin matrix list --name others")
	if said := ends(t, exitFailure, []string{"matrix", "check", "--redis", "redis://127.0.0.1:1", "docs@active"}, "docs@active in Redis: "); strings.Contains(said, "no file") {
		t.Error(said)
	}
}
