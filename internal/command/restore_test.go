package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestRestore: what is restored of a step is the checkpoint that the run saved after it, to the
// byte, with what each worker has of its own, across averages and bases; a run goes on from it as
// from that, and the log goes on with the run.
func TestRestore(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	run := with(tiny, "--bleu", "0", "--json", "--local", "3", "--eval-every", "3", "--save-every",
		"4", "--svlog-keep", "100")
	schemes := [][]string{{"orpheus", "--average", "5"}, {"svb"}, {"lossy", "--average", "3"},
		{"halton", "--staleness", "2"}, {"exponential"}}
	for i, scheme := range schemes[:longtest.Count(2, len(schemes))] {
		name := func(s string) string { return fmt.Sprintf("%s%d", s, i) }
		args := with(with(run, "--svlog", name("log"), "--sync"), scheme...)
		trained := func(more ...string) {
			t.Helper()
			if o := gather(t, inMemory{}, with(args, more...)...); o.status != exitOK {
				t.Fatalf("%v: %s", scheme, o.stderr)
			}
		}
		trained("--save", name("run"), "--steps", "8")
		for _, step := range []string{"4", "8"} {
			back := name("back") + step
			o := gather(t, inMemory{}, "restore", "--from", name("log"), "--at", step, "--save",
				back)
			if o.status != exitOK || !strings.Contains(o.stdout, "step "+step+" of 3 workers") {
				t.Fatalf("%v: step %s: %s%s", scheme, step, o.stdout, o.stderr)
			}
			same(t, filepath.Join(name("run"), "step-0000000"+step+".safetensors"),
				filepath.Join(back, "step-0000000"+step+".safetensors"))
		}
		trained("--resume", name("back")+"4", "--steps", "7")
		o := gather(t, inMemory{}, "restore", "--from", name("log"), "--save", name("again"),
			"--json")
		if s := summaryOf(t, o); s["step"] != 7.0 || len(s["missing"].([]any)) != 0 {
			t.Errorf("%v: the latest is %v", scheme, s)
		}
		if o := gather(t, inMemory{}, "eval", "--from", name("again"), "--data",
			"tsv:pairs.tsv"); o.status != exitOK {
			t.Errorf("%v: %s", scheme, o.stderr)
		}
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	y, failed := os.ReadFile(b)
	if err != nil || failed != nil || !bytes.Equal(x, y) {
		t.Errorf("%s is not %s: %v, %v", b, a, err, failed)
	}
}

// TestRestoreWithout: what is not there is said in a line, and of a worker whose log is not there,
// too, what the others have is enough.
func TestRestoreWithout(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	args := with(tiny, "--bleu", "0", "--local", "2", "--sync", "orpheus", "--svlog", "log",
		"--steps", "3")
	restore := func(args ...string) outcome {
		return gather(t, inMemory{}, with([]string{"restore", "--from", "log"}, args...)...)
	}
	wants := func(o outcome, status int, want string) {
		t.Helper()
		if o.status != status || !strings.Contains(o.stderr, want) {
			t.Errorf("status %d: %s", o.status, o.stderr)
		}
	}
	wants(restore("--save", "a"), exitFailure, "log has no log of updates")
	wants(gather(t, inMemory{}, args...), exitOK, "")
	wants(gather(t, inMemory{}, args...), exitFailure, "has the log of another run")
	wants(restore("--save", "a", "--at", "9"), exitFailure, "has no clock 9: it has ")
	if err := os.RemoveAll(filepath.Join("log", "worker-1")); err != nil {
		t.Fatal(err)
	}
	wants(restore("--save", "a", "--at", "3"), exitOK, "")
	wants(restore("--save", "a", "--at", "3"), exitFailure, "has checkpoints of another run")
	wants(invoke(t, "restore", "--from", "log", "--save", "b"), exitUsage, "needs gomem-cluster")
	for want, more := range map[string][]string{
		"--svlog does nothing for --sync ring": {"--sync", "ring"},
		"--svlog does nothing for --sync bsp":  {"--sync", "bsp"},
		"leave --min out":                      {"--min", "1"},
		"--svlog-keep needs --svlog":           {"--svlog-keep", "3"},
	} {
		given := with(args, more...)
		if more[0] == "--svlog-keep" {
			given = with(tiny, "--local", "2", "--sync", "svb", "--svlog-keep", "3")
		}
		wants(gather(t, inMemory{}, given...), exitUsage, want)
	}
}
