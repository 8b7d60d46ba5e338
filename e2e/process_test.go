package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A process is a child process that runs in a process group of its own, with
// its output in files, and ends with the test binary whatever happens to it.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer // some servers end when it closes
	stdout string    // file
	stderr string    // file
	done   chan struct{}
	err    error // of Wait, valid when done is closed
}

// startProcess starts cmd with its output in dir.
func startProcess(name, dir string, cmd *exec.Cmd) (*process, error) {
	p := &process{
		name:   name,
		cmd:    cmd,
		stdout: filepath.Join(dir, "stdout.log"),
		stderr: filepath.Join(dir, "stderr.log"),
		done:   make(chan struct{}),
	}
	stdout, err := os.Create(p.stdout)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := os.Create(p.stderr)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		// The parent-death signal comes when the thread that started the
		// child ends (golang.org/issue/27505), so the thread is kept.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// signal sends sig only to the process, not to its group.
func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v to %s: %v", sig, p.name, err)
	}
}

// wait waits until the process has ended and returns its exit status, -1
// where a signal ended it.
func (p *process) wait(limit time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(limit):
		return 0, fmt.Errorf("%s still runs after %v", p.name, limit)
	}
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the process to end, and kills its group when it does not within
// ten seconds or leaves something behind.
func (p *process) stop() error {
	if !p.ended() {
		p.stdin.Close()
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may be stopped
	}
	_, err := p.wait(10 * time.Second)
	killErr := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	if killErr != nil && !errors.Is(killErr, syscall.ESRCH) && err != nil {
		return errors.Join(err, killErr)
	}
	<-p.done
	return err
}

// tail returns the last lines of the process's output.
func (p *process) tail() string {
	return fmt.Sprintf("%s, pid %d\nstdout:\n%s\nstderr:\n%s",
		p.name, p.cmd.Process.Pid, fileTail(p.stdout), fileTail(p.stderr))
}

// logOnFailure prints the end of the process's output when t has failed.
func (p *process) logOnFailure(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(p.tail())
		}
	})
}

// fileTail returns about the last 30 lines of a file, at most 16 KiB.
func fileTail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	content = content[max(0, len(content)-16<<10):]
	lines := bytes.Split(content, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
}

// shared are the processes that outlive a test: the engines and the common
// Redis. stopShared ends them.
var shared struct {
	sync.Mutex
	processes []*process
}

func keepShared(p *process) {
	shared.Lock()
	defer shared.Unlock()
	shared.processes = append(shared.processes, p)
}

func stopShared() {
	shared.Lock()
	defer shared.Unlock()
	var wg sync.WaitGroup
	for _, p := range shared.processes {
		wg.Go(func() {
			if err := p.stop(); err != nil {
				fmt.Fprintln(os.Stderr, "e2e:", err)
			}
		})
	}
	wg.Wait()
}

// poll calls ready until it returns true or the limit is over, and returns
// which.
func poll(limit time.Duration, ready func() bool) bool {
	for deadline := time.Now().Add(limit); !ready(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond) // No event tells that another process is ready.
	}
	return true
}

// waitFor calls ready until it returns nil, and fails the test with its last
// error when the limit is over.
func waitFor(tb testing.TB, limit time.Duration, what string, ready func() error) {
	tb.Helper()
	var err error
	if !poll(limit, func() bool { err = ready(); return err == nil }) {
		tb.Fatalf("%s: not within %v: %v", what, limit, err)
	}
}

// await waits until a process that has started serves.
func (p *process) await(limit time.Duration, serves func() bool) error {
	if poll(limit, func() bool { return p.ended() || serves() }) && !p.ended() {
		return nil
	}
	return fmt.Errorf("does not serve:\n%s", p.tail())
}
