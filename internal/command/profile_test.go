package command

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/planner"
)

// ownCache keeps what a test measures of the machine to itself.
func ownCache(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
}

// TestProfileFiles: what was run is what was planned, and all files are written.
func TestProfileFiles(t *testing.T) {
	longtest.Skip(t)
	dir := inDir(t)
	ownCache(t)
	text := succeed(t, "profile", "--size", "s512", "--policy", "thesis", "--steps-to-run", "2",
		"--device-memory", "320KiB", "--png", "p.png", "--svg", "p.svg", "--trace", "t.json",
		"--html", "p.html")
	for _, want := range []string{"moe s512", "predicted = measured", "the median of 2 steps",
		"slowest operations", "copies for", "GFLOP/s", "gradients"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("more than 80 columns: %q", line)
		}
	}
	if got := files(t, dir); got != "p.html p.png p.svg pairs.tsv t.json" {
		t.Errorf("files %s", got)
	}
	for name, begins := range map[string]string{"p.html": "<!DOCTYPE html>", "p.png": "\x89PNG",
		"p.svg": "<?xml", "t.json": `{"displayTimeUnit"`} {
		if data, err := os.ReadFile(name); err != nil || !bytes.HasPrefix(data, []byte(begins)) {
			t.Errorf("%s: %v, %.20q", name, err, data)
		}
	}
}

// TestProfileModels: every model has a profile, and its JSON is what is promised.
func TestProfileModels(t *testing.T) {
	longtest.Skip(t)
	ownCache(t)
	for _, k := range longtest.Some(3, kinds) {
		t.Run(k.name, func(t *testing.T) {
			out := succeed(t, "profile", "--model", k.name, "--size", "s512", "--steps-to-run",
				"1", "--json")
			d := json.NewDecoder(strings.NewReader(out))
			d.DisallowUnknownFields()
			var r profile.Report
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			if r.Type != "profile" || r.Model != k.name || r.Measured == nil ||
				r.Predicted == nil || r.Measured.Runs != 1 || r.Facts.VanillaDevice == 0 ||
				r.Machine.PeakGFLOPS <= 0 {
				t.Errorf("%s", out)
			}
			for _, s := range r.Spaces {
				if s.Used != s.Bytes {
					t.Errorf("%s: %d predicted, %d used", s.Name, s.Bytes, s.Used)
				}
			}
		})
	}
}

// TestProfileNothing: no step is run unless one is wanted, and on a device that
// computes.
func TestProfileNothing(t *testing.T) {
	longtest.Skip(t)
	ownCache(t)
	for _, flags := range [][]string{{"--steps-to-run", "0"}, {"--device", "null"}} {
		var r profile.Report
		decode(t, succeed(t, append([]string{"profile", "--size", "s512", "--json"},
			flags...)...), &r)
		if r.Measured != nil || r.Spaces[0].Used != 0 || r.Spaces[0].Peak.Live == 0 {
			t.Errorf("%v: %+v", flags, r)
		}
	}
}

// TestProfileBadInput: what makes no sense is refused in one line, before anything
// takes long.
func TestProfileBadInput(t *testing.T) {
	inDir(t)
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"--steps-to-run -1", 2, "--steps-to-run"},
		{"--steps-to-run x", 2, "whole number"},
		{"--png", 2, "--png"},
		{"--html none/p.html", 1, "none/p.html"},
		{"--svg none/p.svg", 1, "none/p.svg"},
		{"--trace none/t.json", 1, "none/t.json"},
		{"--png none/p.png", 1, "none/p.png"},
		{"--model bert", 2, "bert"},
		{"--device gpu", 2, "gpu"},
		{"--device-memory 1KiB", 1, "the budget is 1KiB"},
		{"--profile dir", 2, "unknown flag"},
	} {
		o := invoke(t, append([]string{"profile", "--size", "s512"},
			strings.Fields(c.args)...)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) ||
			strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%s: %+v", c.args, o)
		}
	}
}

// TestTrainProfile: a run leaves a profile of its first steps, and so does one that
// evaluates at each.
func TestTrainProfile(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	ownCache(t)
	for _, flags := range [][]string{{"--steps", "3"}, {"--steps", "3", "--eval-every", "1"},
		{"--steps", "2", "--device", "null"}, {"--steps", "1", "--trace", "trace.json"}} {
		succeed(t, append(append(tiny, "--profile", "prof"), flags...)...)
		if got := files(t, "prof"); got != "profile.html profile.json profile.png profile.svg "+
			"profile.txt trace.json" {
			t.Errorf("%v: files %s", flags, got)
		}
		text, err := os.ReadFile("prof/profile.json")
		if err != nil {
			t.Fatal(err)
		}
		var r profile.Report
		decode(t, string(text), &r)
		if computed := flags[len(flags)-1] != "null"; computed != (r.Measured != nil) ||
			r.Spaces[0].Used != r.Spaces[0].Bytes {
			t.Errorf("%v: %s", flags, text)
		}
	}
	if o := invoke(t, append(tiny, "--profile", "pairs.tsv")...); o.status != exitFailure ||
		!strings.Contains(o.stderr, "--profile pairs.tsv") {
		t.Errorf("a file as the directory: %+v", o)
	}
}

// TestProfileSimulated: of a machine that is not there, times are predicted and
// nothing is run.
func TestProfileSimulated(t *testing.T) {
	var slow, fast profile.Report
	for device, r := range map[string]*profile.Report{"sim:titanx": &slow, "sim:gh200": &fast} {
		decode(t, succeed(t, "profile", "--model", "transformer", "--size", "s512", "--device",
			device, "--json"), r)
		if r.Measured != nil || r.Predicted == nil || "sim:"+r.Machine.Name != device {
			t.Errorf("%s: %+v", device, r)
		}
	}
	if slow.Predicted.StepMS <= fast.Predicted.StepMS {
		t.Errorf("%v ms on one, %v ms on the other", slow.Predicted.StepMS, fast.Predicted.StepMS)
	}
	if o := invoke(t, "profile", "--device", "sim:abacus"); o.status != exitUsage ||
		!strings.Contains(o.stderr, "abacus") {
		t.Errorf("%+v", o)
	}
}

// TestProfilePolicies: every policy's plan has a profile.
func TestProfilePolicies(t *testing.T) {
	for _, policy := range planner.Policies() {
		text := succeed(t, "profile", "--model", "transformer", "--size", "s512", "--policy",
			string(policy), "--device", "sim:titanx")
		if !strings.Contains(text, "device memory: peak") {
			t.Errorf("%s:\n%s", policy, text)
		}
	}
}
