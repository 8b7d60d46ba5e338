package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/e2e/check"
)

// TestSecretsAreNotPrinted writes a configuration that holds secrets in the
// ways in which programs write values.
func TestSecretsAreNotPrinted(t *testing.T) {
	const word = "hunter2"
	c := Default()
	c.Redis.URL = NewSecret("redis://:" + word + "@127.0.0.1")
	c.Cluster.Auth.Password = NewSecret(word)
	c.Cluster.Auth.APIKey = NewSecret(word)
	s := c.Cluster.Auth.Password

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10s", "%!"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", s, &s, c)
	}
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("configuration", "secret", s, "pointer", &s, "all", c, "part", c.Cluster.Auth)
	}
	for name, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "yaml": yaml.Marshal} {
		text, err := marshal(c)
		check.Must(t, err == nil, "%s: %v", name, err)
		out.Write(text)
	}
	for line := range strings.Lines(out.String()) {
		// %x of the word, in case a verb reaches the bytes.
		check.That(t, !strings.Contains(line, word) && !strings.Contains(strings.ToLower(line), fmt.Sprintf("%x", word)), "the secret stands in %s", line)
	}
	check.Equal(t, word, s.Reveal())
	check.Equal(t, "[redacted] ", fmt.Sprint(s, Secret{}))
}
