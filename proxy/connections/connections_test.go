package connections

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestFullListenersSayToTheLogInUseThatAllAreTaken(t *testing.T) {
	var before, after bytes.Buffer
	used := &before
	l := Listen(nil, 1, nil, nil, func() *slog.Logger { return slog.New(slog.NewTextHandler(used, nil)) })
	l.count = 1
	used = &after
	if _, _, ok := l.takePlace(); ok || before.Len() > 0 || !strings.Contains(after.String(), "all connections are taken") {
		t.Errorf("logged %q and %q", before.String(), after.String())
	}
}
