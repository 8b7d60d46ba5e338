package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
)

// newReady asks a running akin whether it is ready. The container image has no
// other program that could.
func newReady() *cobra.Command {
	var admin string
	cmd := &cobra.Command{
		Use: "ready", Short: "Ask a running akin whether it is ready",
		Long: `ready asks /readyz of the admin port and prints the answer. It fails where akin
does not answer within two seconds or cannot forward requests: for the health
checks of containers.`,
		Example: `  akin ready --admin http://127.0.0.1:9281`,
		Args:    terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, strings.TrimSuffix(admin, "/")+"/readyz", nil)
			if err != nil {
				return terminal.Usage(fmt.Errorf("--admin: %w", err))
			}
			response, err := (&http.Client{Timeout: 2 * time.Second}).Do(request)
			if err != nil {
				return fmt.Errorf("%w; is this the admin port of an akin that runs?", err)
			}
			defer response.Body.Close()
			answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", strings.TrimSpace(string(answer)))
			if response.StatusCode != http.StatusOK {
				return errors.New("not ready")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "http://127.0.0.1:9281", "the admin port")
	return cmd
}
