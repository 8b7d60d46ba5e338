package store

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// garbledSentinel is a Sentinel whose answers are sound until later: then
// garbled has those by their command.
func garbledSentinel(t *testing.T, garbled map[string]string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				asked := 0
				for r := bufio.NewReader(c); ; {
					command, err := readCommand(r)
					if err != nil {
						return
					}
					answer := "-ERR unknown command\r\n"
					switch command[0] {
					case "sentinel":
						answer = "*0\r\n"
						if command[1] == "get-master-addr-by-name" {
							answer = "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n"
							if asked++; asked > 1 && garbled["address"] != "" {
								answer = garbled["address"]
							}
						}
					case "subscribe":
						answer = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n" + garbled["message"]
					}
					io.WriteString(c, answer)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func readCommand(r *bufio.Reader) (command []string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	for range n {
		if _, err = r.ReadString('\n'); err != nil {
			return nil, err
		}
		text, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		command = append(command, strings.TrimSpace(text))
	}
	return command, nil
}

// TestSentinelThatAnswersGarbageLaterIsSurvived: the library reads these answers
// in goroutines where nothing recovers.
func TestSentinelThatAnswersGarbageLaterIsSurvived(t *testing.T) {
	t.Parallel()
	for command, answers := range map[string][]string{
		"address": {"*0\r\n", "*1\r\n$1\r\nx\r\n"},
		"message": {
			"*0\r\n", "*1\r\n$7\r\nmessage\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nx\r\n",
			"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n$1\r\nx\r\n", "*3\r\n$8\r\npmessage\r\n$1\r\nx\r\n$1\r\nx\r\n",
			"*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$4\r\nmain\r\n", "*3\r\n*0\r\n*0\r\n*0\r\n",
		},
	} {
		for _, answer := range answers {
			c, err := newClient(Redis{URL: "redis+sentinel://" + garbledSentinel(t, map[string]string{command: answer}) + "/main"}, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Ping(t.Context()).Err(); err == nil {
				t.Errorf("%s %q: no error", command, answer)
			}
			time.Sleep(50 * time.Millisecond) // the subscription is read meanwhile
			c.Close()
		}
	}
}

func TestSoundAnswersOfASentinelAreTaken(t *testing.T) {
	for _, n := range []int{1, 3, 1 << 10} {
		var s replyScanner
		feed := func(stream string) (err error) {
			for len(stream) > 0 && err == nil {
				k := min(n, len(stream))
				err, stream = s.check([]byte(stream[:k])), stream[k:]
			}
			return err
		}
		s.sent(asksMaster)
		if err := feed("*2\r\n$1\r\nh\r\n$2\r\n10\r\n" + "*1\r\n*2\r\n$2\r\nip\r\n$1\r\nh\r\n" + "*0\r\n"); err != nil {
			t.Error(err)
		}
		s.sent(asksMaster)
		if err := feed("*-1\r\n"); err != nil {
			t.Error(err)
		}
		s.sent(subscribes)
		if err := feed("*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n+PONG\r\n" +
			">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$12\r\nmain a 1 b 2\r\n*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$0\r\n\r\n"); err != nil {
			t.Error(err)
		}
		if err := feed("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$8\r\nmain a 1\r\n"); !errors.Is(err, errReply) {
			t.Error(err)
		}
	}
}
