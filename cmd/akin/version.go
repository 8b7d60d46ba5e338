package main

import (
	"cmp"
	"runtime/debug"

	"github.com/akin-search/akin/internal/serve"
)

// version and commit are set by the linker (-X) if Go cannot read them from the
// repository, as in the container image.
var version, commit string

// thisBuild returns the version of this akin, as far as the build knows it.
func thisBuild() serve.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describeBuild(info, version, commit)
}

// describeBuild returns the version of the module, the commit and the Go
// version. Values set by the linker take precedence.
func describeBuild(info *debug.BuildInfo, version, commit string) serve.Build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit = cmp.Or(commit, settings["vcs.revision"])
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += " with changes"
	}
	return serve.Build{Version: cmp.Or(version, info.Main.Version, "(devel)"), Commit: commit, Go: info.GoVersion}
}
