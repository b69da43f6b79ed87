//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// asCommand is the variable that makes this program gomem-cluster itself.
const asCommand = "GOMEM_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(longtest.RunWaiting(m))
}

// job is gomem-cluster in processes of its own.
type job struct {
	*exec.Cmd
	stdout, stderr output
}

// output is what a process has written, which may be read meanwhile.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write adds to it.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

// String is all of it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// start starts training on a small corpus in an empty directory.
func start(t *testing.T, dir string, args ...string) *job {
	t.Helper()
	var pairs strings.Builder
	for i := range 600 {
		fmt.Fprintf(&pairs, "the number %d\tnumber %d is %d\n", i, i, i*i)
	}
	if err := os.WriteFile(filepath.Join(dir, "pairs.tsv"), []byte(pairs.String()),
		0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, dir, append([]string{"train", "--model", "transformer", "--size", "s512",
		"--data", "tsv:pairs.tsv", "--eval-batches", "1", "--bleu", "0"}, args...)...)
}

// launch starts a command line in a directory.
func launch(t *testing.T, dir string, args ...string) *job {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Cmd: exec.Command(self, args...)}
	j.Dir = dir
	j.Env = append(os.Environ(), asCommand+"=1", "XDG_CACHE_HOME="+dir)
	j.Stdout, j.Stderr = &j.stdout, &j.stderr
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Process.Kill() })
	return j
}

// end waits for the end and is the exit status.
func (j *job) end() int {
	_ = j.Wait()
	return j.ProcessState.ExitCode()
}

// weights is the hash of what a run that succeeds has learnt, whose device took what was
// planned.
func (j *job) weights(t *testing.T) string {
	t.Helper()
	if status := j.end(); status != 0 {
		t.Fatalf("%v: status %d: %s", j.Args, status, j.stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(j.stdout.String()), "\n")
	var s train.Summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || s.WeightsSHA256 == "" {
		t.Fatalf("%v: %s", err, lines[len(lines)-1])
	}
	if s.ActualDevicePeak != s.PredictedDevicePeak || s.ActualHostPeak != s.PredictedHostPeak {
		t.Errorf("%v: %+v", j.Args, s)
	}
	return s.WeightsSHA256
}

// worker is the process of a rank, once there is one.
func (j *job) worker(t *testing.T, rank int) int {
	t.Helper()
	for range 500 {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", j.Process.Pid))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, word := range strings.Fields(string(text)) {
				env, _ := os.ReadFile("/proc/" + word + "/environ")
				if bytes.Contains(env, fmt.Appendf(nil, "\x00RANK=%d\x00", rank)) {
					pid, _ := strconv.Atoi(word)
					return pid
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no worker %d: %s", rank, j.stderr.String())
	return 0
}

// saved waits for the first checkpoint of a directory.
func saved(t *testing.T, j *job, dir string) {
	t.Helper()
	for range 3000 {
		if _, err := train.Inspect(dir); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("nothing is saved: %s", j.stderr.String())
}

// TestLocal: processes that exchange gradients have one result, run after run, encrypted
// or not, whatever their budgets; and one process is a plain run.
func TestLocal(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	run := func(more ...string) string {
		return start(t, t.TempDir(), append(more, "--steps", "4", "--json")...).weights(t)
	}
	ring := run("--local", "3")
	if again := run("--local", "3", "--sync", "ring", "--tls", "auto", "--partition", "20",
		"--device-memory", "1MiB"); again != ring {
		t.Error("a ring has other weights the second time")
	}
	for _, scheme := range []string{"ring", "bsp"} {
		first := run("--local", "4", "--sync", scheme)
		if again := run("--local", "4", "--sync", scheme); again != first {
			t.Errorf("%s of four has other weights the second time", scheme)
		}
	}
	if run("--local", "1") != run() || run() == ring {
		t.Error("one worker is not a plain run, or three are")
	}
}

// TestWorkerKilled: when a worker is killed, the others name it and end in seconds, and
// there is a checkpoint to go on from, which is said; as many workers, or others, do.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "3", "--steps", "100000", "--save", "run", "--save-every", "1")
	saved(t, j, filepath.Join(dir, "run"))
	if err := syscall.Kill(j.worker(t, 1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	status := j.end()
	took := time.Since(began)
	said := j.stderr.String()
	for _, want := range []string{"worker 1 is gone", "worker 1 failed first: signal: killed",
		"continue with: gomem-cluster train", "--local 3", "--resume run"} {
		if status != 1 || !strings.Contains(said, want) {
			t.Errorf("status %d, no %q in %s", status, want, said)
		}
	}
	t.Logf("all had ended after %v", took)
	c, err := train.Inspect(filepath.Join(dir, "run"))
	if err != nil || c.Workers != 3 {
		t.Fatal(c, err)
	}
	start(t, dir, "--local", "2", "--steps", fmt.Sprint(c.Step+2), "--resume", "run",
		"--json").weights(t)
}

// TestLeftBehind: a worker that is killed leaves nothing of its etcd behind when the job has
// ended, and what all leave that are killed the next job removes.
func TestLeftBehind(t *testing.T) {
	longtest.Skip(t)
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	left := func() (n int) {
		for _, name := range []string{"gomem-job-*", "gomem-etcd-*", "*/gomem-etcd-*"} {
			found, err := filepath.Glob(filepath.Join(temp, name))
			if n += len(found); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	long := []string{"--local", "2", "--steps", "100000", "--save", "run", "--save-every", "1"}
	j := start(t, dir, long...)
	saved(t, j, filepath.Join(dir, "run"))
	if n := left(); n != 2 {
		t.Errorf("%d directories of a job", n)
	}
	if err := syscall.Kill(j.worker(t, 0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 1 || left() != 0 {
		t.Errorf("status %d: %d directories are left", status, left())
	}
	j = start(t, dir, append(long, "--resume", "run")...)
	for began := time.Now(); left() < 2 && time.Since(began) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	if err := j.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if j.end(); left() != 2 {
		t.Errorf("%d directories are left by who is killed", left())
	}
	if start(t, dir, "--local", "2", "--steps", "1").end(); left() != 0 {
		t.Errorf("%d directories are left by the next job", left())
	}
}

// TestLocalElastic: with --min the others go on from the same step, in the same processes,
// when one is killed, one is stopped for good, and one is to end; too few save and end.
func TestLocalElastic(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "5", "--min", "2", "--steps", "100000", "--save", "run",
		"--save-every", "5", "--json")
	saved(t, j, filepath.Join(dir, "run"))
	workers := func() int {
		c, err := train.Inspect(filepath.Join(dir, "run"))
		if err != nil {
			t.Fatal(err)
		}
		return max(c.Workers, 1)
	}
	for began := time.Now(); workers() != 5 && time.Since(began) < time.Minute; { // one may be late
		time.Sleep(50 * time.Millisecond)
	}
	for i, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM} {
		pid := j.worker(t, i+1)
		began := time.Now()
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
		for workers() != 4-i && time.Since(began) < time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		t.Logf("%v: %d go on, %v later", s, workers(), time.Since(began).Round(time.Millisecond))
	}
	if n := workers(); n != 2 {
		_ = j.Process.Kill()
		t.Fatalf("%d workers go on: %s", n, j.stderr.String())
	}
	if err := syscall.Kill(j.worker(t, 4), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	status, said := j.end(), j.stderr.String()
	for _, want := range []string{
		"worker 1 of 5 has ended: signal: killed; 4 are left, 2 are enough",
		"[3] gomem: worker 3 leaves after step ", "1 worker is left, --min is 2; saved at step",
		"continue with: gomem-cluster train", "--resume run"} {
		if status != 1 || !strings.Contains(said, want) {
			t.Errorf("status %d, no %q in %s", status, want, said)
		}
	}
	last, views := 0, []string(nil)
	for line := range strings.Lines(j.stdout.String()) {
		var e struct {
			Type, Text string
			Step       int
			Workers    any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err, line)
		}
		switch e.Type {
		case "step":
			if e.Step != last+1 {
				t.Errorf("step %d comes after step %d", e.Step, last)
			}
			last = e.Step
		case "view":
			text, rest, ahead := strings.Cut(e.Text, " from step ")
			if ahead { // the group broke before worker 0 had heard of the last step from all
				last++
				if rest != fmt.Sprintf("%d; 1 could not be shown", last) {
					t.Errorf("after step %d: %s", last-1, e.Text)
				}
			}
			views = append(views, fmt.Sprintf("%v: %s", e.Workers, text))
		}
	}
	want := "4: worker 1 is gone; 4 go on, 3: worker 2 is gone; 3 go on, " +
		"2: worker 3 is gone; 2 go on, 1: worker 4 is gone; 1 goes on"
	if have := strings.Join(views, ", "); !strings.HasSuffix(have, want) {
		t.Errorf("%s, want %s", have, want)
	}
	c, err := train.Inspect(filepath.Join(dir, "run"))
	if err != nil || c.Step < last {
		t.Errorf("step %d of %d is saved, %v", c.Step, last, err)
	}
}

// TestComesLate: a process that is started later takes part in the run that goes on.
func TestComesLate(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	worker := func(rank string) *job {
		return start(t, dir, "--workers", "3", "--min", "2", "--master", at, "--rank", rank,
			"--steps", "100000", "--save", "run", "--save-every", "2")
	}
	first, second := worker("0"), worker("1")
	saved(t, first, filepath.Join(dir, "run"))
	third := worker("2")
	for range 1500 {
		if c, err := train.Inspect(filepath.Join(dir, "run")); err == nil && c.Workers == 3 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*job{first, second, third} {
		if status := j.end(); status != 0 {
			t.Errorf("status %d: %s", status, j.stderr.String())
		}
	}
	if said := first.stdout.String(); !strings.Contains(said, "worker 2 is here; 3 go on\n") {
		t.Error(said)
	}
}

// TestLocalInterrupted: Ctrl-C, and a request to end, end all after one step, and the run is
// saved; so does the request where Ctrl-C is ignored, as of what a shell has in the background.
func TestLocalInterrupted(t *testing.T) {
	longtest.Skip(t)
	for _, c := range []struct {
		signal  syscall.Signal
		ignored bool // Ctrl-C is
	}{{syscall.SIGINT, false}, {syscall.SIGTERM, false}, {syscall.SIGTERM, true}} {
		if c.ignored {
			signal.Ignore(syscall.SIGINT)
			t.Cleanup(func() { signal.Reset(syscall.SIGINT) })
		}
		dir := t.TempDir()
		j := start(t, dir, "--local", "2", "--sync", "bosen", "--steps", "100000", "--save", "run",
			"--save-every", "3")
		saved(t, j, filepath.Join(dir, "run"))
		if err := j.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		status := j.end()
		said := j.stderr.String()
		if status != 0 || !strings.HasPrefix(said, "gomem: stopped after step ") ||
			!strings.Contains(said, "--local 2 --sync bosen") || strings.Count(said, "\n") != 1 {
			t.Errorf("%+v: status %d: %s", c, status, said)
		}
	}
}

// TestLocalOneLine: what is wrong with a job is said once, whoever finds it out, and nobody
// waits for one that has failed.
func TestLocalOneLine(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for want, args := range map[string][]string{
		`etcd: "h:1" is no URL like https://host:2379`: {"--etcd", "h:1"},
		`etcd: "ftp://h:1" is no URL`:                  {"--etcd", "ftp://h:1"},
		`etcd: "" is no URL`:                           {"--etcd", "http://127.0.0.1:1,"},
		"etcd: 10.0.0.1:1 is not on loopback":          {"--etcd", "http://10.0.0.1:1"},
		"checkpoint none: no such file":                {"--resume", "none"},
		"data tsv:none: no such file":                  {"--data", "tsv:none"},
		"the budget is 1KiB":                           {"--device-memory", "1KiB"},
	} {
		began := time.Now()
		j := start(t, t.TempDir(), append(args, "--local", "3", "--steps", "2", "--json")...)
		status := j.end()
		said := notices.ReplaceAllString(j.stderr.String(), "")
		if status == 0 || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: status %d: %s", args, status, said)
		}
		t.Logf("%v: %v", args, time.Since(began))
	}
}

// notices are what is said while nothing is wrong.
var notices = regexp.MustCompile(`(?m)^gomem: (planning|measuring) .*\n`)

// TestDoctor: every process of a healthy job answers, encrypted too, and says so once.
func TestDoctor(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "doctor", "--local", "3", "--tls", "auto", "--json")
	c.Env = append(os.Environ(), asCommand+"=1")
	out, err := c.Output()
	var said struct {
		Findings []struct {
			Node, Check, Detail string
			OK                  bool
		}
	}
	if bad := json.Unmarshal(out, &said); err != nil || bad != nil {
		t.Fatalf("%v, %v: %s", err, bad, out)
	}
	nodes := map[string]int{}
	for _, f := range said.Findings {
		nodes[f.Node]++
		if !f.OK && f.Check != "clock" && f.Check != "round trip" { // which a busy machine has
			t.Errorf("%+v", f)
		}
	}
	if len(nodes) != 3 || nodes["2"] < 6 {
		t.Errorf("%v", nodes)
	}
}
