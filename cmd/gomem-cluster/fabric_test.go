//go:build linux

package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// schedulers are the workers that have begun to schedule, in order, by their log.
func (j *job) schedulers() (ranks []int) {
	for line := range strings.Lines(j.stderr.String()) {
		if m := schedules.FindStringSubmatch(line); m != nil {
			rank, _ := strconv.Atoi(m[1])
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

var schedules = regexp.MustCompile(`msg=schedules.* rank=(\d+)`)

var takesOver = regexp.MustCompile(`msg="takes over".* of=(\d+)`)

// TestOwnerKilled: when a worker is killed that serves a part of a deep network, one of the others
// gives all what its replica has of that part, once, and they go on.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := launch(t, dir, "train", "--model", "resnet", "--size", "s512", "--local", "4", "--etcd",
		"3", "--min", "2", "--sync", "fabric", "--delay", "40", "--aggregators", "2",
		"--replicas", "1", "--divergence", "6", "--steps", "100000", "--save", "run",
		"--save-every", "5", "--eval-batches", "1", "--log-level", "info")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	url := first(t, j)
	until(t, j, "etcd is in three workers, which vote", func() bool { return votes(url) == 3 })
	if err := syscall.Kill(j.worker(t, 2), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, j, "three go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 3
	})
	all := takesOver.FindAllStringSubmatch(j.stderr.String(), -1)
	if len(all) != 1 || all[0][1] != "2" {
		t.Errorf("rows are taken over of %v", all)
	}
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 || strings.Contains(j.stderr.String(), "cannot be used") ||
		!strings.Contains(j.stdout.String(), "replicas lacked") {
		t.Errorf("status %d: %s%s", status, j.stdout.String(), j.stderr.String())
	}
}

// TestSchedulerKilled: a deep network is trained by updates that one of the workers schedules; when
// that one is killed, the others go on, and another one schedules.
func TestSchedulerKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := launch(t, dir, "train", "--model", "resnet", "--size", "s512", "--local", "4", "--etcd",
		"3", "--min", "2", "--sync", "fabric", "--delay", "40", "--aggregators", "2", "--steps",
		"100000", "--save", "run", "--save-every", "5", "--eval-batches", "1", "--log-level",
		"info")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	url := first(t, j)
	until(t, j, "etcd is in three workers, which vote", func() bool { return votes(url) == 3 })
	until(t, j, "somebody schedules", func() bool { return len(j.schedulers()) > 0 })
	before := j.schedulers()
	if err := syscall.Kill(j.worker(t, before[len(before)-1]), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, j, "three go on, and one of them schedules", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 3 && len(j.schedulers()) > len(before)
	})
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 {
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
}
