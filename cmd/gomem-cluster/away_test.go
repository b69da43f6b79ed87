//go:build linux

package main

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// beside runs an etcd at an address, with data of a directory.
func beside(t *testing.T, dir, at string) *embed.Etcd {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = dir
	here := url.URL{Scheme: "http", Host: at}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{here}, []url.URL{here}
	cfg.ListenPeerUrls = nil
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	return e
}

// TestAway: a job goes on, with all its workers, while the etcd beside it is away for longer than a
// lease, and after it is back.
func TestAway(t *testing.T) {
	longtest.Skip(t)
	for range longtest.Count(1, 5) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().String()
		l.Close()
		data, dir := t.TempDir(), t.TempDir()
		e := beside(t, data, at)
		j := start(t, dir, "--local", "3", "--etcd", "http://"+at, "--job", "away",
			"--lease", "10s", "--min", "2", "--steps", "100000", "--save", "run",
			"--save-every", "5")
		run := filepath.Join(dir, "run")
		saved(t, j, run)
		gone := time.Now()
		e.Server.HardStop() // or it would wait for its clients
		e.Close()
		time.Sleep(time.Until(gone.Add(12 * time.Second)))
		e = beside(t, data, at)
		t.Logf("etcd was away for %v", time.Since(gone))
		before := step(t, run)
		until(t, j, "three go on", func() bool { return step(t, run) > before+20 })
		if c, err := train.Inspect(run); err != nil || c.Workers != 3 || c.Epoch != 1 {
			t.Errorf("%d workers in epoch %d, %v", c.Workers, c.Epoch, err)
		}
		if err := j.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if status, said := j.end(), j.stderr.String(); status != 0 ||
			strings.Contains(said, "gone") {
			t.Errorf("status %d: %s", status, said)
		}
		e.Close()
	}
}

// way is a way to an address that can be closed for a while.
type way struct {
	net.Listener
	mu     sync.Mutex
	closed bool
	open   []net.Conn
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{Listener: l}
	t.Cleanup(func() { w.cut(); w.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				continue
			}
			if !w.hold(a, b) {
				a.Close()
				b.Close()
				continue
			}
			go func() { _, _ = io.Copy(a, b); a.Close() }()
			go func() { _, _ = io.Copy(b, a); b.Close() }()
		}
	}()
	return w
}

func (w *way) hold(all ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.open = append(w.open, all...)
	}
	return !w.closed
}

// cut closes it.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, c := range w.open {
		c.Close()
	}
}

// restore opens it again.
func (w *way) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = false
}

// TestCutOff: a worker that alone cannot reach the etcd beside the job, while all workers reach
// each other, is replaced, makes no step with the others after that, and saves nothing. When it
// reaches etcd again, it is one of them again.
func TestCutOff(t *testing.T) {
	longtest.Skip(t)
	at, _ := external(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	master := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	far := newWay(t, strings.TrimPrefix(at, "http://"))
	var all []*job
	for rank := range 3 {
		etcd := at
		if rank == 0 {
			etcd = "http://" + far.Addr().String()
		}
		all = append(all, start(t, dir, "--workers", "3", "--rank", strconv.Itoa(rank), "--master",
			master, "--etcd", etcd, "--job", "cut", "--min", "2", "--steps", "100000",
			"--save", "run", "--save-every", "2"))
	}
	run := filepath.Join(dir, "run")
	saved(t, all[0], run)
	far.cut()
	at1 := 0
	until(t, all[1], "two go on", func() bool {
		now := step(t, run)
		if now < at1 {
			t.Errorf("latest is of step %d after it was of step %d", now, at1)
		}
		at1 = now
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 2
	})
	before := step(t, run)
	until(t, all[1], "they go on", func() bool { return step(t, run) > before+20 })
	until(t, all[0], "who was cut off finds out", func() bool {
		return strings.Contains(all[0].stderr.String(), "worker 0 was cut off, and is out")
	})
	far.restore()
	until(t, all[0], "three go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 3
	})
	before = step(t, run)
	until(t, all[0], "with further steps", func() bool { return step(t, run) > before+5 })
	if err := all[1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, all[0], "two go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 2
	})
	if err := all[0].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		if status := j.end(); status != 0 {
			t.Errorf("status %d: %s", status, j.stderr.String())
		}
	}
}
