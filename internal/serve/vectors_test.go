package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand/vectors"
)

// A reload keeps the configuration in use where the new one has such a file.
func TestModelsThatCannotBeReadAreAnErrorOfTheConfiguration(t *testing.T) {
	damaged := written(t, "damaged", "akin-V\r\n")
	for path, want := range map[string]error{damaged: vectors.ErrFormat, damaged + "-not": fs.ErrNotExist} {
		cfg := configs.Default()
		cfg.Vectors = []string{path}
		_, err := New(t.Context(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "vectors[0]") || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %v of vectors[0], %s", err, want, path)
		}
	}
}
