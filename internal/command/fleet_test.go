package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/train"
)

// TestAbreast: several devices of one process learn what as many processes do, to the bit, each
// within its own plan's peak; in a mesh too; and what they save goes on on one device.
func TestAbreast(t *testing.T) {
	inDir(t)
	run := with(tiny, "--steps", "3", "--bleu", "0", "--json")
	for _, mesh := range [][]string{nil, {"--mesh", "batch:2x1"}} {
		want := summaryOf(t, gather(t, inMemory{}, with(with(run, mesh...), "--local", "2")...))
		s := summaryOf(t, invoke(t, with(with(run, mesh...), "--device", "cpu,cpu", "--save",
			"run"+fmt.Sprint(len(mesh)))...))
		if sum := s["weights_sha256"]; sum == "" || sum != want["weights_sha256"] ||
			s["workers"] != want["workers"] {
			t.Errorf("%v: %v, of processes %v", mesh, s, want)
		}
		on, _ := s["devices"].([]any)
		var x explanation
		decode(t, succeed(t, with([]string{"plan", "--model", "transformer", "--size", "s512",
			"--device", "cpu,cpu", "--json"}, mesh...)...), &x)
		if len(on) != 2 || len(x.Ranks) != 2 {
			t.Fatalf("%v: devices %v, ranks %v", mesh, s["devices"], x.Ranks)
		}
		for i, r := range x.Ranks {
			d := on[i].(map[string]any)
			if p := float64(r.Device); p != d["actual_device_peak_bytes"] || p == 0 ||
				p != d["predicted_device_peak_bytes"] || d["device"] != "cpu" || r.On != "cpu" {
				t.Errorf("%v: %v, planned %+v", mesh, d, r)
			}
		}
	}
	if o := invoke(t, with(run[:1:1], "--resume", "run2", "--steps", "4", "--bleu",
		"0")...); o.status != exitOK {
		t.Errorf("on one device: %+v", o)
	}
}

// TestAbreastIsRefused: what several devices cannot be is said in a line, before anything is read.
func TestAbreastIsRefused(t *testing.T) {
	inDir(t)
	step := with(tiny, "--steps", "1")
	for _, c := range []struct {
		args []string
		says string
	}{
		{with(step, "--device", "cuda:0,0"), "cuda:0 is there twice"},
		{with(step, "--device", "cuda:0,cpu"), "GPUs and the processor round otherwise"},
		{with(step, "--device", "null,null"), "want a list such as cuda:0,1, or cpu,cpu"},
		{with(step, "--device", "cpu,cpu", "--mesh", "batch:3x1"),
			"is for 3 processes, there are 2"},
		{with(step, "--device", "cpu,cpu", "--sync", "ring"), "--sync needs gomem-cluster"},
		{[]string{"train", "--model", "mlr", "--device", "cpu,cpu"}, "which has no layers"},
		{[]string{"fit", "--max", "batch", "--device", "cpu,cpu"}, "this is for one of them"},
		{[]string{"profile", "--device", "cuda:0,1"}, "this is for one of them"},
	} {
		o := invoke(t, c.args...)
		if o.status != exitUsage || !strings.Contains(o.stderr, c.says) ||
			strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%v: %+v, want %q", c.args, o, c.says)
		}
	}
	o := gather(t, inMemory{}, with(step, "--device", "cpu,cpu")...)
	if o.status != exitUsage || !strings.Contains(o.stderr, "--local 2 --device cuda") {
		t.Errorf("of several processes: %+v", o)
	}
}

// TestAbreastEndsInOrder: a run on several devices that is asked to end saves what it has, and
// says how to go on with all of them.
func TestAbreastEndsInOrder(t *testing.T) {
	inDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &hearing{word: `"step":2`, heard: cancel}
	var stderr strings.Builder
	status := Main(ctx, with(tiny, "--steps", "100000", "--save", "run", "--json", "--device",
		"cpu,cpu"), out, &stderr, Extras{})
	x, err := train.Inspect("run")
	if status != exitOK || err != nil || x.Step < 2 ||
		!strings.Contains(stderr.String(), "--device cpu,cpu --resume run") {
		t.Errorf("status %d, %+v, %v: %s", status, x, err, &stderr)
	}
}

// hearing is an output that tells of a word.
type hearing struct {
	word  string
	heard func()
}

func (h *hearing) Write(b []byte) (int, error) {
	if strings.Contains(string(b), h.word) {
		h.heard()
	}
	return len(b), nil
}

// TestBlame: of several devices the one is named whose own fault it was, and how to go on is what
// the first worker knows; what has befallen all alike, or is the command line's, names none.
func TestBlame(t *testing.T) {
	f := newFleet([]string{"cuda:0", "cuda:1"})
	burnt, gone := errors.New("it burns"), &workers.LeftError{Rank: 1, Why: "it burns"}
	how := &rememberedError{gone, "saved at step 2"}
	for _, c := range []struct {
		errs []error
		want string
	}{
		{[]error{nil, nil}, "<nil>"},
		{[]error{how, burnt}, "cuda:1: it burns; saved at step 2"},
		{[]error{&launchedError{1}, burnt}, "cuda:1: it burns"},
		{[]error{&rememberedError{burnt, "go on"}, &launchedError{1}}, "cuda:0: it burns; go on"},
		{[]error{burnt, burnt}, "it burns"},
		{[]error{usagef("no such flag"), gone}, "no such flag"},
		{[]error{&data.Error{Err: burnt}, gone}, (&data.Error{Err: burnt}).Error()},
		{[]error{gone, nil}, "worker 1 failed: it burns"},
	} {
		if got := fmt.Sprint(f.blame(c.errs)); got != c.want {
			t.Errorf("%v: %q, want %q", c.errs, got, c.want)
		}
	}
}

// TestSeveral: what lists of devices there are.
func TestSeveral(t *testing.T) {
	for list, want := range map[string]string{"": "", "cuda": "cuda", "cuda:0,1": "cuda:0 cuda:1",
		"cuda,cuda:2,3": "cuda:0 cuda:2 cuda:3", "cpu,cpu,cpu": "cpu cpu cpu",
		"sim:a,b.json": "sim:a,b.json", "cpu,1": "!", "cuda:0,": "!", "cuda,0": "!",
		"cuda:0,70000": "!", ",": "!"} {
		got, err := gomem.Several(list)
		if err != nil {
			got = []string{"!"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", list, got, err, want)
		}
	}
}
