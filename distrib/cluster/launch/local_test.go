//go:build unix

package launch_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/cluster/launch"
)

// TestLocal: every rank runs, its lines are whole and have its prefix, and the secret is
// in a file that nobody else reads.
func TestLocal(t *testing.T) {
	var out, errs bytes.Buffer
	err := launch.Local(t.Context(), launch.Job{N: 3, Token: []byte("hush\n"), Stdout: &out,
		Stderr: &errs, Env: []string{roleVar + "=speak"},
		Prefix: func(rank int) string { return fmt.Sprintf("<%d>", rank) }})
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^<(\d)>line \d+ of (\d)$`)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 300 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if m := form.FindStringSubmatch(line); m == nil || m[1] != m[2] {
			t.Fatalf("%q", line)
		}
	}
	for rank := range 3 {
		for _, want := range []string{fmt.Sprintf("<%d>the token is hush\n", rank),
			fmt.Sprintf("<%d><nil>\n", rank)} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("no %q in %q", want, errs.String())
			}
		}
	}
}

// TestLocalLeast: a job that goes on with some survives those that fail, as long as enough
// are left, and as long as the first one is if all depend on it.
func TestLocalLeast(t *testing.T) {
	for _, c := range []struct {
		least int
		role  string
		well  bool
		said  []string
	}{
		{3, "some fail", true, []string{"worker 2 of 5 has ended: exit status 2", "worker 3 of 5"}},
		{4, "some fail", false, []string{" of 5 has ended: exit status "}},
		{0, "some fail", false, nil},
		{1, "first fails", false, nil},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		failed := make(chan bool, 5)
		go func() { // three hold until those have failed that are enough, or they are ended
			var held []net.Conn
			for range 3 {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				held = append(held, conn)
			}
			for range c.said {
				<-failed
			}
			if !c.well { // who ended well now would have the job end so
				<-t.Context().Done()
			}
			for _, conn := range held {
				conn.Close()
			}
		}()
		var said []string
		err = launch.Local(t.Context(), launch.Job{N: 5, Least: c.least, Vital: true,
			Env:    []string{roleVar + "=" + c.role, holdVar + "=" + l.Addr().String()},
			Stdout: io.Discard, Patience: time.Millisecond,
			Log: func(line string) { said = append(said, line); failed <- true }})
		exit, _ := errors.AsType[*launch.ExitError](err)
		if c.well != (err == nil) || !c.well && (exit == nil || c.role == "first fails" &&
			exit.Rank != 0) {
			t.Errorf("%s, %d: %v", c.role, c.least, err)
		}
		slices.Sort(said)
		for i, want := range c.said {
			if i >= len(said) || !strings.Contains(said[i], want) {
				t.Errorf("%s, %d: %q, want %q", c.role, c.least, said, want)
			}
		}
	}
}

// TestLocalOver: where processes come and go, who has not ended a while after the first one
// has, such as one that is stopped, is ended, and the job has ended well.
func TestLocalOver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // all are there when the first one goes on
		for range 3 {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	began := time.Now()
	err = launch.Local(t.Context(), launch.Job{N: 3, Least: 1, Vital: true,
		Env:    []string{roleVar + "=first ends", holdVar + "=" + l.Addr().String()},
		Stdout: io.Discard, Patience: time.Millisecond, Grace: time.Millisecond})
	if err != nil || time.Since(began) > 50*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestLocalFails: the others end, and the first to fail is named.
func TestLocalFails(t *testing.T) {
	err := launch.Local(t.Context(), launch.Job{N: 4, Env: []string{roleVar + "=third fails"},
		Stdout: io.Discard, Patience: time.Millisecond})
	var exit *launch.ExitError
	if !errors.As(err, &exit) || exit.Rank != 2 || exit.Code() != 3 {
		t.Fatal(err)
	}
	if err.Error() != "worker 2 failed first: exit status 3" {
		t.Error(err)
	}
}

// TestLocalWarns: the others are told at once that one has failed.
func TestLocalWarns(t *testing.T) {
	var out bytes.Buffer
	err := launch.Local(t.Context(), launch.Job{N: 3, Env: []string{roleVar + "=warned"},
		Stdout: &out, Patience: time.Hour})
	exit, _ := errors.AsType[*launch.ExitError](err)
	if exit == nil || exit.Rank != 1 || !strings.Contains(out.String(), "[0] is told\n") ||
		!strings.Contains(out.String(), "[2] is told\n") {
		t.Fatal(err, out.String())
	}
}

// TestLocalDeaf: who does not heed SIGTERM is killed.
func TestLocalDeaf(t *testing.T) {
	l := listen(t)
	go func() {
		l.come(t, 2)
		for _, conn := range l.conns {
			conn.Close() // rank 0 waits for this
		}
	}()
	err := launch.Local(t.Context(), launch.Job{N: 2, Patience: time.Millisecond,
		Grace: time.Millisecond, Env: []string{roleVar + "=deaf", holdVar + "=" + l.address}})
	var exit *launch.ExitError
	if !errors.As(err, &exit) || exit.Rank != 0 || exit.Code() != 4 {
		t.Fatal(err)
	}
}

// TestLocalCancelled: all end with the context.
func TestLocalCancelled(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		l.come(t, 2)
		cancel()
	}()
	err := launch.Local(ctx, launch.Job{N: 2,
		Env: []string{roleVar + "=hold", holdVar + "=" + l.address}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestLocalSignals: a signal reaches every process.
func TestLocalSignals(t *testing.T) {
	l := listen(t)
	signals := make(chan os.Signal, 1)
	go func() {
		l.come(t, 2)
		signals <- os.Interrupt
	}()
	var out bytes.Buffer
	err := launch.Local(t.Context(), launch.Job{N: 2, Signals: signals, Stdout: &out,
		Env: []string{roleVar + "=heed", holdVar + "=" + l.address}})
	if err != nil || !strings.Contains(out.String(), "[0] interrupt\n") ||
		!strings.Contains(out.String(), "[1] interrupt\n") {
		t.Fatal(err, out.String())
	}
}

// TestSignalLost: where processes may go one by one, a signal to one that fails instead of ending
// the job goes to the next.
func TestSignalLost(t *testing.T) {
	l := listen(t)
	signals := make(chan os.Signal, 1)
	go func() {
		l.come(t, 2)
		signals <- os.Interrupt
	}()
	err := launch.Local(t.Context(), launch.Job{N: 2, Least: 1, Signals: signals,
		Stdout: io.Discard,
		Env:    []string{roleVar + "=fail on a signal", holdVar + "=" + l.address}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOrphans: when the process that started them is killed, none is left, whether the
// kernel ends them or their standard input does.
func TestOrphans(t *testing.T) {
	for _, role := range []string{"parent of hold", "parent of orphan"} {
		if role == "parent of hold" && !diesWithParent {
			continue
		}
		l := listen(t)
		parent := exec.Command(os.Args[0])
		parent.Env = append(os.Environ(), roleVar+"="+role, holdVar+"="+l.address)
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		l.come(t, 2)
		_ = parent.Process.Kill()
		_ = parent.Wait()
		l.gone(t)
	}
}

// TestLocalRefuses: nothing starts that cannot.
func TestLocalRefuses(t *testing.T) {
	if err := launch.Local(t.Context(), launch.Job{}); err == nil {
		t.Error("a job of nobody")
	}
	if failed, gone := launch.Heed(environment("", "", ""), nil); failed != nil || gone != nil {
		t.Error("an orphan without a parent")
	}
}

// TestLongLines: a line without an end is written in pieces, not kept.
func TestLongLines(t *testing.T) {
	var out bytes.Buffer
	w := launch.Lines(&out, "> ")
	for range 3 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 50<<10)); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(w)
	s := bufio.NewScanner(&out)
	s.Buffer(nil, 1<<20)
	total := 0
	for s.Scan() {
		line, ok := strings.CutPrefix(s.Text(), "> ")
		if !ok || len(line) > 64<<10 {
			t.Errorf("%.10q, %d bytes", s.Text(), len(line))
		}
		total += len(line)
	}
	if total != 150<<10 {
		t.Error(total)
	}
}

// holders is where processes say that they live, by a connection.
type holders struct {
	address string
	l       net.Listener
	conns   []net.Conn
}

func listen(t *testing.T) *holders {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &holders{address: l.Addr().String(), l: l}
}

// come waits for n processes.
func (h *holders) come(t *testing.T, n int) {
	for range n {
		_ = h.l.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second))
		conn, err := h.l.Accept()
		if err == nil {
			_, err = bufio.NewReader(conn).ReadString('\n')
		}
		if err != nil {
			t.Error(err)
			return
		}
		h.conns = append(h.conns, conn)
	}
}

// gone waits until the processes that came are no more.
func (h *holders) gone(t *testing.T) {
	for _, conn := range h.conns {
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err := conn.Read(make([]byte, 1))
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Error("a process is left")
		}
	}
}
