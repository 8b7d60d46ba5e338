// Command sbom writes the modules that a Go program is built from as CycloneDX
// JSON, from what Go keeps in the program itself:
//
//	sbom PROGRAM FILE
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "sbom: give PROGRAM and FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write reads the program and writes its modules to a new file.
func write(program, path string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill(info)); err != nil {
		_ = file.Close() // the error above says more
		return err
	}
	return file.Close()
}

// bill lists the program, its modules, the standard library of Go, and the data
// in the program that is of others.
func bill(info *debug.BuildInfo) *cyclonedx.BOM {
	modules := []cyclonedx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, component(m.Path, m.Version))
	}
	modules = append(modules, words())
	main := component(info.Main.Path, info.Main.Version)
	main.Type = cyclonedx.ComponentTypeApplication
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &modules
	return bom
}

// words are the vectors of words in the program; NOTICE has their notices.
func words() cyclonedx.Component {
	licenses := cyclonedx.Licenses{}
	for _, license := range []cyclonedx.License{{ID: "Apache-2.0"}, {Name: "SCOWL"}, {Name: "WordNet 3.0"}} {
		licenses = append(licenses, cyclonedx.LicenseChoice{License: &license})
	}
	return cyclonedx.Component{
		Type: cyclonedx.ComponentTypeMachineLearningModel, BOMRef: "words.bin", Name: "tools/words/words.bin",
		Description: "Vectors of English words, derived from the sentence model all-MiniLM-L6-v2; the words are of SCOWL and WordNet", Licenses: &licenses,
	}
}

func component(path, version string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url, BOMRef: url}
}
