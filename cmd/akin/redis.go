package main

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// redisFlags say which matrix in which Redis is meant.
type redisFlags struct {
	url, name string
	tls       configs.RedisTLS
}

func (f *redisFlags) register(cmd *cobra.Command) {
	f.registerServer(cmd)
	cmd.Flags().StringVar(&f.name, "name", "main", "name of the matrix, as in the configuration")
}

// registerServer adds the flags that say which Redis, but not which matrix.
func (f *redisFlags) registerServer(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "redis", "", "URL of Redis, Sentinels or a cluster; default $"+configs.EnvRedisURL+
		", which keeps a password out of the process list")
	flags.StringVar(&f.tls.CAFile, "redis-ca-file", "", "PEM file of the authorities that sign the certificate of Redis; default the system's")
	flags.StringVar(&f.tls.CertFile, "redis-cert-file", "", "PEM file of a certificate to show to Redis")
	flags.StringVar(&f.tls.KeyFile, "redis-key-file", "", "PEM file of its private key")
}

// open returns the Redis of the flags.
func (f *redisFlags) open() (*rowstore.Admin, error) {
	url := cmp.Or(f.url, os.Getenv(configs.EnvRedisURL))
	if url == "" {
		return nil, terminal.Usage(errors.New("no Redis: give --redis URL or set " + configs.EnvRedisURL))
	}
	certificates, err := files.RedisTLS(f.tls)
	if err != nil {
		return nil, terminal.Usage(err)
	}
	admin, err := rowstore.OpenAdmin(rowstore.Redis{URL: url, TLS: certificates})
	if err != nil {
		return nil, terminal.Usage(err)
	}
	return admin, nil
}

// with calls f with the Redis of the flags.
func (f *redisFlags) with(call func(admin *rowstore.Admin) error) (err error) {
	admin, err := f.open()
	if err != nil {
		return err
	}
	defer func() {
		if closing := admin.Close(); err == nil {
			err = closing
		}
	}()
	if err := call(admin); errors.Is(err, rowstore.ErrName) {
		return terminal.Usage(err)
	} else if err != nil {
		return err
	}
	return nil
}
