package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/server"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
)

func newServe() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Stand in front of a cluster and expand its searches",
		Long: `serve forwards every request to the cluster and expands the searches among them.
Whatever goes wrong, the original request goes on. The admin port has /healthz,
/readyz, /metrics, POST /_akin/expand/{index} and GET /_akin/explanations; it
shows the texts of searches.
SIGHUP reads FILE again without losing a request. SIGTERM and SIGINT end serve in
good order, which takes some seconds (shutdown.delay); a second one ends it at once.`,
		Example: `  akin serve --config configs/akin.yml`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return terminal.Usage(errors.New("give --config FILE"))
			}
			cfg, err := configs.Load(cmd.Context(), file)
			if err != nil {
				return terminal.Usage(err)
			}
			return server.Run(cmd.Context(), file, cfg, buildVersion(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (required)")
	return cmd
}
