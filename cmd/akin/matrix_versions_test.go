package main

import (
	"bytes"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mustAkin runs a command line that has to succeed and returns its standard
// output without the last line break.
func mustAkin(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, status := akin(t, args...)
	if status != 0 {
		t.Fatalf("akin %s: status %d\n%s", strings.Join(args, " "), status, stderr)
	}
	return strings.TrimSuffix(out, "\n")
}

func TestVersionsHaveALifeInRedis(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", redisServer(t))
	file := encodedFile(t, "docs.akin", fleet(t))
	var ids []string
	for range 4 {
		ids = append(ids, mustAkin(t, "matrix", "push", "--name", "docs", "--activate", file))
	}
	if back := mustAkin(t, "matrix", "rollback", "--name", "docs"); back != ids[2] {
		t.Errorf("back at %s, want %s", back, ids[2])
	}
	list := mustAkin(t, "matrix", "list", "--name", "docs")
	for _, want := range []string{"BY", userAtHost(), "* ", ids[0], fleet(t).Checksum()[:12], "a small fleet"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}

	out := filepath.Join(t.TempDir(), "exported.akin")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{ids[0], "active"} {
		mustAkin(t, "matrix", "export", "docs@"+version, "--out", out)
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v; the file of %s is not the one that was pushed", err, version)
		}
	}

	if got, want := mustAkin(t, "matrix", "prune", "--name", "docs", "--keep", "1"), ids[1]+"\n"+ids[0]; got != want {
		t.Errorf("pruned\n%s\nwant\n%s", got, want)
	}
	if _, stderr, status := akin(t, "matrix", "activate", "--name", "docs", ids[0]); status != exitFailure || !strings.Contains(stderr, "unknown version") {
		t.Errorf("activate what was pruned: status %d\n%s", status, stderr)
	}
	mustAkin(t, "matrix", "activate", "--name", "docs", ids[3])
}

func TestPushAppliesOverrides(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", redisServer(t))
	file := encodedFile(t, "docs.akin", fleet(t))
	overrides := write(t, "overrides.txt", "ban car lorry\nset bus van 0.5\n")
	mustAkin(t, "matrix", "push", "--activate", "--overrides", overrides, file)
	if out := mustAkin(t, "matrix", "show", "main@active", "car", "bus", "van"); strings.Contains(out, "lorry") || strings.Count(out, "0.5000") != 2 {
		t.Errorf("neighbors after overrides:\n%s", out)
	}
	bad := write(t, "bad.txt", "frob car lorry\n")
	if _, stderr, status := akin(t, "matrix", "push", "--overrides", bad, file); status != exitUsage || !strings.Contains(stderr, "bad.txt") {
		t.Errorf("bad overrides: status %d\n%s", status, stderr)
	}
}

// testCA returns a PEM file of a certificate.
func testCA(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func TestMistakesInVersionCommandsExitWithStatus2(t *testing.T) {
	file := encodedFile(t, "docs.akin", fleet(t))
	t.Setenv("AKIN_REDIS_URL", "redis://127.0.0.1:1")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a bad name":            {[]string{"list", "--name", "a b"}, "letters, digits"},
		"a bad name to push":    {[]string{"push", "--name", "a/b", file}, "letters, digits"},
		"a bad version":         {[]string{"activate", "a b"}, "letters, digits"},
		"keep is missing":       {[]string{"prune"}, "--keep"},
		"keep nothing":          {[]string{"prune", "--keep", "0"}, "--keep"},
		"a secret in a bad URL": {[]string{"list", "--redis", "redis+cluster://u:hunter2@h/1"}, "no databases"},
		"no such authorities":   {[]string{"list", "--redis", "rediss://h", "--redis-ca-file", "/no/such/file"}, "/no/such/file"},
		"no certificates":       {[]string{"list", "--redis", "rediss://h", "--redis-ca-file", file}, "no certificate in it"},
		"half a pair":           {[]string{"list", "--redis", "rediss://h", "--redis-cert-file", file}, "private key"},
		"a pair that is none":   {[]string{"list", "--redis", "rediss://h", "--redis-cert-file", file, "--redis-key-file", file}, "certificate"},
		"needless certificates": {[]string{"list", "--redis", "redis://h", "--redis-ca-file", testCA(t)}, "rediss only"},
		"an argument too many":  {[]string{"prune", "--keep", "1", "x"}, "x"},
		"no argument to push":   {[]string{"push"}, "arg"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, status := akin(t, append([]string{"matrix"}, tt.args...)...)
			if status != exitUsage || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "hunter2") {
				t.Errorf("status %d, want %d and %q in\n%s", status, exitUsage, tt.want, stderr)
			}
		})
	}
}
