package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReadyFailsWhereAkinIsNotReady(t *testing.T) {
	status := http.StatusOK
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"status":"as it is"}`)) // the test sees what is missing
	}))
	out, errs, code := akin(t, "ready", "--admin", admin.URL+"/")
	if code != 0 || out != `{"status":"as it is"}`+"\n" || errs != "" {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
	status = http.StatusServiceUnavailable
	if out, errs, code = akin(t, "ready", "--admin", admin.URL); code != exitFailure || !strings.Contains(out, "as it is") || !strings.Contains(errs, "not ready") {
		t.Errorf("503: exit status %d, %q, %q", code, out, errs)
	}
	admin.Close()
	if _, errs, code = akin(t, "ready", "--admin", admin.URL); code != exitFailure || !strings.Contains(errs, "admin port") {
		t.Errorf("nobody there: exit status %d, %q", code, errs)
	}
}
