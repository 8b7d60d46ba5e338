package deploy

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
)

var chartFolder = filepath.Join(repository, "deploy", "helm", "akin")

// A rendered chart: its objects by the names of their templates, decoded by
// their own types, which refuse fields that they do not have.
type rendered struct {
	Deployment appsv1.Deployment
	Service    corev1.Service
	ConfigMap  corev1.ConfigMap
	Budget     policyv1.PodDisruptionBudget
	Autoscaler autoscalingv2.HorizontalPodAutoscaler
	PodMonitor monitoringv1.PodMonitor
	Account    corev1.ServiceAccount
	Ingress    networkingv1.Ingress
	Rebuild    batchv1.CronJob
}

// values reads values as users write them.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	check.OK(t, yaml.Unmarshal([]byte(text), &v))
	return v
}

// render renders the chart as `helm template search` does, which checks the
// values by the schema.
func render(t *testing.T, text string) (rendered, error) {
	t.Helper()
	return renderAs(t, "search", text)
}

func renderAs(t *testing.T, name, text string) (rendered, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	check.OK(t, err)
	release := common.ReleaseOptions{Name: name, Namespace: "web", IsInstall: true}
	all, err := util.ToRenderValues(chart, values(t, text), release, common.DefaultCapabilities)
	if err != nil {
		return rendered{}, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return rendered{}, err
	}
	var r rendered
	kinds := map[string]any{
		"deployment.yaml": &r.Deployment, "service.yaml": &r.Service, "configmap.yaml": &r.ConfigMap,
		"poddisruptionbudget.yaml": &r.Budget, "horizontalpodautoscaler.yaml": &r.Autoscaler, "podmonitor.yaml": &r.PodMonitor,
		"serviceaccount.yaml": &r.Account, "ingress.yaml": &r.Ingress, "cronjob.yaml": &r.Rebuild,
	}
	for name, content := range files {
		if path.Ext(name) != ".yaml" || strings.TrimSpace(content) == "" {
			continue
		}
		object, ok := kinds[path.Base(name)]
		if !ok {
			t.Errorf("no test knows %s", name)
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(content), object); err != nil {
			t.Errorf("%s: %v\n%s", name, err, content)
		}
	}
	return r, nil
}

const smallest = `config: {cluster: {urls: ["https://es:9200"]}}`

func TestChartRunsAkinBehindProbesWithoutRights(t *testing.T) {
	r, err := render(t, smallest)
	check.OK(t, err)
	cfg, err := configs.Parse("akin.yml", []byte(r.ConfigMap.Data["akin.yml"]))
	check.Must(t, err == nil, "akin does not take its configuration: %v\n%s", err, r.ConfigMap.Data["akin.yml"])
	pod := r.Deployment.Spec.Template.Spec
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if need := time.Duration(cfg.Shutdown.Delay) + configs.ShutdownTimeout; grace <= need {
		t.Errorf("Kubernetes ends akin after %v, which needs %v", grace, need)
	}
	akin := pod.Containers[0]
	ports := map[string]string{}
	for _, port := range akin.Ports {
		ports[port.Name] = fmt.Sprintf(":%d", port.ContainerPort)
	}
	if ports["http"] != cfg.Listen.Address || ports["admin"] != cfg.Admin.Address {
		t.Errorf("ports %v are not those of %s and %s", ports, cfg.Listen.Address, cfg.Admin.Address)
	}
	for probe, path := range map[*corev1.Probe]string{akin.LivenessProbe: "/healthz", akin.ReadinessProbe: "/readyz"} {
		check.That(t, probe != nil && probe.HTTPGet.Path == path && probe.HTTPGet.Port.StrVal == "admin", "%v does not ask %s of the admin port", probe, path)
	}
	s := akin.SecurityContext
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") || !*pod.SecurityContext.RunAsNonRoot ||
		*pod.AutomountServiceAccountToken {
		t.Errorf("the pod has rights that akin does not need: %v, %v", s, pod.SecurityContext)
	}
	if !maps.Equal(r.Service.Spec.Selector, r.Deployment.Spec.Selector.MatchLabels) || r.Service.Spec.Ports[0].TargetPort.StrVal != "http" {
		t.Errorf("the service selects %v, port %v", r.Service.Spec.Selector, r.Service.Spec.Ports)
	}
	if r.Budget.Spec.MaxUnavailable.IntValue() != 1 || r.PodMonitor.Name != "" || r.Autoscaler.Name != "" || *r.Deployment.Spec.Replicas != 2 {
		t.Errorf("budget %v, monitor %q, autoscaler %q", r.Budget.Spec, r.PodMonitor.Name, r.Autoscaler.Name)
	}
}

func TestChartRendersWhatIsSwitchedOn(t *testing.T) {
	r, err := render(t, smallest+`
secretEnv: akin-env
secretFiles: akin-files
autoscaling: {enabled: true, maxReplicas: 4}
podMonitor: true
podDisruptionBudget: false
image: {tag: 9.9.9}
imagePullSecrets: [{name: registry}]
extraEnv: [{name: GOMEMLIMIT, value: 900MiB}]
podLabels: {team: search}
podAnnotations: {vendor/scrape: "true"}
nodeSelector: {disk: ssd}
tolerations: [{key: search, operator: Exists}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
service: {type: LoadBalancer, annotations: {vendor/internal: "true"}}
ingress: {enabled: true, className: nginx, hosts: [search.example.com], tls: [{secretName: search-tls}]}
`)
	check.OK(t, err)
	pod := r.Deployment.Spec.Template.Spec
	if from := pod.Containers[0].EnvFrom; len(from) != 1 || from[0].SecretRef.Name != "akin-env" {
		t.Errorf("variables come from %v", from)
	}
	if sources := pod.Volumes[0].Projected.Sources; len(sources) != 2 || sources[1].Secret.Name != "akin-files" {
		t.Errorf("files come from %v", sources)
	}
	if r.Deployment.Spec.Replicas != nil || r.Autoscaler.Spec.MaxReplicas != 4 || r.Autoscaler.Spec.ScaleTargetRef.Name != r.Deployment.Name {
		t.Errorf("replicas %v, autoscaler %v", r.Deployment.Spec.Replicas, r.Autoscaler.Spec)
	}
	if !maps.Equal(r.PodMonitor.Spec.Selector.MatchLabels, r.Deployment.Spec.Selector.MatchLabels) || r.Budget.Name != "" {
		t.Errorf("monitor %v, budget %q", r.PodMonitor.Spec, r.Budget.Name)
	}
	if image := pod.Containers[0].Image; !strings.HasSuffix(image, ":9.9.9") || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("image %s, pulled by %v", image, pod.ImagePullSecrets)
	}
	about := r.Deployment.Spec.Template.ObjectMeta
	if about.Labels["team"] != "search" || about.Annotations["vendor/scrape"] != "true" || pod.Containers[0].Env[0].Value != "900MiB" ||
		pod.NodeSelector["disk"] != "ssd" || pod.Tolerations[0].Key != "search" || pod.Affinity.NodeAffinity == nil {
		t.Errorf("pods: %v, %+v", about, pod)
	}
	backend := r.Ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != r.Service.Name || backend.Port.Name != r.Service.Spec.Ports[0].Name || *r.Ingress.Spec.IngressClassName != "nginx" ||
		r.Ingress.Spec.TLS[0].SecretName != "search-tls" || r.Service.Annotations["vendor/internal"] != "true" {
		t.Errorf("ingress %+v, service %v", r.Ingress.Spec, r.Service)
	}
}

// Objects of other charts of the release, and of another release of this chart,
// have other names, and the services other pods.
func TestChartsOfOneNamespaceDoNotClash(t *testing.T) {
	names, selectors := map[string]bool{}, map[string]bool{}
	for _, row := range []struct{ release, override, want string }{
		{"shop", "", "shop-akin"}, {"help", "", "help-akin"}, {"akin", "", "akin"}, {"my-akin", "", "my-akin"}, {"other", "related", "related"},
		{strings.Repeat("long", 13), "", strings.Repeat("long", 11)},
	} {
		r, err := renderAs(t, row.release, smallest+"\nfullnameOverride: \""+row.override+"\"")
		check.OK(t, err)
		for _, name := range []string{r.Deployment.Name, r.Service.Name, r.ConfigMap.Name, r.Budget.Name} {
			check.That(t, name == row.want, "release %s: %s, want %s", row.release, name, row.want)
		}
		selector := fmt.Sprint(r.Service.Spec.Selector)
		check.That(t, !names[row.want] && !selectors[selector], "%s and %s are taken", row.want, selector)
		names[row.want], selectors[selector] = true, true
	}
}

// The commands are those of the file for clusters without Helm, which a test
// runs on a real engine.
func TestChartRebuildsTheMatrixLikeTheNightlyFile(t *testing.T) {
	r, err := render(t, `config: {cluster: {urls: ["http://127.0.0.1:9200"]}}
secretEnv: akin-rebuild
rebuild: {enabled: true}
`)
	check.OK(t, err)
	text, err := os.ReadFile(filepath.Join(repository, "deploy", "nightly", "cronjob.yaml"))
	check.OK(t, err)
	var file batchv1.CronJob
	check.OK(t, yaml.UnmarshalStrict(text, &file))
	commands := func(job batchv1.CronJob) (all []string) {
		pod := job.Spec.JobTemplate.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			all = append(all, c.Name+" "+strings.Join(c.Args, " "))
		}
		return all
	}
	// The file has the cluster on the command line, and Redis in the environment.
	const configured = " --config /etc/akin/akin.yml"
	inFile, inChart := commands(file), commands(r.Rebuild)
	for i, c := range inFile {
		inFile[i] = strings.Replace(c, " --cluster http://127.0.0.1:9200", "", 1)
		what, _, _ := strings.Cut(c, " ")
		check.That(t, strings.Contains(inChart[i], configured) == (what != "check"), "%s", inChart[i])
		inChart[i] = strings.Replace(inChart[i], configured, "", 1)
	}
	check.Equal(t, inFile, inChart)
	check.That(t, r.Rebuild.Spec.Schedule == file.Spec.Schedule, "at %s", r.Rebuild.Spec.Schedule)
	pod := r.Rebuild.Spec.JobTemplate.Spec.Template
	if name := "app.kubernetes.io/name"; pod.Labels[name] == r.Service.Spec.Selector[name] {
		t.Error("the service sends searches to the pods of the job")
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		check.That(t, c.EnvFrom[0].SecretRef.Name == "akin-rebuild" && *c.SecurityContext.ReadOnlyRootFilesystem, "%+v", c)
	}

	r, err = render(t, `config: {cluster: {urls: ["https://es:9200"], tls: {ca_file: ca.crt}}}
rebuild: {enabled: true, matrix: shop, index: "shop*", field: "title,body", keep: 3, args: [--overrides, /etc/akin/overrides.txt]}
`)
	check.OK(t, err)
	all := strings.Join(commands(r.Rebuild), "\n")
	for _, part := range []string{"build matrix build --config /etc/akin/akin.yml --index shop* --field title,body", "--out /data/new.akin --overrides /etc/akin/overrides.txt", "--name shop --keep 3"} {
		check.That(t, strings.Contains(all, part), "%s lacks %s", all, part)
	}
}

func TestChartTakesTheValuesOfTheDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "install.md"))
	check.OK(t, err)
	block := regexp.MustCompile("(?s)```yaml helm\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/install.md has no values")
	}
	r, err := render(t, string(block[1]))
	check.OK(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "akin.yml")
	server := httptest.NewTLSServer(nil) // has a certificate
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string]string{file: r.ConfigMap.Data["akin.yml"], filepath.Join(dir, "ca.crt"): string(authority)} {
		check.OK(t, os.WriteFile(name, []byte(content), 0o600))
	}
	t.Setenv("AKIN_REDIS_URL", "redis://redis:6379") // of the Secret
	cfg, err := configs.Load(t.Context(), file)
	check.That(t, err == nil && cfg.Cluster.URLs[0] == "https://es.search.svc:9200", "%v: %v", cfg, err)
}

func TestChartTakesTheValuesForManagedClusters(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "managed.md"))
	check.OK(t, err)
	blocks := regexp.MustCompile("(?s)```yaml helm\n(.*?)```").FindAllSubmatch(text, -1)
	check.Must(t, len(blocks) == 4, "%d blocks", len(blocks))
	for k, block := range blocks {
		r, err := render(t, string(block[1]))
		check.OK(t, err)
		_, err = configs.Parse("akin.yml", []byte(r.ConfigMap.Data["akin.yml"]))
		check.OK(t, err)
		pod := r.Deployment.Spec.Template.Spec
		domain := k == 0 // has an account of its own with a role, and a spool
		account := []string{"search-akin", "akin", "", ""}[k]
		check.That(t, pod.ServiceAccountName == account && (r.Account.Annotations["eks.amazonaws.com/role-arn"] != "") == domain &&
			(len(pod.Volumes) == 2) == domain && (len(pod.Containers[0].VolumeMounts) == 2) == domain, "%s: %+v", block[1], pod)
	}
}

func TestChartRefusesWrongValues(t *testing.T) {
	for name, row := range map[string]struct{ values, says string }{
		"no cluster":               {"{}", "minItems"},
		"a cluster without http":   {`config: {cluster: {urls: ["es:9200"]}}`, "pattern"},
		"another port":             {smallest + "\nservice: {port: http}", "integer"},
		"an ingress for no host":   {smallest + "\ningress: {enabled: true}", "hosts"},
		"an unknown value":         {smallest + "\nreplica: 3", "replica"},
		"an address of the pod":    {`config: {listen: {address: "127.0.0.1:9280"}, cluster: {urls: ["https://es:9200"]}}`, ":9280"},
		"a password in Redis' URL": {`config: {redis: {url: "redis://me:secret@redis:6379"}, cluster: {urls: ["https://es:9200"]}}`, "redis"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Message(t, row.says, check.ErrOf(render(t, row.values)))
		})
	}
}

func TestHelmFindsNothingInTheChart(t *testing.T) {
	found := lint.RunAll(chartFolder, values(t, smallest), "web")
	for _, message := range found.Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}
