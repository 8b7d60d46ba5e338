package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestRecognise(t *testing.T) {
	tests := []struct {
		method, path string
		search       bool
		index        string
	}{
		{"GET", "/_search", true, ""},
		{"POST", "/_search", true, ""},
		{"POST", "/help/_search", true, "help"},
		{"POST", "/help/_search/", true, "help"},
		{"POST", "/help,catalogue*,-old/_search", true, "help,catalogue*,-old"},
		{"GET", "/_all/_search", true, "_all"},
		{"GET", "/*/_search", true, "*"},
		{"GET", "/eu:help/_search", true, "eu:help"},
		{"GET", "/%3Clogs-%7Bnow%2Fd%7D%3E/_search", true, "<logs-{now/d}>"},
		{"GET", "/a+b/_search", true, "a+b"},

		{"PUT", "/help/_search", false, ""},
		{"HEAD", "/help/_search", false, ""},
		{"get", "/help/_search", false, ""},
		{"POST", "/_search/scroll", false, ""},
		{"POST", "/_search/template", false, ""},
		{"POST", "/help/_search/template", false, ""},
		{"POST", "/help/_search/point_in_time", false, ""},
		{"POST", "/_search/point_in_time/_all", false, ""},
		{"POST", "/_scripts/_search", false, ""},
		{"POST", "/%5Fscripts/_search", false, ""},
		{"GET", "/_alias/_search", false, ""},
		{"POST", "/_search/_search", false, ""},
		{"POST", "/help/%5Fsearch", false, ""},
		{"POST", "//_search", false, ""},
		{"POST", "/help//_search", false, ""},
		{"POST", "/help/_msearch", false, ""},
		{"POST", "/help/_search_shards", false, ""},
		{"POST", "/help/_delete_by_query", false, ""},
		{"POST", "/help/type/_search", false, ""},
		{"POST", "/help/_doc/_search", false, ""},
		{"POST", "/_search%2F", false, ""},
		{"POST", "_search", false, ""},
		{"POST", "_search/0", false, ""},
		{"GET", "/", false, ""},
		{"OPTIONS", "*", false, ""},
		{"CONNECT", "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			m, ok := recognise(tt.method, tt.path)
			if ok != tt.search || m.index != tt.index {
				t.Errorf("recognised %v with index %q, want %v with %q", ok, m.index, tt.search, tt.index)
			}
		})
	}
}

// isSearch says in the plainest way what recognise has to say.
func isSearch(method, path string) (index string, ok bool) {
	if method != http.MethodGet && method != http.MethodPost {
		return "", false
	}
	for strings.HasSuffix(path, "/") {
		path = path[:len(path)-1]
	}
	segments := strings.Split(path, "/")
	if segments[0] != "" || segments[len(segments)-1] != "_search" {
		return "", false
	}
	switch segments = segments[1 : len(segments)-1]; len(segments) {
	case 0:
		return "", true
	case 1:
		index, err := url.PathUnescape(segments[0])
		named := err == nil && index != "" && (!strings.HasPrefix(index, "_") || index == "_all")
		if !named {
			return "", false
		}
		return index, true
	default:
		return "", false
	}
}

func FuzzRecognise(f *testing.F) {
	for _, path := range []string{
		"/_search", "/a/_search", "/a%2Fb/_search//", "/_all/_search", "//_search", "/%5Fa/_search",
		"/a/_search/scroll", "/%zz/_search", "*", "", "_search", "_search/0", "a/_search", "/a/b/_search", "/_search/_search",
	} {
		f.Add("GET", path)
		f.Add("POST", path)
	}
	f.Add("PUT", "/_search")
	f.Fuzz(func(t *testing.T, method, path string) {
		m, ok := recognise(method, path)
		index, want := isSearch(method, path)
		if ok != want || m.index != index {
			t.Errorf("recognise(%q, %q) = %q, %v, want %q, %v", method, path, m.index, ok, index, want)
		}
	})
}

// The rows must be such that a request fits at most one.
func TestRoutesDoNotOverlap(t *testing.T) {
	for i, a := range routes {
		for _, b := range routes[i+1:] {
			if a.shape == b.shape && slices.ContainsFunc(a.methods, func(m string) bool { return slices.Contains(b.methods, m) }) {
				t.Errorf("%s stands twice in the table", a.shape)
			}
		}
	}
}
