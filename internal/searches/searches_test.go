package searches

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix/store"
)

// cmpAll lets cmp look into this package's types.
var cmpAll = cmp.AllowUnexported(dayCounts{})

func TestMain(m *testing.M) {
	logging.Disable() // the library reports every failed dial on stderr
	os.Exit(m.Run())
}

// at returns a clock that shows a date.
func at(date string) func() time.Time {
	return func() time.Time {
		now, _ := time.Parse(time.DateOnly, date)
		return now.Add(13 * time.Hour)
	}
}

func open(t *testing.T, o Options) *Collector {
	t.Helper()
	c := check.Got(Open(t.Context(), o))(t)
	t.Cleanup(c.Close)
	return c
}

func listOf(t *testing.T, c *Collector) []Search {
	t.Helper()
	return check.Got(c.List(t.Context(), "", 0))(t)
}

// oneOf is a text that found nothing, so many times on a day.
func oneOf(text, date string, none int64) Search {
	return Search{Index: "shop", Fields: "title", Text: text, Days: []Day{{Date: date, None: none}}}
}

func TestTextsThatNeedHelpMostOftenComeFirst(t *testing.T) {
	c := open(t, Options{Keep: 2, Now: at("2026-12-01")})
	c.Add("a", "title", "never kept", Enough)
	for range 3 {
		c.Add("a", "title", "Red  Car", None)
	}
	c.Add("a", "title", "red car ", Few)
	c.Add("a", "title", "red car", Enough)
	c.Add("b", "title,body", "bike", Related)
	c.Add("b", strings.Repeat("f", 300), "long fields", None)
	c.Add("b\tc", "title", "odd index", None)
	c.Add("b", "title", "jo@x.example", None)
	want := []Search{
		{Index: "a", Fields: "title", Text: "red car", Days: []Day{{Date: "2026-12-01", None: 3, Few: 1, Enough: 1}}},
		{Index: "b", Fields: "title,body", Text: "bike", Days: []Day{{Date: "2026-12-01", Related: 1}}},
	}
	check.Equal(t, want, listOf(t, c))
	check.Equal(t, Day{None: 3, Few: 1, Enough: 1}, want[0].Total())
	check.Equal(t, want[:1], check.Got(c.List(t.Context(), "", 1))(t))
	check.Equal(t, want[1:], check.Got(c.List(t.Context(), "b*", 1))(t))
	c.Drop()
	check.Equal(t, []Search{}, listOf(t, c))
}

func TestAFileKeepsSearchesForTheNextStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "searches.json")
	o := Options{Keep: 2, File: path, Now: at("2026-12-01")}
	first := check.Got(Open(t.Context(), o))(t)
	first.Add("shop", "title", "<b>bold</b>", None)
	first.Close()
	info := check.Got(os.Stat(path))(t)
	check.Equal(t, "-rw-------", info.Mode().String())
	check.Equal(t, 1, len(check.Got(os.ReadDir(filepath.Dir(path)))(t)), "files")

	o.Now = at("2026-12-02")
	second := check.Got(Open(t.Context(), o))(t)
	second.Add("shop", "title", "<b>bold</b>", Enough)
	want := []Search{{Index: "shop", Fields: "title", Text: "<b>bold</b>", Days: []Day{{Date: "2026-12-02", Enough: 1}, {Date: "2026-12-01", None: 1}}}}
	check.Equal(t, want, listOf(t, second))
	second.save(t.Context())
	check.Equal(t, want, check.Got(Read(t.Context(), o, "", 0))(t), "of a running akin")
	second.Close()
	check.Equal(t, want, check.Got(Read(t.Context(), o, "", 0))(t), "of a stopped one")
	o.Now = at("2026-12-03")
	check.Equal(t, []Search{}, check.Got(Read(t.Context(), o, "", 0))(t), "the day when it found nothing is over")
}

func TestAFileOfAnotherVersionIsLeftAlone(t *testing.T) {
	for text, name := range map[string]string{
		`{"version":2,"searches":[{"text":"a"}]}`: "its version is 2", `{"version":2,"searches":{}}`: "its version is 2", `{"searches":[]}`: "its version is 0",
		`{"version":1,"sear`: "unexpected EOF", `{"version":1,"searches":{}}`: "{ where [ is expected", `{"version":1,"clicks":[]}`: "clicks",
	} {
		path := filepath.Join(t.TempDir(), "searches.json")
		check.OK(t, os.WriteFile(path, []byte(text), 0o600))
		c := check.Got(Open(t.Context(), Options{Keep: 1, File: path}))(t)
		c.Add("shop", "title", "car", None)
		check.Equal(t, 1, len(listOf(t, c)), name)
		c.Close()
		check.Equal(t, text, string(check.Got(os.ReadFile(path))(t)), name)
		check.That(t, c.Failures() > 0, "%s: no failure is counted", name)
		_, err := Read(t.Context(), Options{Keep: 1, File: path}, "", 0)
		check.That(t, err != nil && strings.Contains(err.Error(), path) && strings.Contains(err.Error(), name), "%s: %v", text, err)
	}
}

func TestAFolderThatIsAwayIsCounted(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "away")
	c := open(t, Options{Keep: 1, File: filepath.Join(folder, "searches.json")})
	c.Add("shop", "title", "car", None)
	c.save(t.Context())
	check.That(t, c.Failures() > 0, "no failure is counted")
	check.OK(t, os.Mkdir(folder, 0o700))
	c.save(t.Context())
	check.Equal(t, 1, len(check.Got(Read(t.Context(), c.o, "", 0))(t)))
}

// JSON of a file is that of the admin port.
func TestSearchesAsJSON(t *testing.T) {
	text := check.Got(json.Marshal(oneOf("car", "2026-12-01", 2)))(t)
	check.Equal(t, `{"index":"shop","fields":"title","text":"car","days":[{"date":"2026-12-01","none":2,"few":0,"related":0,"enough":0}]}`, string(text))
}

// A server is a redis-server of the test.
type server struct {
	binary, socket string
	cmd            *exec.Cmd
}

func startRedis(t *testing.T) *server {
	t.Helper()
	s := &server{binary: check.RedisServer(t), socket: filepath.Join(t.TempDir(), "s")}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.binary, "--port", "0", "--unixsocket", s.socket, "--save", "", "--dir", filepath.Dir(s.socket))
	check.OK(t, s.cmd.Start())
	for range 1000 {
		if conn, err := net.Dial("unix", s.socket); err == nil { // the file is there before anybody listens
			check.OK(t, conn.Close())
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("redis-server does not listen")
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.Remove(s.socket)
}

func (s *server) options() Options {
	return Options{Keep: 30, Redis: store.Redis{URL: "unix://" + s.socket}, Now: at("2026-12-01")}
}

func TestAkinsShareTheirCountsInRedis(t *testing.T) {
	s := startRedis(t)
	a := open(t, s.options())
	for range 3 {
		a.Add("shop", "title", "car", None)
	}
	a.save(t.Context())
	b := open(t, s.options())
	b.save(t.Context()) // it learns what is kept
	b.Add("shop", "title", "Car", Enough)
	b.Add("shop", "title", "never kept", Enough)
	b.Add("shop", "title", "bike", Few)
	b.save(t.Context())
	b.Add("shop", "title", "bike", Few) // not stored yet
	want := []Search{
		{Index: "shop", Fields: "title", Text: "car", Days: []Day{{Date: "2026-12-01", None: 3, Enough: 1}}},
		{Index: "shop", Fields: "title", Text: "bike", Days: []Day{{Date: "2026-12-01", Few: 2}}},
	}
	check.Equal(t, want, listOf(t, b))
	b.Close()
	check.Equal(t, want, listOf(t, a))
	check.Equal(t, want[:1], check.Got(Read(t.Context(), s.options(), "shop", 1))(t), "of the command line")
	day := redisPrefix + "2026-12-01"
	life := check.Got(a.redis.client.TTL(t.Context(), day).Result())(t)
	check.That(t, life > 30*hoursOfDay && life <= 31*hoursOfDay, "a day expires after %v", life)
}

func TestWithoutRedisSearchesAreCountedInMemory(t *testing.T) {
	s := startRedis(t)
	c := open(t, s.options())
	s.stop()
	c.Add("shop", "title", "car", None)
	c.save(t.Context())
	c.Add("shop", "title", "car", Few)
	c.save(t.Context())
	check.That(t, c.Failures() >= 2, "%d failures are counted", c.Failures())
	_, err := c.List(t.Context(), "", 0)
	check.That(t, err != nil, "a list without Redis")
	s.start(t)
	c.save(t.Context())
	check.Equal(t, []Search{{Index: "shop", Fields: "title", Text: "car", Days: []Day{{Date: "2026-12-01", None: 1, Few: 1}}}}, listOf(t, c))
}

func TestWhatOtherVersionsKeepInRedisIsIgnored(t *testing.T) {
	s := startRedis(t)
	c := open(t, s.options())
	c.Add("shop", "title", "car", None)
	c.save(t.Context())
	db, ctx := c.redis.client, t.Context()
	check.OK(t, db.ZIncrBy(ctx, "akin:searches:2:2026-12-01", 9, "none\tshop\ttitle\tbike").Err())
	for _, member := range []string{"odd", "clicked\tshop\ttitle\tbike", "none\tshop\ttitle\tbike\tmore"} {
		check.OK(t, db.ZIncrBy(ctx, redisPrefix+"2026-12-01", 9, member).Err())
	}
	check.Equal(t, []Search{oneOf("car", "2026-12-01", 1)}, listOf(t, c))
}

func TestADayInRedisKeepsTheMostFrequent(t *testing.T) {
	s := startRedis(t)
	c := open(t, s.options())
	for i := range maxMembers + 1000 {
		text := "word " + strings.Repeat("a", i%100) + " " + strings.Repeat("b", i/100)
		c.Add("shop", "title", text, None)
		if i%2 == 0 {
			c.Add("shop", "title", text, None)
		}
	}
	c.save(t.Context())
	list := listOf(t, c)
	check.Equal(t, maxMembers, len(list))
	check.Equal(t, 2, list[(maxMembers+1000)/2-1].Total().None, "of the more frequent half")
}

// A day is read after the other: all of Redis may be several times as large.
func TestReadingRedisTakesNoMoreMemoryThanIsSaid(t *testing.T) {
	s := startRedis(t)
	c := open(t, s.options())
	for day := range c.o.Keep {
		_, err := c.redis.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range maxMembers {
				member := fmt.Sprintf("none\tshop\ttitle\t%0*d", maxBytes, day*maxMembers+i)
				p.ZIncrBy(t.Context(), redisPrefix+dateOf(c.o.today()-day), float64(i), member)
			}
			return nil
		})
		check.OK(t, err)
	}
	runtime.GC()
	before, all, most, n := heapInUse(), newSketch(maxPlaces), 0, 0
	check.OK(t, c.redis.read(t.Context(), func(k key, day int, found Found, weight int64) {
		all.add(k, day, found, weight)
		if n++; n%maxMembers == 1 {
			runtime.GC()
			most = max(most, int(heapInUse()-before))
		}
	}))
	check.Equal(t, maxPlaces, len(all.at))
	check.That(t, most > 1<<22 && most < mostMemory, "%d MB to read %d", most>>20, n)
	t.Logf("%d MB to read %d", most>>20, n)
}

func TestStoringGoesOnInTheBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "searches.json")
	synctest.Test(t, func(t *testing.T) {
		c := check.Got(Open(t.Context(), Options{Keep: 1, File: path}))(t)
		defer c.Close()
		c.Add("shop", "title", "car", None)
		check.Elapse(fileEvery)
		check.Equal(t, 1, len(check.Got(Read(t.Context(), c.o, "", 0))(t)))
	})
}
