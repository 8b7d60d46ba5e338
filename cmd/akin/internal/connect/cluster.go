// Package connect has the flags that say which cluster and which Redis a
// command is about, connects to them with the credentials of the environment,
// and says what to do about errors (next.go).
package connect

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
)

// Credentials says where the credentials come from.
const Credentials = `Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `.`

// A Cluster says which cluster is meant, and mostly which indices in it.
type Cluster struct{ URL, CAFile, Index string }

// Register adds the flags, with the usage of --cluster.
func (f *Cluster) Register(flags *pflag.FlagSet, usage string) {
	f.RegisterServer(flags, "cluster", usage)
	flags.StringVar(&f.Index, "index", "", "index, alias, data stream, or several as in a search")
}

// RegisterServer adds the flags that say which cluster, by the name of its URL.
func (f *Cluster) RegisterServer(flags *pflag.FlagSet, name, usage string) {
	flags.StringVar(&f.URL, name, "", usage)
	flags.StringVar(&f.CAFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
}

// Open returns a client with the credentials of the environment.
func (f *Cluster) Open() (*esclient.Client, error) {
	ca, err := files.ReadAuthorities(f.CAFile)
	if err != nil {
		return nil, terminal.Usage(err)
	}
	client, err := esclient.New(esclient.Options{
		URL:      f.URL,
		CA:       ca,
		Username: os.Getenv(configs.EnvClusterUsername),
		Password: os.Getenv(configs.EnvClusterPassword),
		APIKey:   os.Getenv(configs.EnvClusterAPIKey),
	})
	if err != nil {
		return nil, terminal.Usage(err)
	}
	return client, nil
}
