package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
)

// TestSentinelThatAnswersGarbageIsSurvived: the library reads these answers in
// goroutines where nothing recovers.
func TestSentinelThatAnswersGarbageIsSurvived(t *testing.T) {
	const address = "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n"
	type answers struct{ first, later, message string }
	var cases []answers
	for _, garbage := range []string{
		"*2\r\n$1\r\nh\r\n$4\r\nport\r\n", "*2\r\n$0\r\n\r\n$1\r\n1\r\n", "*0\r\n", "*3\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\n1\r\n",
		"$1\r\nx\r\n", ":1\r\n", "*2\r\n*0\r\n*0\r\n", "*2\r\n$1\r\nh\r\n$6\r\n999999\r\n",
	} {
		cases = append(cases, answers{first: garbage})
	}
	for _, garbage := range []string{"*0\r\n", "*1\r\n$1\r\nx\r\n"} {
		cases = append(cases, answers{first: address, later: garbage})
	}
	for _, garbage := range []string{
		"*0\r\n", "*1\r\n$7\r\nmessage\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nx\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n$1\r\nx\r\n", "*3\r\n$8\r\npmessage\r\n$1\r\nx\r\n$1\r\nx\r\n",
		"*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$4\r\nmain\r\n", "*3\r\n*0\r\n*0\r\n*0\r\n",
	} {
		cases = append(cases, answers{first: address, later: address, message: garbage})
	}
	for _, tt := range cases {
		var asked atomic.Int32
		subscribed := make(chan struct{}, 100)
		o := options(func(_ context.Context, _, addr string) (net.Conn, error) {
			if addr != "a:1" {
				return nil, errors.New("no master there")
			}
			near, far := net.Pipe()
			go func() {
				for b := make([]byte, 4096); ; {
					n, err := far.Read(b)
					if err != nil {
						return
					}
					switch request := string(b[:n]); {
					case strings.Contains(request, "get-master-addr-by-name") && asked.Add(1) == 1:
						io.WriteString(far, tt.first)
					case strings.Contains(request, "get-master-addr-by-name"):
						io.WriteString(far, tt.later)
					case strings.Contains(request, "sentinels"):
						io.WriteString(far, "*0\r\n")
					case strings.Contains(request, "subscribe"):
						io.WriteString(far, "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"+tt.message)
						subscribed <- struct{}{}
					default:
						io.WriteString(far, "-ERR unknown command\r\n")
					}
				}
			}()
			return near, nil
		}, time.Second)
		o.Addrs, o.MasterName = []string{"a:1"}, "main"
		failover := o.Failover()
		failover.OnConnect = checkSentinel("main")
		c := redis.NewFailoverClient(failover)
		err := c.Ping(t.Context()).Err()
		check.That(t, err != nil && strings.Contains(err.Error(), errSentinel.Error()) == (tt.later == ""), "%q: %v", tt, err)
		if tt.message != "" {
			<-subscribed
		}
		c.Close()
	}
}
