package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/internal/demo"
)

const nightly = repository + "/deploy/nightly"

// TestNightlyPageRuns runs the script of every night as on the first one, then
// the commands of docs/nightly.md one by one, and then the containers of the
// CronJob.
func TestNightlyPageRuns(t *testing.T) {
	t.Parallel()
	e, redis := oneEngine(t), ownRedis(t)
	indexDemoTexts(t, e)
	p := openPage(t, "nightly.md", e)
	p.env = append(p.env, "AKIN_REDIS_URL="+redis.url, "CLUSTER="+e.url)
	p.write(t, "overrides.txt", "set rental hire 0.9\n")
	writeDemoJudgments(t, p)

	script, err := filepath.Abs(filepath.Join(nightly, "akin-rebuild"))
	if err != nil {
		t.Fatal(err)
	}
	p.run(t, script)
	first := p.activeVersion(t)
	setup(t, e, section{"matrices": []section{{"name": "docs"}}, "redis": redis.section()})
	p.write(t, "akin.yml", p.blocks("yaml")[0])
	for _, commands := range p.blocks("sh") {
		if strings.Contains(commands, "matrix rollback") {
			if p.activeVersion(t) == first {
				t.Error("the second night has activated nothing")
			}
		}
		p.run(t, commands)
	}
	if got := p.activeVersion(t); got != first {
		t.Errorf("%s is active after a rollback, not %s", got, first)
	}
	before := p.activeVersion(t)
	for _, args := range cronJob(t) {
		for i, arg := range args {
			args[i] = "'" + strings.NewReplacer("http://127.0.0.1:9200", e.url, "/data", p.dir).Replace(arg) + "'"
		}
		p.run(t, "akin "+strings.Join(args, " "))
	}
	if p.activeVersion(t) == before {
		t.Error("the CronJob has activated nothing")
	}
}

// activeVersion returns the name of the active version.
func (p *docPage) activeVersion(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(p.run(t, "akin matrix list --name docs")) {
		if fields := strings.Fields(line); slices.Contains(fields, "*") {
			return strings.Join(fields, " ")
		}
	}
	t.Fatal("no version is active")
	return ""
}

// writeDemoJudgments writes the files for akin eval that pages speak of.
func writeDemoJudgments(t *testing.T, p *docPage) {
	t.Helper()
	var queries, judgments strings.Builder
	judgments.WriteString("query-id\tcorpus-id\tscore\n")
	for _, q := range demo.Queries()[:10] {
		fmt.Fprintf(&queries, "{\"_id\": %q, \"text\": %q}\n", q.ID, q.Text)
		for _, id := range slices.Sorted(maps.Keys(q.Judgments)) {
			fmt.Fprintf(&judgments, "%s\t%s\t%v\n", q.ID, id, q.Judgments[id])
		}
	}
	p.write(t, "queries.jsonl", queries.String())
	p.write(t, "qrels.tsv", judgments.String())
	p.write(t, "search.json", `{"query": {"multi_match": {"query": "{{query}}", "fields": ["title", "body"]}}}`)
}

// cronJob returns the arguments of the containers of the CronJob, in the order
// in which Kubernetes starts them.
func cronJob(t *testing.T) [][]string {
	t.Helper()
	type container struct{ Args []string }
	var job struct {
		Kind string
		Spec struct {
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct {
							InitContainers []container `yaml:"initContainers"`
							Containers     []container
						}
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(nightly, "cronjob.yaml"))), &job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	var args [][]string
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		args = append(args, c.Args)
	}
	if job.Kind != "CronJob" || len(args) < 3 {
		t.Fatalf("%s with %d containers", job.Kind, len(args))
	}
	return args
}
