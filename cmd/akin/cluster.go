package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/arms"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
)

// clusterCredentials says where the credentials come from.
const clusterCredentials = `Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `.`

// clusterFlags say which cluster is meant, and mostly which indices in it.
type clusterFlags struct{ url, caFile, index string }

func (f *clusterFlags) register(flags *pflag.FlagSet, usage string) {
	f.registerServer(flags, "cluster", usage)
	flags.StringVar(&f.index, "index", "", "index, alias, data stream, or several as in a search")
}

// registerServer adds the flags that say which cluster, by the name of its URL.
func (f *clusterFlags) registerServer(flags *pflag.FlagSet, name, usage string) {
	flags.StringVar(&f.url, name, "", usage)
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
}

// open returns a client with the credentials of the environment.
func (f *clusterFlags) open() (*esclient.Client, error) {
	ca, err := files.ReadAuthorities(f.caFile)
	if err != nil {
		return nil, terminal.Usage(err)
	}
	client, err := esclient.New(esclient.Options{
		URL:      f.url,
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

// openArms makes the arms that search the cluster. What goes wrong inside an
// akin in this process is logged on stderr.
func (f *clusterFlags) openArms(ctx context.Context, o arms.Options, stderr io.Writer) (*arms.Set, error) {
	o.Cluster, o.CAFile, o.Index = f.url, f.caFile, f.index
	o.Version, o.Log = buildVersion(), stderr
	o.Client = func(url string) (*esclient.Client, error) {
		other := *f
		other.url = url
		return other.open()
	}
	return arms.Open(ctx, o)
}
