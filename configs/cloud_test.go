package configs

import (
	"encoding/base64"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestCloudIDNamesTheCluster(t *testing.T) {
	of := func(text string) string { return "name:" + base64.StdEncoding.EncodeToString([]byte(text)) }
	for id, want := range map[string]string{
		// The example of Filebeat's documentation, "Configure the output for Elasticsearch Service".
		"staging:dXMtZWFzdC0xLmF3cy5mb3VuZC5pbyRjZWM2ZjI2MWE3NGJmMjRjZTMzYmI4ODExYjg0Mjk0ZiRjNmMyY2E2ZDA0MjI0OWFmMGNjN2Q3YTllOTYyNTc0Mw==": "https://cec6f261a74bf24ce33bb8811b84294f.us-east-1.aws.found.io",
		of("example.com$abc"):           "https://abc.example.com",
		of("example.com:9243$abc$def"):  "https://abc.example.com:9243",
		of("example.com$abc:9244$def"):  "https://abc.example.com:9244",
		of("example.com:1$abc:9244"):    "https://abc.example.com:9244",
		of("a.example.com:443$abc$d$e"): "https://abc.a.example.com:443",
	} {
		c, err := Parse("akin.yml", []byte("cluster: {cloud_id: \""+id+"\"}"))
		check.OK(t, err)
		check.Equal(t, []string{want}, c.Cluster.URLs)
	}
	for _, text := range []string{"", "$", "example.com", "example.com$", "$abc", "example.com/x$abc", "user@example.com$abc", "example.com:99999$abc", "example.com$a b"} {
		_, err := Parse("akin.yml", []byte("cluster: {cloud_id: \""+of(text)+"\"}"))
		check.That(t, err != nil, "%q is accepted", text)
	}
}
