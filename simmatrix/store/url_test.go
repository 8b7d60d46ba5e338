package store

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
)

func TestURLErrorsKeepTheSecret(t *testing.T) {
	for _, r := range []Redis{
		{},
		{URL: "h:6379"},
		{URL: "redis://u:hunter2@h/x"},
		{URL: "redis+sentinel://u:hunter2@a"},
		{URL: "redis://h?hunter2"},
		{URL: "redis://u:hunter2@h", TLS: new(tls.Config)}, // certificates without TLS
	} {
		a, err := OpenAdmin(r)
		if !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", r.URL, err)
		}
		if err == nil {
			a.Close()
		}
	}
}
