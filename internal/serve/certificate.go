package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
)

// certificateEvery is how often it is seen whether the files of a certificate
// have changed, at most: a handshake costs more than that.
const certificateEvery = 3 * time.Second

// A certificate is the one that clients are shown. It follows its files.
type certificate struct {
	log *slog.Logger

	mu      sync.Mutex
	files   configs.ServerTLS
	pair    *tls.Certificate
	seen    [2]string // times and sizes of the files, when they were read
	checked time.Time
}

func newCertificate(paths configs.ServerTLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{log: log, files: paths, seen: timesAndSizes(paths), checked: time.Now()}
	var err error
	c.pair, err = readPair(paths)
	return c, err
}

// replace makes c what next is.
func (c *certificate) replace(next *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log, c.files, c.pair, c.seen, c.checked = next.log, next.files, next.pair, next.seen, next.checked
}

// config is that of a listener which shows the certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get returns the pair that is in the files, or where they cannot be read, or
// do not fit together, the last one that was.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < certificateEvery {
		return c.pair, nil
	}
	c.checked = time.Now()
	before := c.seen
	if c.seen = timesAndSizes(c.files); c.seen == before {
		return c.pair, nil
	}
	pair, err := readPair(c.files)
	if err != nil { // once for each change, since the files are not read before the next one
		c.log.Warn("the certificate for clients has changed and cannot be used, the old one stays", "err", err)
		return c.pair, nil
	}
	c.pair = pair
	c.log.Info("the certificate for clients was renewed", "not_after", pair.Leaf.NotAfter)
	return pair, nil
}

func readPair(paths configs.ServerTLS) (*tls.Certificate, error) {
	pair, err := cli.LoadPair(paths.CertFile, paths.KeyFile)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("listen.tls: %w", err))
	}
	return pair, nil
}

// timesAndSizes tells whether one of the files has changed.
func timesAndSizes(paths configs.ServerTLS) (all [2]string) {
	for i, name := range []string{paths.CertFile, paths.KeyFile} {
		if info, err := os.Stat(name); err == nil {
			all[i] = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
		}
	}
	return all
}
