//go:build linux

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestEtcdOfThree: with etcd in three workers the job goes on without the one that it began
// in, and ends in order when it is asked to.
func TestEtcdOfThree(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "3", "--etcd", "3", "--min", "2", "--steps", "100000",
		"--save", "run", "--save-every", "5")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	worker, url := j.worker(t, 0), first(t, j)
	until(t, j, "etcd is in three workers, which vote", func() bool {
		return votes(url) == 3
	})
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, j, "two go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 2
	})
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status, said := j.end(), j.stderr.String()
	if status != 0 || !strings.Contains(said, "[1] gomem: stopped after step ") ||
		!strings.Contains(said, "worker 0 of 3 has ended: signal: killed; 2 are left") {
		t.Errorf("status %d: %s", status, said)
	}
}

// votes is how many members of the etcd at a URL vote.
func votes(url string) (n int) {
	_ = ask(url, time.Second, func(_ context.Context, _ *clientv3.Client, members []*pb.Member) {
		for _, m := range members {
			if !m.IsLearner {
				n++
			}
		}
	})
	return n
}

// ask asks the etcd at a URL for its members, and does something with them.
func ask(url string, within time.Duration,
	do func(ctx context.Context, c *clientv3.Client, members []*pb.Member)) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	r, err := c.MemberList(ctx)
	if err == nil {
		do(ctx, c, r.Members)
	}
	return err
}

// TestWrongToken: of three workers with etcd in them one has another token than the job's: it says
// so in a line, and the others, who may be two, have begun and go on; one with the right token is
// let in after it.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	worker := func(rank, token string) *job {
		return start(t, dir, "--workers", "3", "--min", "2", "--etcd", "3", "--tls", "auto",
			"--master", at, "--rank", rank, "--token-file", token, "--steps", "100000",
			"--save", "run", "--save-every", "2")
	}
	first, second := worker("0", "token"), worker("1", "token")
	run := filepath.Join(dir, "run")
	saved(t, first, run)
	text, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	letter := &text[len(text)-8]
	*letter = map[bool]byte{true: 'B', false: 'A'}[*letter == 'A']
	if err := os.WriteFile(filepath.Join(dir, "wrong"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	third := worker("2", "wrong")
	status, said := third.end(), third.stderr.String()
	if status != 1 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said,
		"gomem: process 2 does not join: rank 0 at "+at+": refused the join token") {
		t.Errorf("status %d: %s", status, said)
	}
	workers := func(n int) func() bool {
		return func() bool {
			c, err := train.Inspect(run)
			return err == nil && c.Workers == n
		}
	}
	third = worker("2", "token")
	until(t, first, "three go on", workers(3))
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(strings.TrimSpace(string(text)), ".")[2][:30] // of both
	for _, j := range []*job{first, second, third} {
		if status := j.end(); status != 0 {
			t.Errorf("status %d: %s", status, j.stderr.String())
		}
		if said += j.stdout.String() + j.stderr.String(); strings.Contains(said, secret) {
			t.Error("the secret is said")
		}
	}
}

// until waits a minute for something.
func until(t *testing.T, j *job, what string, is func() bool) {
	t.Helper()
	for range 3000 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("not so: %s: %s", what, j.stderr.String())
}
