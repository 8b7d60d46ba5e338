// Package deploy checks the files of deploy and the files of releases by the
// libraries of the programs that read them. It is a module of its own, so that
// these do not become dependencies of akin.
package deploy

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"

	"github.com/akin-search/akin/e2e/check"
)

// repository is the root of the checkout.
const repository = "../.."

// loadCompose reads a compose file with the .env beside it and variables of the
// shell as docker compose does, which refuses what the schema does not have.
func loadCompose(t *testing.T, file string, shell []string, profiles ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(filepath.Dir(file)),
		cli.WithEnv(shell), cli.WithEnvFiles(), cli.WithDotEnv, cli.WithDefaultProfiles(profiles...))
	check.OK(t, err)
	return options.LoadProject(t.Context())
}

func TestComposeStartsOneEngine(t *testing.T) {
	for _, row := range []struct{ profile, engine, folder string }{
		{"", "elasticsearch", "elasticsearch9"},
		{"opensearch", "opensearch", "opensearch3"},
	} {
		t.Run(row.engine, func(t *testing.T) {
			var profiles []string
			if row.profile != "" {
				profiles = []string{row.profile}
			}
			project, err := loadCompose(t, filepath.Join(repository, "docker-compose.yml"), nil, profiles...)
			check.OK(t, err)
			names := project.ServiceNames()
			want := []string{"akin", row.engine, "grafana", "learn", "load", "playground", "prometheus", "push", "redis", "token"}
			slices.Sort(want)
			slices.Sort(names)
			check.That(t, slices.Equal(names, want), "starts %v, want %v", names, want)
			if version, image := testedVersion(t, row.folder), project.Services[row.engine].Image; !strings.HasSuffix(image, ":"+version) {
				t.Errorf("%s is not the version that the tests run, %s", image, version)
			}
			for _, service := range project.Services {
				checkService(t, service)
			}
		})
	}
}

func TestComposeTakesPortsFromTheShell(t *testing.T) {
	shell := []string{"CLUSTER_PORT=1", "AKIN_PORT=2", "AKIN_ADMIN_PORT=3", "GRAFANA_PORT=4", "PROMETHEUS_PORT=5"}
	project, err := loadCompose(t, filepath.Join(repository, "docker-compose.yml"), shell, "elasticsearch")
	check.OK(t, err)
	var published []string
	for _, name := range []string{"elasticsearch", "akin", "grafana", "prometheus"} {
		for _, port := range project.Services[name].Ports {
			published = append(published, port.Published)
		}
	}
	check.That(t, slices.Equal(published, []string{"1", "2", "3", "4", "5"}), "publishes %v", published)
	printed := strings.Join(project.Services["playground"].Command, " ")
	check.That(t, strings.Contains(printed, "@localhost:3/playground#"), "prints %s", printed)
}

// checkService looks for what an operator would not want of a service.
func checkService(t *testing.T, service types.ServiceConfig) {
	t.Helper()
	for _, port := range service.Ports {
		if address, err := netip.ParseAddr(port.HostIP); err != nil || !address.IsLoopback() {
			t.Errorf("%s: port %s is published on %q, where others reach it", service.Name, port.Published, port.HostIP)
		}
	}
	if !regexp.MustCompile(`:v?\d+\.\d+\.\d+`).MatchString(service.Image) && service.Build == nil {
		t.Errorf("%s: image %s has no version", service.Name, service.Image)
	}
	for name, value := range service.Environment {
		if regexp.MustCompile(`(?i)password|secret|token`).MatchString(name) && value != nil && *value != "" && *value != "true" {
			t.Errorf("%s: %s has a fixed value", service.Name, name)
		}
	}
	once := len(service.Command) > 0
	check.That(t, once || service.HealthCheck != nil, "%s has no health check", service.Name)
	for _, volume := range service.Volumes {
		if volume.Type != types.VolumeTypeBind {
			continue
		}
		if _, err := os.Stat(volume.Source); err != nil || !volume.ReadOnly {
			t.Errorf("%s: %s: %v, read-only: %v", service.Name, volume.Source, err, volume.ReadOnly)
		}
	}
}

// testedVersion returns the version of the engine in a folder of e2e/engines.
func testedVersion(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "e2e", "engines", folder, "pom.xml"))
	check.OK(t, err)
	version := regexp.MustCompile(`<(?:es|os)>([0-9.]+)</`).FindSubmatch(text)
	check.Must(t, version != nil, "%s names no version", folder)
	return string(version[1])
}

func TestPrometheusTakesItsConfiguration(t *testing.T) {
	file := filepath.Join(repository, "deploy", "prometheus", "prometheus.yml")
	c, err := config.LoadFile(file, false, promslog.NewNopLogger())
	check.OK(t, err)
	for _, rules := range c.RuleFiles {
		if _, err := os.Stat(rules); err != nil {
			t.Error(err)
		}
	}
	if _, err := config.Load("scrape_config: []", promslog.NewNopLogger()); err == nil {
		t.Error("a misspelled key is accepted")
	}
}
