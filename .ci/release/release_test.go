// Package release checks .goreleaser.yaml by the types of goreleaser, and makes
// the packages that it describes by the library that goreleaser makes them
// with. `make release-files` comes first.
package release

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// TestMain goes to the root of the checkout, which the paths of .goreleaser.yaml
// start from.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func project(t *testing.T) config.Project {
	t.Helper()
	p, err := config.Load(".goreleaser.yaml") // refuses unknown keys
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReleaseFindsItsFiles(t *testing.T) {
	p := project(t)
	patterns := []string{p.DockersV2[0].Dockerfile, p.NFPMs[0].Scripts.PostInstall, p.NFPMs[0].Scripts.PreRemove, filepath.Join("dist", p.SBOMs[0].Cmd)}
	for _, file := range p.Archives[0].Files {
		patterns = append(patterns, file.Source)
	}
	for _, pattern := range patterns {
		if found, err := filepath.Glob(pattern); err != nil || len(found) == 0 {
			t.Errorf("%s: not there (%v)", pattern, err)
		}
	}
	// The linker's variables and the tags are those of the other builds.
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	build := p.Builds[0]
	for _, flag := range []string{"-trimpath", "-tags=nomsgpack"} {
		if !slices.Contains(build.Flags, flag) || !bytes.Contains(dockerfile, []byte(flag)) {
			t.Errorf("%s: the release has %v, the Dockerfile differs", flag, build.Flags)
		}
	}
	for _, variable := range regexp.MustCompile(`-X (\S+)=`).FindAllStringSubmatch(strings.Join(build.Ldflags, " "), -1) {
		if !bytes.Contains(dockerfile, []byte("-X "+variable[1]+"=")) {
			t.Errorf("the Dockerfile does not set %s", variable[1])
		}
	}
}

func TestReleasedImageStartsAsTheOther(t *testing.T) {
	lines := func(name string) (kept []string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if regexp.MustCompile(`^(FROM gcr|USER|EXPOSE|ENTRYPOINT|CMD)`).MatchString(line) {
				kept = append(kept, line)
			}
		}
		return kept
	}
	if built, released := lines("Dockerfile"), lines(project(t).DockersV2[0].Dockerfile); !slices.Equal(built, released) {
		t.Errorf("%q\n%q", built, released)
	}
}

// pack makes a package as goreleaser does, with the program of this machine.
func pack(t *testing.T, format string) string {
	t.Helper()
	p := project(t).NFPMs[0]
	info := &nfpm.Info{
		Name: p.PackageName, Arch: "amd64", Platform: "linux", Version: "1.2.3", Section: p.Section, Priority: p.Priority,
		Maintainer: p.Maintainer, Description: p.Description, Vendor: p.Vendor, Homepage: p.Homepage, License: p.License,
		Overridables: nfpm.Overridables{Scripts: nfpm.Scripts{PostInstall: p.Scripts.PostInstall, PreRemove: p.Scripts.PreRemove}},
	}
	info.Contents = files.Contents{{Source: "bin/release/akin", Destination: "/usr/bin/akin", FileInfo: &files.ContentFileInfo{Mode: 0o755}}}
	for _, c := range p.Contents {
		info.Contents = append(info.Contents, &files.Content{Source: c.Source, Destination: c.Destination, Type: c.Type, Packager: c.Packager})
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		t.Fatal(err)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), packager.ConventionalFileName(info))
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := packager.Package(info, file); err != nil {
		t.Fatal(err)
	}
	return name
}

// output runs a program that has to succeed; without it the test is skipped, or
// fails where AKIN_TEST=all says that everything has to be there.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("AKIN_TEST") == "all" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// packaged are files that each package has, and those of one kind.
var packaged = []string{
	"/usr/bin/akin", "/usr/lib/systemd/system/akin.service", "/etc/akin/akin.yml", "/usr/share/doc/akin/akin.yml",
	"/usr/share/man/man1/akin.1", "/usr/share/man/man1/akin-matrix-build.1",
	"/usr/share/bash-completion/completions/akin", "/usr/share/fish/vendor_completions.d/akin.fish",
}

func TestDebInstallsAService(t *testing.T) {
	deb := pack(t, "deb")
	if about := output(t, "dpkg-deb", "--field", deb); !strings.Contains(about, "Package: akin") || !strings.Contains(about, "Version: 1.2.3") {
		t.Error(about)
	}
	root := t.TempDir()
	output(t, "dpkg-deb", "--extract", deb, root)
	for _, file := range append(packaged, "/usr/share/zsh/vendor-completions/_akin") {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	control := t.TempDir()
	output(t, "dpkg-deb", "--control", deb, control)
	kept, err := os.ReadFile(filepath.Join(control, "conffiles"))
	if err != nil || strings.TrimSpace(string(kept)) != "/etc/akin/akin.yml" {
		t.Errorf("an upgrade keeps %q (%v)", kept, err)
	}
	for _, script := range []string{"postinst", "prerm"} {
		output(t, "sh", "-n", filepath.Join(control, script))
	}
	if said := output(t, filepath.Join(root, "/usr/bin/akin"), "--version"); !strings.HasPrefix(said, "akin ") {
		t.Errorf("the installed program says %q", said)
	}
	// systemd finds what the unit starts at its place below root.
	unit := filepath.Join(root, "akin.service")
	text, err := os.ReadFile(filepath.Join(root, "/usr/lib/systemd/system/akin.service"))
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("ExecStart=/usr/"), []byte("ExecStart="+root+"/usr/"))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := output(t, "systemd-analyze", "verify", "--man=no", unit); strings.Contains(said, unit) {
		t.Error(said)
	}
}

func TestRPMHasTheSameFiles(t *testing.T) {
	rpm := pack(t, "rpm")
	list := strings.Fields(output(t, "rpm", "-qp", "--list", rpm))
	for _, file := range append(packaged, "/usr/share/zsh/site-functions/_akin") {
		if !slices.Contains(list, file) {
			t.Errorf("no %s", file)
		}
	}
	if kept := strings.TrimSpace(output(t, "rpm", "-qp", "--configfiles", rpm)); kept != "/etc/akin/akin.yml" {
		t.Errorf("an upgrade keeps %q", kept)
	}
	if scripts := output(t, "rpm", "-qp", "--scripts", rpm); !strings.Contains(scripts, "daemon-reload") || !strings.Contains(scripts, "disable --now") {
		t.Error(scripts)
	}
}

// TestSBOMNamesTheModules compares with what Go says of the program.
func TestSBOMNamesTheModules(t *testing.T) {
	sbom := project(t).SBOMs[0]
	file := filepath.Join(t.TempDir(), "sbom.json")
	args := strings.NewReplacer("$artifact", "bin/release/akin", "$document", file)
	for i, arg := range sbom.Args {
		sbom.Args[i] = args.Replace(arg)
	}
	output(t, "bin/release/"+path.Base(sbom.Cmd), sbom.Args...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	want := strings.Count(output(t, "go", "version", "-m", "bin/release/akin"), "\tdep\t") + 2 // and Go's own library and the vectors of words
	if bom.BOMFormat != "CycloneDX" || len(*bom.Components) != want || !bytes.Contains(text, []byte(`"pkg:golang/github.com/spf13/cobra@v`)) {
		t.Errorf("%s with %d components, want %d", bom.BOMFormat, len(*bom.Components), want)
	}
}
