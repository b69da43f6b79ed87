//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestFrozen: a job with etcd in three workers goes on when one of them is stopped, and not killed,
// whether etcd began in it or it leads etcd: what it holds of connections answers nobody.
func TestFrozen(t *testing.T) {
	longtest.Skip(t)
	tries := 1
	if longtest.Enabled() {
		tries = 10
	}
	var took []time.Duration
	for range tries {
		for _, leads := range []bool{false, true} {
			took = append(took, freeze(t, leads))
		}
	}
	slices.Sort(took)
	t.Logf("%d stops: the others go on after %v, %v at most", len(took), took[len(took)/2],
		took[len(took)-1])
}

// freeze stops worker 0 of a job of four, or the one that leads etcd, and is how long the others
// need to make a checkpoint without it.
func freeze(t *testing.T, leads bool) time.Duration {
	t.Helper()
	dir := t.TempDir()
	j := start(t, dir, "--local", "4", "--etcd", "3", "--min", "2", "--steps", "100000",
		"--save", "run", "--save-every", "1")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	url := first(t, j)
	until(t, j, "etcd is in three workers, which vote", func() bool { return votes(url) == 3 })
	rank := 0
	if leads {
		rank = leading(t, url)
	}
	pid := j.worker(t, rank)
	stopped := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, j, "three go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 3
	})
	took := time.Since(stopped)
	t.Logf("worker %d is stopped: the others go on after %v", rank, took)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, j, "who was stopped has ended", func() bool {
		return strings.Contains(j.stderr.String(), fmt.Sprintf("worker %d of 4 has ended", rank))
	})
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 {
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
	return took
}

// first is the URL of the etcd in worker 0.
func first(t *testing.T, j *job) string {
	t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", j.worker(t, 0)))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(string(env), "\x00MASTER_PORT=")
	port, _, _ = strings.Cut(port, "\x00")
	return "http://127.0.0.1:" + port
}

// leading is the rank whose etcd leads.
func leading(t *testing.T, url string) (rank int) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	members, err := c.MemberList(ctx)
	status, failed := c.Status(ctx, url)
	if err = cmp.Or(err, failed); err != nil {
		t.Fatal(err)
	}
	for _, m := range members.Members {
		if m.ID == status.Leader {
			if _, err := fmt.Sscanf(m.Name, "rank%d", &rank); err != nil {
				t.Fatal(m.Name, err)
			}
		}
	}
	return rank
}
