package configs

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// rules return what is wrong with a text, by the value of its tag is.
var rules = map[string]func(string) error{
	"address": func(s string) error {
		host, port, err := net.SplitHostPort(s)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		return unless(err == nil && !hasSpace(host) && !strings.Contains(host, "/"),
			"must be host:port with a port of 0 to 65535, such as 127.0.0.1:9280")
	},
	"host": func(s string) error {
		return unless(s != "" && !strings.ContainsAny(s, ":/*") && !hasSpace(s), "must be the name of a host, without a port and wildcards")
	},
	"node":   wrongNode,
	"name":   func(s string) error { return unless(isName(s), "must be "+nameRule) },
	"file":   func(s string) error { return unless(s != "", "must be a file") },
	"header": func(s string) error { return unless(strings.Trim(s, nameChars) == "", "must be the name of a header") },
	"region": func(s string) error {
		return unless(s == "" || regexp.MustCompile(`^[a-z]{2,8}(-[a-z]{2,12})+-[1-9][0-9]?$`).MatchString(s),
			"must be the code of a region, such as eu-central-1")
	},
	"role": func(s string) error {
		return unless(s == "" || regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[!-~]+$`).MatchString(s),
			"must be the ARN of a role, such as arn:aws:iam::123456789012:role/search")
	},
	"field": wrongField,
	"index": func(s string) error {
		return unless(isPattern(strings.TrimPrefix(s, "-")),
			`must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`)
	},
	"pattern": func(s string) error {
		return unless(isPattern(s), `must be a field name in which only * is a wildcard, such as "title*"`)
	},
}

func unless(right bool, wrong string) error {
	if right {
		return nil
	}
	return errors.New(wrong)
}

func wrongField(s string) error {
	return unless(!strings.Contains("."+s+".", "..") && !strings.ContainsAny(s, "*?^,") && !hasSpace(s),
		"must be the full name of a field, without wildcards and boosts")
}

// isPattern reports whether s has no characters that are invalid in index names
// or special in other pattern languages.
func isPattern(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsAny(s, `?^[]{}()!\/"<>|,#:`) && !hasSpace(s)
}

// wrongNode returns what is wrong with the base URL of a node, or nil. The URL
// must not contain credentials.
func wrongNode(s string) error {
	u, err := url.Parse(s) // Its error quotes the URL, which may hold a password.
	switch {
	case err == nil && u.User != nil:
		return fmt.Errorf("must not hold credentials; give them in cluster.auth or in %s, %s and %s", EnvClusterUsername, EnvClusterPassword, EnvClusterAPIKey)
	case err != nil, u.Scheme != "http" && u.Scheme != "https", !isHost(u), u.RawQuery != "", u.ForceQuery, strings.Contains(s, "#"):
		return errors.New("must be http:// or https://, a host, and perhaps :port and /prefix")
	}
	return nil
}

// cloudNode returns the URL that a cloud ID names. Behind a name and a colon it
// has, in base64, the host of the cloud, "$", the ID of the deployment, and
// perhaps "$" and more. Host or ID may end with a port.
func cloudNode(id string) (string, error) {
	wrong := errors.New("must be the cloud ID that Elastic Cloud shows for the deployment, such as name:ZXhhbXBsZS5jb20kYWJj")
	_, encoded, _ := strings.Cut(id, ":")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", wrong
	}
	host, rest, _ := strings.Cut(string(text), "$")
	deployment, _, _ := strings.Cut(rest, "$")
	deployment, port, hasPort := strings.Cut(deployment, ":")
	if hasPort {
		host, _, _ = strings.Cut(host, ":")
		host += ":" + port
	}
	node := "https://" + deployment + "." + host
	if deployment == "" || host == "" || strings.ContainsAny(deployment+host, "/@") || wrongNode(node) != nil {
		return "", wrong
	}
	return node, nil
}

// isHost reports whether u has a host and no port or one from 1 to 65535.
func isHost(u *url.URL) bool {
	if u.Hostname() == "" || hasSpace(u.Hostname()) || strings.HasSuffix(u.Host, ":") {
		return false
	}
	n, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && n > 0
}
