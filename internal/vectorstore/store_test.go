package vectorstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestAFileKeepsValuesForTheNextProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vectors.db")
	f := NewFile(path)
	keys := []string{"a", "b"}
	check.Equal(t, [][]byte{nil, nil}, check.Got(f.Get(t.Context(), keys))(t))
	check.OK(t, f.Put(t.Context(), keys[:1], [][]byte{{1, 2}}))
	other := NewFile(path)
	_, err := other.Get(t.Context(), keys)
	check.That(t, err != nil && strings.Contains(err.Error(), "another process uses it"), "%v", err)
	check.OK(t, f.Close())
	check.Equal(t, [][]byte{{1, 2}, nil}, check.Got(other.Get(t.Context(), keys))(t), "it is free now")
	check.OK(t, other.Close())
	check.OK(t, other.Close())
}

func TestAFileOfAnotherKindIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	check.OK(t, os.WriteFile(path, make([]byte, 10_000), 0o600))
	for _, path := range []string{path, filepath.Dir(path)} {
		err := NewFile(path).Put(t.Context(), []string{"a"}, [][]byte{{1}})
		check.That(t, err != nil && strings.Contains(err.Error(), path), "%v", err)
	}
}
