//go:build unix

package command

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// process is gomem in a process of its own.
type process struct {
	*exec.Cmd
	stdout io.ReadCloser
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

// start starts a command line; a wrapper is a shell's words before it.
func start(t *testing.T, wrapper string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command("sh", append([]string{"-c", wrapper + ` exec "$0" "$@"`,
		self}, args...)...)}
	p.Env = append(os.Environ(), asCommand+"=1")
	p.Stderr = &p.stderr
	if p.stdout, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(p.stdout)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// until reads standard output up to a line with a text.
func (p *process) until(t *testing.T, text string) {
	t.Helper()
	for p.lines.Scan() {
		if strings.Contains(p.lines.Text(), text) {
			return
		}
	}
	_ = p.Wait()
	t.Fatalf("standard output ends before %q; standard error: %s", text, p.stderr.String())
}

// end reads the rest, and returns how the process ended.
func (p *process) end(t *testing.T) syscall.WaitStatus {
	t.Helper()
	for p.lines.Scan() {
	}
	_ = p.Wait()
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		t.Fatal("no status")
	}
	return status
}

// written is what it writes until it ends, and how it ended.
func (p *process) written(t *testing.T) (syscall.WaitStatus, string) {
	t.Helper()
	var out strings.Builder
	for p.lines.Scan() {
		fmt.Fprintln(&out, p.lines.Text())
	}
	return p.end(t), out.String()
}

// byItself is what a command line that must work writes in a process of its own: this one holds
// what other tests left.
func byItself(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	p := start(t, "", args...)
	status, out := p.written(t)
	if status.ExitStatus() != exitOK {
		t.Fatalf("gomem %s: %v, %s", strings.Join(args, " "), status, p.stderr.String())
	}
	return out, p.stderr.String()
}

func (p *process) send(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func with(args []string, more ...string) []string {
	return append(append([]string{}, args...), more...)
}

// endless is a run that somebody has to end.
var endless = with(tiny, "--steps", "100000")

// TestSignals: whatever asks a run to end has it finish its step and save, which is
// a success, and where nothing is saved the status says what ended it.
func TestSignals(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGPIPE} {
		if signal.Ignored(s) {
			continue // as under nohup, and so it is for processes started here
		}
		dir := "run " + s.String()
		p := start(t, "", with(endless, "--save", dir)...)
		p.until(t, "step 1/")
		p.send(t, s)
		status := p.end(t)
		if said := p.stderr.String(); status.ExitStatus() != exitOK ||
			!strings.HasPrefix(said, "gomem: stopped after step ") ||
			!strings.HasSuffix(said, " --resume '"+dir+"'\n") || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: status %v, standard error %q", s, status, said)
		}
		if c, err := train.Inspect(dir); err != nil || c.Step < 1 {
			t.Errorf("%v: %+v, %v", s, c, err)
		}

		p = start(t, "", endless...)
		p.until(t, "step 1/")
		p.send(t, s)
		status = p.end(t)
		if said := p.stderr.String(); status.ExitStatus() != 128+int(s) ||
			!strings.Contains(said, "nothing was saved (--save DIR keeps a run)\n") ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("%v without --save: status %v, standard error %q", s, status, said)
		}
	}
}

// TestSecondSignal: whoever cannot wait for the end of a step ends the process. The
// first signal may come before a step has begun, and end the run in order: then it
// is tried again.
func TestSecondSignal(t *testing.T) {
	inDir(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			continue
		}
		said := "stopped after step"
		var status syscall.WaitStatus
		for try := 0; try < 20 && strings.Contains(said, "stopped after step"); try++ {
			p := start(t, "", with(endless, "--save", "run", "--partition", "20",
				"--copy-gbps", "0.001")...)
			p.until(t, "device ") // of the header
			time.Sleep(time.Duration(try) * 20 * time.Millisecond)
			status = insist(t, p, s)
			said = p.stderr.String()
		}
		if !status.Signaled() || status.Signal() != s {
			t.Errorf("%v: status %v, standard error %q", s, status, said)
		}
	}
}

// insist sends a process a signal until it ends.
func insist(t *testing.T, p *process, s syscall.Signal) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for done := 0; done == 0; {
		p.send(t, s)
		time.Sleep(10 * time.Millisecond)
		var err error
		if done, err = syscall.Wait4(p.Process.Pid, &status, syscall.WNOHANG, nil); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.Process.Release()
	return status
}

// TestIgnoredSignals: what nohup has a process ignore does not end it.
func TestIgnoredSignals(t *testing.T) {
	inDir(t)
	p := start(t, `trap "" HUP;`, with(endless, "--save", "run")...)
	p.until(t, "step 1/")
	p.send(t, syscall.SIGHUP)
	for range 3 {
		p.until(t, "step ")
	}
	p.send(t, syscall.SIGTERM)
	if status := p.end(t); status.ExitStatus() != exitOK {
		t.Errorf("status %v, standard error %q", status, p.stderr.String())
	}
}

// TestClosedPipe: nobody reads any longer. A run is saved nevertheless, and the
// status is that of a program that was ended by the pipe.
func TestClosedPipe(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	p := start(t, "", with(endless, "--save", "run")...)
	p.until(t, "step 1/")
	if err := p.stdout.Close(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if said := p.stderr.String(); p.ProcessState.ExitCode() != 141 ||
		!strings.Contains(said, "continue with") || strings.Count(said, "\n") != 1 {
		t.Errorf("status %v, standard error %q", p.ProcessState, said)
	}
	if c, err := train.Inspect("run"); err != nil || c.Step < 1 {
		t.Errorf("%+v, %v", c, err)
	}

	// Standard error is the same pipe: the run is saved all the same.
	p = start(t, "exec 2>&1;", with(endless, "--save", "both")...)
	p.until(t, "step 1/")
	if err := p.stdout.Close(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if c, err := train.Inspect("both"); err != nil || c.Step < 1 {
		t.Errorf("%+v, %v; %v", c, err, p.ProcessState)
	}

	for _, args := range [][]string{{"plan", "--size", "s512"}, {"plan", "--help"}, {"version"},
		{"version", "--json"}, {"devices"}, {"eval", "--from", "run", "--data", "tsv:pairs.tsv"},
		{"predict", "--from", "run", "pairs.tsv"}, {"profile", "--size", "s512", "--device",
			"sim:titanx"},
		{"fit", "--model", "resnet", "--size", "s512", "--policy", "vanilla", "--device-memory",
			"2MiB", "--json"}} {
		p = start(t, "sleep 0.1;", args...)
		if err := p.stdout.Close(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait()
		if p.ProcessState.ExitCode() != 141 || p.stderr.Len() > 0 {
			t.Errorf("%v: %v, standard error %q", args, p.ProcessState, p.stderr.String())
		}
	}
}

// TestKilled: a run that is killed at any time, in the middle of a save too, has a
// checkpoint that it can go on from.
func TestKilled(t *testing.T) {
	inDir(t)
	args := with(endless, "--save", "run", "--save-every", "1")
	for range longtest.Count(3, 70) {
		p := start(t, "", args...)
		p.until(t, "saved")
		time.Sleep(time.Duration(rand.IntN(int(50 * time.Millisecond))))
		p.send(t, syscall.SIGKILL)
		p.end(t)
		c, err := train.Inspect("run")
		if err != nil || c.Step < 1 {
			t.Fatalf("%+v, %v", c, err)
		}
		args = with(endless, "--resume", "run", "--save-every", "1")
	}
}

// TestFullOutput: output that cannot be written is a failure of every command,
// said on one line; a run is finished and saved.
func TestFullOutput(t *testing.T) {
	longtest.Skip(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	inDir(t)
	for _, args := range [][]string{
		{"--help"}, {"train", "--help"}, {"version"}, {"version", "--json"}, {"devices"},
		{"devices", "--json"}, {"plan", "--size", "s512"}, {"plan", "--size", "s512", "--json"},
		{"plan", "--size", "s512", "--steps"},
		{"plan", "--size", "s512", "--advise", "--device-memory", "100KiB"},
		{"plan", "--model", "resnet", "--size", "s512", "--sweep", "--points", "2"},
		{"profile", "--size", "s512", "--device", "sim:titanx"},
		{"profile", "--size", "s512", "--device", "sim:titanx", "--json"},
		{"fit", "--model", "resnet", "--size", "s512", "--policy", "vanilla", "--device-memory",
			"2MiB", "--json"},
		{"bench", "thesis", "--table", "6.1", "--size", "base"},
		with(tiny, "--steps", "2", "--save", "lines"),
		with(tiny, "--steps", "2", "--save", "json", "--json"),
	} {
		refuses(t, full, args)
	}
	for _, args := range [][]string{{"predict", "--from", "lines", "pairs.tsv"},
		{"predict", "--from", "lines", "pairs.tsv", "--json"},
		{"eval", "--from", "lines", "--data", "tsv:pairs.tsv"},
		{"eval", "--from", "lines", "--data", "tsv:pairs.tsv", "--json"}} {
		refuses(t, full, args)
	}
	for _, dir := range []string{"lines", "json"} {
		if c, err := train.Inspect(dir); err != nil || c.Step != 2 {
			t.Errorf("%s: %+v, %v", dir, c, err)
		}
	}
}

// refuses says that a command line fails on a device that is full, in one line.
func refuses(t *testing.T, full *os.File, args []string) {
	t.Helper()
	var stderr bytes.Buffer
	status := Main(t.Context(), args, full, &stderr, Extras{})
	if status != exitFailure ||
		stderr.String() != "gomem: standard output: no space left on device\n" {
		t.Errorf("%v: status %d, standard error %q", args, status, stderr.String())
	}
}
