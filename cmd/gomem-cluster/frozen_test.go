//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestFrozen: a job with etcd in three workers goes on when one of them is stopped, and not killed,
// whether etcd began in it or it leads etcd: what it has of connections answers nobody.
func TestFrozen(t *testing.T) {
	longtest.Skip(t)
	var took []time.Duration
	for range longtest.Count(1, 10) {
		for _, leads := range []bool{false, true} {
			took = append(took, freeze(t, leads))
		}
	}
	slices.Sort(took)
	t.Logf("%d stops: the others go on after %v, %v at most", len(took), took[len(took)/2],
		took[len(took)-1])
}

// freeze stops worker 0 of a job of four, or another one that leads etcd, and is how long the
// others need to make a checkpoint without it.
func freeze(t *testing.T, leads bool) time.Duration {
	t.Helper()
	j, run, url := spread(t)
	rank := 0
	if leads {
		rank = leading(t, url)
	}
	pid, took := stop(t, j, run, rank)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	finish(t, j, rank)
	return took
}

// TestWakes: a worker that was stopped for longer than its lease, and wakes, finds that the others
// have gone on: it changes nothing of what they have saved, gives up what it had of etcd, and is
// one of them again, in the same process and the first of them if it was.
func TestWakes(t *testing.T) {
	longtest.Skip(t)
	for range longtest.Count(1, 10) {
		wake(t)
	}
}

func wake(t *testing.T) {
	t.Helper()
	j, run, url := spread(t)
	other := another(t, url)
	pid, _ := stop(t, j, run, 0)
	before := step(t, run)
	until(t, j, "further steps are saved", func() bool { return step(t, run) > before+20 })
	seen := watch(t, run)
	defer seen()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, j, "four go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 4
	})
	if j.worker(t, 0) != pid {
		t.Error("it is another process")
	}
	until(t, j, "etcd is in three workers again", func() bool { return votes(other) == 3 })
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 {
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
	at, c := seen(), step(t, run)
	if c < at {
		t.Errorf("step %d is the latest after step %d", c, at)
	}
	if want := "worker 0 is back, as one that has just come"; !strings.Contains(j.stderr.String(),
		want) {
		t.Errorf("nothing says %q: %s", want, j.stderr.String())
	}
	start(t, filepath.Dir(run), "--local", "2", "--steps", strconv.Itoa(c+1), "--resume", "run",
		"--json").weights(t)
}

// watch looks at the latest checkpoint, which is never set back, until the step that it has seen
// last is asked for.
func watch(t *testing.T, run string) (seen func() int) {
	over := make(chan struct{})
	last := make(chan int, 1)
	go func() {
		at := 0
		for {
			select {
			case <-over:
				last <- at
				return
			default:
			}
			now := step(t, run)
			if now < at {
				t.Errorf("latest is of step %d after it was of step %d", now, at)
			}
			at = now
			time.Sleep(time.Millisecond)
		}
	}()
	return sync.OnceValue(func() int {
		close(over)
		return <-last
	})
}

// step is that of the latest checkpoint, and one that says so is there.
func step(t *testing.T, run string) int {
	for range 100 {
		c, err := train.Inspect(run)
		if err == nil {
			return c.Step
		}
		time.Sleep(time.Millisecond) // it was just removed, being older than the newest two
	}
	t.Error("no latest checkpoint")
	return 0
}

// spread is a job of four whose etcd is in three, which vote, where it saves, and etcd's URL.
func spread(t *testing.T) (j *job, run, url string) {
	t.Helper()
	dir := t.TempDir()
	j = start(t, dir, "--local", "4", "--etcd", "3", "--min", "2", "--steps", "100000",
		"--save", "run", "--save-every", "1")
	run = filepath.Join(dir, "run")
	saved(t, j, run)
	url = first(t, j)
	until(t, j, "etcd is in three workers, which vote", func() bool { return votes(url) == 3 })
	return j, run, url
}

// stop stops a worker, and is its process and how long the others need to go on.
func stop(t *testing.T, j *job, run string, rank int) (pid int, took time.Duration) {
	t.Helper()
	pid = j.worker(t, rank)
	stopped := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, j, "three go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 3
	})
	took = time.Since(stopped)
	t.Logf("worker %d is stopped: the others go on after %v", rank, took)
	return pid, took
}

// finish waits until a worker has ended, ends the job, and is what it has said.
func finish(t *testing.T, j *job, rank int) {
	t.Helper()
	until(t, j, "who was stopped has ended", func() bool {
		return strings.Contains(j.stderr.String(), fmt.Sprintf("worker %d of 4 has ended", rank))
	})
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 {
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
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

// another is the URL of the etcd in another worker than the first.
func another(t *testing.T, url string) (other string) {
	t.Helper()
	err := ask(url, 10*time.Second, func(_ context.Context, _ *clientv3.Client,
		members []*pb.Member) {
		for _, m := range members {
			if m.Name != "rank0" {
				other = m.ClientURLs[0]
			}
		}
	})
	if err != nil || other == "" {
		t.Fatal("etcd is in one worker: ", err)
	}
	return other
}

// leading gives etcd's lead from worker 0 to another one, and is its rank.
func leading(t *testing.T, url string) (rank int) {
	t.Helper()
	err := ask(url, 10*time.Second, func(ctx context.Context, c *clientv3.Client,
		members []*pb.Member) {
		i := slices.IndexFunc(members, func(m *pb.Member) bool { return m.Name != "rank0" })
		if i < 0 {
			return
		}
		if _, err := fmt.Sscanf(members[i].Name, "rank%d", &rank); err != nil {
			t.Fatal(members[i].Name, err)
		}
		if _, err := c.MoveLeader(ctx, members[i].ID); err != nil {
			t.Log("worker 0 does not lead etcd: ", err)
		}
	})
	if err != nil || rank == 0 {
		t.Fatal("etcd is in one worker: ", err)
	}
	return rank
}
