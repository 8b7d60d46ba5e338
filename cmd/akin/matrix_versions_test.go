package main

import (
	"strings"
	"testing"
)

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
	contains(t, "list", mustAkin(t, "matrix", "list", "--name", "docs"), "BY", userAtHost(), "* ", ids[0], fleet(t).Checksum()[:12], "a small fleet")
	for _, version := range []string{ids[0], "active"} {
		if mustAkin(t, "matrix", "export", "docs@"+version, "--out", "exported.akin"); read(t, "exported.akin") != read(t, file) {
			t.Errorf("the file of %s is not the one that was pushed", version)
		}
	}

	if got, want := mustAkin(t, "matrix", "prune", "--name", "docs", "--keep", "1"), ids[1]+"\n"+ids[0]; got != want {
		t.Errorf("pruned\n%s\nwant\n%s", got, want)
	}
	ends(t, exitFailure, []string{"matrix", "activate", "--name", "docs", ids[0]}, "unknown version")
	whole, before := read(t, file), mustAkin(t, "matrix", "list", "--name", "docs")
	for _, damaged := range []string{"", "car 1 0\n", whole[:len(whole)/2], whole[:len(whole)-1], whole + "\x00", whole[:40] + string(whole[40]^4) + whole[41:]} {
		ends(t, exitFailure, []string{"matrix", "push", "--name", "docs", "--activate", write(t, "damaged.akin", damaged)}, "damaged.akin")
	}
	if after := mustAkin(t, "matrix", "list", "--name", "docs"); after != before {
		t.Errorf("damaged files are pushed:\n%s", after)
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
	ends(t, exitUsage, []string{"matrix", "push", "--overrides", bad, file}, "bad.txt")
}
