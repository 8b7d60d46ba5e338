package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
)

var amazonFolder = filepath.Join(repository, "deploy", "amazon")

// amazonConfig reads the configuration in a folder of its containers.
func amazonConfig(t *testing.T) *configs.Config {
	t.Helper()
	t.Setenv(configs.EnvListenPassword, "sixteen letters!")
	cfg, err := configs.Load(t.Context(), filepath.Join(amazonFolder, "akin.yml"))
	check.OK(t, err)
	check.That(t, cfg.Cluster.AWS.Signs() && !cfg.LendsRights(), "does not sign, or for everybody")
	return cfg
}

func TestComposeForAmazonKeepsBodiesInAVolume(t *testing.T) {
	file := filepath.Join(amazonFolder, "compose.yml")
	if _, err := loadCompose(t, file, nil); err == nil {
		t.Error("starts without a password for clients")
	}
	cfg := amazonConfig(t)
	project, err := loadCompose(t, file, []string{configs.EnvListenPassword + "=sixteen letters!"})
	check.OK(t, err)
	akin := project.Services["akin"]
	delete(akin.Environment, configs.EnvListenPassword) // comes from the shell
	checkService(t, akin)
	spool := slices.ContainsFunc(akin.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == types.VolumeTypeVolume && v.Target == cfg.Cluster.AWS.Spool
	})
	check.That(t, akin.ReadOnly && spool, "read-only: %v, volumes %v", akin.ReadOnly, akin.Volumes)
	for k, address := range []string{cfg.Listen.Address, cfg.Admin.Address} {
		check.Equal(t, address, fmt.Sprintf(":%d", akin.Ports[k].Target))
	}
	text, err := os.ReadFile(filepath.Join(amazonFolder, "Dockerfile"))
	check.OK(t, err)
	for _, line := range []string{"FROM " + akin.Image, "VOLUME " + cfg.Cluster.AWS.Spool} {
		check.That(t, strings.Contains(string(text), line+"\n"), "the image for ECS has no %s", line)
	}
}

func TestTaskForECSIsOne(t *testing.T) {
	cfg := amazonConfig(t)
	text, err := os.ReadFile(filepath.Join(amazonFolder, "task.json"))
	check.OK(t, err)
	var task ecs.RegisterTaskDefinitionInput
	reading := json.NewDecoder(bytes.NewReader(text))
	reading.DisallowUnknownFields()
	check.OK(t, reading.Decode(&task))
	check.Must(t, len(task.ContainerDefinitions) == 1 && len(task.Volumes) == 1 && task.TaskRoleArn != nil, "%+v", task)
	akin := task.ContainerDefinitions[0]
	mount := akin.MountPoints[0]
	check.That(t, *akin.ReadonlyRootFilesystem && *mount.SourceVolume == *task.Volumes[0].Name && *mount.ContainerPath == cfg.Cluster.AWS.Spool, "%+v", akin)
	check.Equal(t, configs.EnvListenPassword, *akin.Secrets[0].Name)
	for k, address := range []string{cfg.Listen.Address, cfg.Admin.Address} {
		check.Equal(t, address, fmt.Sprintf(":%d", *akin.PortMappings[k].ContainerPort))
	}
	if need := time.Duration(cfg.Shutdown.Delay) + configs.ShutdownTimeout; time.Duration(*akin.StopTimeout)*time.Second <= need {
		t.Errorf("ECS ends akin after %d s, which needs %v", *akin.StopTimeout, need)
	}
}
