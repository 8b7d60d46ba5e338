package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// inConfigured makes a new folder with a configuration the current one.
func inConfigured(t *testing.T, config string) {
	t.Helper()
	t.Chdir(t.TempDir())
	check.OK(t, os.WriteFile("akin.yml", []byte(config), 0o600))
}

func TestCommandsTakeFromTheConfigurationWhatNoFlagSays(t *testing.T) {
	set := newDemoSet(t)
	t.Chdir(t.TempDir())
	mustAkin(t, "init", "--cluster", demoEngine(t), "--index", demoIndices)
	mustAkin(t, "matrix", "build")
	contains(t, "show", mustAkin(t, "matrix", "show", "car"), "in english.akin")
	judged := []string{"--template", set.template, "--queries", set.queries, "--judgments", set.judgments}
	r := evalJSON(t, append([]string{"eval", "--arm", "direct", "--arm", "matrix", "--arm", "weak=matrix,strength=0.1"}, judged...))
	check.Equal(t, 3, len(r.Arms))
	mustAkin(t, append([]string{"tune", "--settings", "4", "--out", "tuned.yml"}, judged...)...)
	mustAkin(t, "matrix", "build", "--index", "catalogue", "--field", "title", "--out", "other.akin")
	contains(t, "the header", mustAkin(t, "matrix", "check", "other.akin"), "index catalogue, field title")
}

func TestAMatrixInRedisHasAFileBetweenBuildAndPush(t *testing.T) {
	inConfigured(t, "cluster: {urls: ['"+demoEngine(t)+"']}\nredis: {url: '"+redisServer(t)+"'}\n"+
		"matrices: [{name: shop, indices: [catalogue], fields: [title, body]}]\n")
	mustAkin(t, "matrix", "build")
	version := mustAkin(t, "matrix", "push", "--activate")
	contains(t, "list", mustAkin(t, "matrix", "list"), version)
	contains(t, "show", mustAkin(t, "matrix", "show", "nappies"), "in shop@active")
}

func TestSeveralMatricesHaveToBeNamed(t *testing.T) {
	inConfigured(t, "cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: a, indices: [help], fields: [title], file: a.akin},"+
		" {name: b, indices: [catalogue], fields: ['*'], file: b.akin}]\n")
	said := ends(t, exitUsage, []string{"matrix", "build"}, "akin.yml has several matrices, a, b: choose one with --name")
	check.That(t, !strings.Contains(said, "--cluster") && !strings.Contains(said, "--out"), "it asks for what akin.yml has: %s", said)
	ends(t, exitUsage, []string{"matrix", "build", "--name", "c"}, `akin.yml has no matrix "c", but a, b`)
	ends(t, exitUsage, []string{"matrix", "build", "--name", "b"}, "the fields of the matrix b are a pattern, *: name them with --field")
	mustAkin(t, "matrix", "build", "--name", "a")
	mustAkin(t, "matrix", "build", "--from-matrices", "a.akin", "--min-df", "4", "--out", "less.akin") // without a question
	check.That(t, isThere("a.akin") && isThere("less.akin"), "a file is missing")
}

func TestABrokenConfigurationIsNoMissingOne(t *testing.T) {
	inConfigured(t, "frob: 1\n")
	ends(t, exitUsage, []string{"matrix", "show", "car"}, "akin.yml:1: frob")
	ends(t, exitUsage, []string{"matrix", "show", "--config", "nowhere.yml", "car"}, "nowhere.yml")
}

// The credentials of the configured cluster are not for another.
func TestOnlyTheConfiguredClusterGetsItsCredentials(t *testing.T) {
	var got string
	cluster := answering(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	})
	secret := write(t, "secret", "hunter2\n")
	inConfigured(t, "cluster: {urls: ['"+cluster+"'], auth: {username: me, password_file: '"+secret+"'}}\n"+
		"matrices: [{name: a, indices: [help], fields: [title], file: a.akin}]\n")
	ends(t, exitFailure, []string{"matrix", "build"})
	check.That(t, strings.HasPrefix(got, "Basic "), "the configured cluster gets %q", got)
	ends(t, exitFailure, []string{"matrix", "build", "--cluster", cluster})
	check.Equal(t, "", got)
}
