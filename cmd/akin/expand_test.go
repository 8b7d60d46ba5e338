package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/proxy"
)

func TestExpandPrintsTheWordsThatASearchGets(t *testing.T) {
	t.Chdir(t.TempDir())
	check.OK(t, os.WriteFile(cli.UsualConfig, []byte(checkConfig(demoEngine(t), demoMatrix(t))), 0o600))
	out := mustAkin(t, "expand", "--index", "catalogue", "comfortable couches xyzzyq")
	contains(t, "the words", out, "couches: ", "sofa", "xyzzyq gets nothing: it is not in the matrix", "(in catalogue;")
	check.That(t, !strings.Contains(out, "couches gets nothing") && !strings.Contains(out, "stop words"), "%s", out)
	contains(t, "a stop word", mustAkin(t, "expand", "--index", "catalogue", "the couches"), "the gets nothing: the analyzer drops it, as it does stop words")
	check.That(t, !strings.Contains(out, "0."), "boosts in\n%s", out)
	contains(t, "a misspelled word", mustAkin(t, "expand", "--index", "catalogue", "comfortable couchs matress"),
		"matress: ", "matress is not known and is taken for: mattress\n")
	contains(t, "with boosts", mustAkin(t, "expand", "--index", "catalogue", "--boosts", "couches"), "sofa 0.")
	contains(t, "without an index", mustAkin(t, "expand", "car", "rental"), "car: ", "rental: ", "(in catalogue;")
	out = mustAkin(t, "expand", "--cluster", demoEngine(t), "--matrix", demoMatrix(t), "--index", "catalogue", "couches")
	contains(t, "without a file", out, "couches: ", "sofa")
}

func TestExpandPrintsTheSearchThatTheClusterGets(t *testing.T) {
	config := write(t, "akin.yml", checkConfig(demoEngine(t), demoMatrix(t)))
	body := write(t, "search.json", `{"query":{"match":{"body":"couches"}},"size":3}`)
	var found proxy.Expansion
	check.OK(t, json.Unmarshal([]byte(mustAkin(t, "expand", "--config", config, "--index", "catalogue", "--json", "--body", body)), &found))
	check.That(t, found.Rewritten && strings.Contains(string(found.Body), `"sofa"`) && len(found.Clauses) == 1 && found.Clauses[0].Field == "body", "%+v", found)
}

func TestExpandSaysWhyNothingIsAdded(t *testing.T) {
	config := write(t, "akin.yml", checkConfig(demoEngine(t), demoMatrix(t)))
	command := func(args ...string) []string { return append([]string{"expand", "--config", config}, args...) }
	ends(t, 0, command("--index", "catalogue", "--field", "id", "couch"), "Nothing is added.", "unchanged in id: no_matrix",
		"no matrix is bound to this field of catalogue, but to: body, title")
	ends(t, 0, command("--index", "nosuch", "--field", "body", "couch"), "no matrix is bound to nosuch, but to: catalogue, help, knowledge")
	ends(t, 0, command("--index", "catalogue", "xyzzyq"), "no_neighbors", "xyzzyq gets nothing: it is not in the matrix")
	ends(t, exitUsage, command(), "give the words of a search, or --body FILE")
	ends(t, exitUsage, command("--body", config, "couch"), "give the words of a search, or --body FILE")
	ends(t, exitFailure, command("--profile", "nosuch", "couch"), "unknown_profile")
	ends(t, exitUsage, []string{"expand", "--config", "nosuch.yml", "couch"}, "akin init")
	ends(t, exitUsage, []string{"expand", "--cluster", "http://127.0.0.1:1", "couch"}, "--cluster URL and --matrix FILE")
	away := write(t, "akin.yml", checkConfig(demoEngine(t), "nosuch.akin"))
	ends(t, exitFailure, []string{"expand", "--config", away, "couch"}, "matrix demo: ", "nosuch.akin")
}

func TestServeNeedsNoFileForAClusterAndAMatrix(t *testing.T) {
	cluster := cli.Cluster{URL: demoEngine(t), AWS: configs.AWS{Service: "es"}}
	t.Setenv(configs.EnvAdminToken, "0123456789abcdef")
	cfg, err := configs.LoadText(t.Context(), "the command line", servedText(&cluster, demoMatrix(t)))
	check.OK(t, err)
	check.Equal(t, "0123456789abcdef", cfg.Admin.Token.Reveal())
	app, err := serve.New(t.Context(), serve.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	check.OK(t, err)
	defer app.Close()
	found, err := app.Expand(t.Context(), "", &expand.Request{Index: "catalogue", Body: []byte(`{"query":{"match":{"body":"couch"}}}`), Preview: true})
	check.That(t, err == nil && found.Rewritten, "%+v, %v", found, err)
	signed, err := configs.LoadText(t.Context(), "the command line", servedText(&cli.Cluster{URL: "https://a", AWS: configs.AWS{Region: "eu-west-1", Service: "aoss"}}, "x.akin"))
	check.That(t, err == nil && signed.Cluster.AWS.Region == "eu-west-1" && signed.Cluster.AWS.Service == "aoss", "%v", err)
}

func TestExpandReadsTheMatrixInRedis(t *testing.T) {
	redis := redisServer(t)
	t.Setenv("AKIN_REDIS_URL", redis)
	mustAkin(t, "matrix", "push", "--name", "demo", "--activate", demoMatrix(t))
	text := strings.Replace(checkConfig(demoEngine(t), ""), `, file: ""`, "", 1) + "redis: {url: " + redis + "}\n"
	contains(t, "the words", mustAkin(t, "expand", "--config", write(t, "akin.yml", text), "--index", "catalogue", "couch"), "couch: ", "sofa")
}
