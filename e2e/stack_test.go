package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/e2e/freeport"
)

// A stackService is what the test needs of a service of docker-compose.yml.
type stackService struct {
	Profiles    []string
	Command     []string
	Volumes     []string
	DependsOn   map[string]any `yaml:"depends_on"`
	Healthcheck struct{ Test []string }
}

// readStack returns docker-compose.yml as text and its services.
func readStack(t *testing.T) (string, map[string]stackService) {
	t.Helper()
	text := readFile(t, filepath.Join(repository, "docker-compose.yml"))
	var file struct{ Services map[string]stackService }
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return text, file.Services
}

// A stack runs the services of docker-compose.yml as child processes, without
// containers: with the commands, variables and files that are written there. In
// all of them names of hosts become addresses of this machine, ports of akin
// become free ones, and the volume /data becomes a folder.
type stack struct {
	engine   *engine
	services map[string]stackService
	place    *strings.Replacer // what is in a container to what is here
	akin     *akin
	page     string // the address of the playground that is printed
}

// TestComposeFileFindsDiapers starts what docker-compose.yml starts, in its
// order, and asks what it says to ask.
func TestComposeFileFindsDiapers(t *testing.T) {
	long(t)
	t.Parallel()
	text, services := readStack(t)
	curl := regexp.MustCompile(`(?m)^#\s+curl '([^']+)'$`).FindStringSubmatch(text)
	if curl == nil {
		t.Fatal("docker-compose.yml says no search to try")
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		s := newStack(t, e, services)
		for _, name := range s.order(t) {
			s.start(t, name)
		}
		s.akin.awaitMetric(t, 1, "akin_matrix_info", `="demo"`)
		address, path, _ := strings.Cut(curl[1], "/")
		waitFor(t, 20*time.Second, "curl "+curl[1], func() error { // the first search may be over its budget
			return findsDiapers(t.Context(), cluster{url: "http://" + s.place.Replace(address)}, "/"+path)
		})
		admin, _, _ := strings.Cut(s.page, "/playground#")
		if err := (cluster{url: admin}).getJSON(t.Context(), "/_akin/explanations", new(any)); err != nil {
			t.Errorf("the playground does not open by what is printed: %v", err)
		}
		if findsDiapers(t.Context(), e.cluster, "/"+path) == nil {
			t.Error("the engine itself finds them, so that this test shows nothing")
		}
	})
}

// findsDiapers reports why a search for nappies finds no text on diapers that
// does not speak of nappies.
func findsDiapers(ctx context.Context, c cluster, path string) error {
	var answer struct {
		Hits struct {
			Hits []struct {
				Source struct{ Title, Body string } `json:"_source"`
			}
		}
	}
	if err := c.getJSON(ctx, path, &answer); err != nil {
		return err
	}
	for _, hit := range answer.Hits.Hits {
		text := strings.ToLower(hit.Source.Title + " " + hit.Source.Body)
		if strings.Contains(text, "diaper") && !strings.Contains(text, "napp") {
			return nil
		}
	}
	return fmt.Errorf("%d hits, none of them without the word", len(answer.Hits.Hits))
}

func newStack(t *testing.T, e *engine, services map[string]stackService) *stack {
	t.Helper()
	port := func() string {
		port, err := freeport.Pick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	proxy, admin := port(), port()
	address := strings.TrimPrefix(e.url, "http://")
	s := &stack{engine: e, services: services, place: strings.NewReplacer(
		"cluster:9200", address, "localhost:9200", address,
		"redis://redis:6379/0", ownRedis(t).url,
		"akin:9281", "127.0.0.1:"+admin, ":9280", ":"+proxy, ":9281", ":"+admin,
		"/data/", newDir(t, "data")+"/", "/token/", newDir(t, "token")+"/",
	)}
	t.Cleanup(func() { e.dropIndex("help,catalogue,knowledge") })
	return s
}

// order returns the services, each after those that it depends on.
func (s *stack) order(t *testing.T) (names []string) {
	t.Helper()
	for len(names) < len(s.services) {
		before := len(names)
		for name, service := range s.services {
			ready := !slices.Contains(names, name)
			for dependency := range service.DependsOn {
				ready = ready && slices.Contains(names, dependency)
			}
			if ready {
				names = append(names, name)
			}
		}
		if len(names) == before {
			t.Fatalf("only %v of the services can start", names)
		}
	}
	return names
}

// start starts a service and waits until it is healthy, or ends where others
// wait for that.
func (s *stack) start(t *testing.T, name string) {
	t.Helper()
	service := s.services[name]
	switch name {
	case "elasticsearch", "opensearch":
		if slices.Contains(service.Profiles, s.engine.family) {
			s.awaitHealthy(t, name)
		}
	case "redis", "grafana", "prometheus", "model": // newStack has started the first, and the last is in no profile; .ci/deploy tests what the others read
	case "akin":
		s.startAkin(t)
		s.awaitHealthy(t, name)
	case "token", "playground":
		script := s.place.Replace(withDefaults(service.Command[2]))
		out, err := exec.CommandContext(t.Context(), service.Command[0], service.Command[1], script).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		s.page = strings.TrimSpace(string(out))
	default:
		args := make([]string, len(service.Command))
		for i, arg := range service.Command {
			args[i] = s.place.Replace(arg)
		}
		mustAkin(t, args...)
	}
}

// startAkin runs the command of the image with the file that is mounted.
func (s *stack) startAkin(t *testing.T) {
	t.Helper()
	const command = `CMD ["serve", "--config", "/etc/akin/akin.yml"]`
	if !slices.Contains(dockerfile(t), command) {
		t.Fatalf("the image does not run %s", command)
	}
	s.akin = launch(t, s.mounted(t, "akin", "/etc/akin/akin.yml"))
}

// withDefaults returns what a text with ${NAME:-default} is without NAME; $$ is a
// dollar sign.
func withDefaults(text string) string {
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return name
		}
		_, otherwise, _ := strings.Cut(name, ":-")
		return otherwise
	})
}

// mounted copies the file that a service has at path, or what is in the folder
// there, and returns the place of the copy.
func (s *stack) mounted(t *testing.T, service, path string) string {
	t.Helper()
	for _, volume := range s.services[service].Volumes {
		parts := strings.Split(volume, ":")
		if parts[1] != path {
			continue
		}
		source := filepath.Join(repository, parts[0])
		files := []string{source}
		if info, err := os.Stat(source); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			files, _ = filepath.Glob(filepath.Join(source, "*")) // the pattern is well formed
		}
		dir := newDir(t, service)
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(s.place.Replace(readFile(t, file))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if len(files) == 1 && files[0] == source {
			return filepath.Join(dir, filepath.Base(source))
		}
		return dir
	}
	t.Fatalf("%s mounts nothing at %s", service, path)
	return ""
}

// awaitHealthy runs the health check of a service until it succeeds.
func (s *stack) awaitHealthy(t *testing.T, name string) {
	t.Helper()
	check := slices.Clone(s.services[name].Healthcheck.Test)
	for i, arg := range check {
		check[i] = s.place.Replace(arg)
	}
	program := check[1:]
	if check[0] == "CMD-SHELL" {
		program = []string{"sh", "-c", check[1]}
	}
	if program[0] == "akin" {
		program[0] = akinPath(t)
	}
	waitFor(t, 20*time.Second, "health check of "+name, func() error {
		out, err := exec.CommandContext(t.Context(), program[0], program[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
}
