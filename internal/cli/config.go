package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
)

// UsualConfig is the file that "akin init" writes.
const UsualConfig = "akin.yml"

// A Config is the configuration of a command that can also do without: what no
// flag says comes from the file.
type Config struct {
	file string
	read *configs.Config // nil without a file
}

// A Configured part of a command takes from the configuration what no flag
// says. given says whether a flag was given.
type Configured interface {
	Configure(c *configs.Config, given func(flag string) bool) error
}

// Register adds --config to a command. Before the command runs, the parts take
// from the file what they need. The usual file need not be there.
func (c *Config) Register(cmd *cobra.Command, parts ...Configured) {
	cmd.Flags().StringVar(&c.file, "config", UsualConfig, "configuration file, for what no other flag says; it need not be there")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		read, err := configs.Load(cmd.Context(), c.file)
		switch given := cmd.Flags().Changed; {
		case errors.Is(err, fs.ErrNotExist) && !given("config") && lacks(err):
		case err != nil:
			return Usage(err)
		default:
			c.read = read
			for _, part := range parts {
				if err := part.Configure(read, given); err != nil {
					return Usage(fmt.Errorf("%s: %w", c.file, err))
				}
			}
		}
		if check == nil {
			return nil
		}
		return check(cmd, args)
	}
}

// lacks reports whether the error is about the configuration itself, not about
// a file that it names.
func lacks(err error) bool {
	problem, ok := errors.AsType[*configs.Error](err)
	return ok && problem.Key == ""
}

// Matrix returns the entry of matrices with a name, or the only one if name is
// "", with a file also if it is served from Redis. It returns nil without a
// configuration, and if that has no matrices.
func (c *Config) Matrix(name string) (*configs.Matrix, error) {
	if c.read == nil {
		if name != "" {
			return nil, Usage(fmt.Errorf("--name %s: there is no %s that has it", name, c.file))
		}
		return nil, nil
	}
	entries := c.read.Matrices
	at := slices.IndexFunc(entries, func(m configs.Matrix) bool { return m.Name == name || name == "" && len(entries) == 1 })
	switch {
	case at >= 0:
		m := entries[at]
		m.File = cmp.Or(m.File, filepath.Join(filepath.Dir(c.file), m.Name+".akin"))
		return &m, nil
	case name != "":
		return nil, Usage(fmt.Errorf("--name: %s has no matrix %q, but %s", c.file, name, names(entries)))
	case len(entries) > 0:
		return nil, Usage(fmt.Errorf("%s has several matrices, %s: choose one with --name", c.file, names(entries)))
	}
	return nil, nil
}

// Ref returns the MATRIX that the configuration serves under a name, see
// [MatrixHelp], and "" as [Config.Matrix] returns nil.
func (c *Config) Ref(name string) (string, error) {
	m, err := c.Matrix(name)
	if err != nil || m == nil {
		return "", err
	}
	for _, entry := range c.read.Matrices {
		if entry.Name == m.Name && entry.File == "" {
			return m.Name + "@" + activeVersion, nil
		}
	}
	return m.File, nil
}

func names(entries []configs.Matrix) string {
	all := make([]string, len(entries))
	for k, m := range entries {
		all[k] = m.Name
	}
	return Some(all)
}

// Fields returns the fields of an entry of matrices. Patterns are an error.
func Fields(m *configs.Matrix) ([]string, error) {
	if strings.Contains(strings.Join(m.Fields, ""), "*") {
		return nil, fmt.Errorf("the fields of the matrix %s are a pattern, %s: name them with --field", m.Name, Some(m.Fields))
	}
	return m.Fields, nil
}

// Renamed makes a flag an error that names the one in its place.
func Renamed(flags *pflag.FlagSet, old, now string) {
	flags.Func(old, "", func(string) error { return errors.New("this is " + now + " now") })
	flags.Lookup(old).Hidden = true
}
