package main

import (
	"net/http"
	"net/http/httptest"
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
	if said := ends(t, 0, []string{"ready", "--admin", admin.URL + "/"}); said != `{"status":"as it is"}`+"\n" {
		t.Error(said)
	}
	status = http.StatusServiceUnavailable
	ends(t, exitFailure, []string{"ready", "--admin", admin.URL}, "as it is", "not ready")
	admin.Close()
	ends(t, exitFailure, []string{"ready", "--admin", admin.URL}, "admin port")
}
