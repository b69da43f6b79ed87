package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// fitKeys are what scripts may rely on.
var fitKeys = []string{"type", "quantity", "max", "device_peak_bytes", "host_peak_bytes",
	"next_refused_by"}

// TestFit: the answer is one that plan takes with the same flags, and one more is
// one that it refuses, for every quantity of every model.
func TestFit(t *testing.T) {
	longtest.Skip(t)
	for i, c := range []struct{ model, max, flags, by, device string }{
		{"moe", "batch", "--policy thesis --device-memory 1200KiB", "device", "cpu"},
		{"moe", "depth", "--policy vanilla --device-memory 2MiB", "device", "cpu"},
		{"moe", "experts", "--policy thesis", "limit", "cpu"},
		{"moe", "experts", "--policy auto", "limit", "cpu"},
		{"moe", "experts", "--policy thesis --moe sparse --host-memory 102MiB", "host", "cpu"},
		{"moe", "length", "--policy thesis --device-memory 1200KiB --no-swap", "device", "cpu"},
		{"transformer", "batch", "--policy thesis --device-memory 1MiB --device null", "device",
			"null"},
		{"transformer", "batch", "--policy auto --device-memory 1MiB", "device", "cpu"},
		{"transformer", "depth", "--policy thesis --host-memory 95MiB", "host", "cpu"},
		{"transformer", "length", "--policy thesis --device-memory 1MiB", "device", "cpu"},
		{"resnet", "batch", "--policy grappler --device-memory 1MiB", "device", "cpu"},
		{"resnet", "depth", "--policy thesis --host-memory 75MiB", "host", "cpu"},
		{"lstm-lm", "batch", "--policy thesis --device-memory 1MiB", "device", "cpu"},
		{"lstm-lm", "length", "--policy thesis --device-memory 1MiB", "device", "cpu"},
		{"wgan", "batch", "--policy thesis --device-memory 600KiB", "device", "cpu"},
		{"deepspeech", "batch", "--policy thesis --device-memory 600KiB", "device", "cpu"},
		{"deepspeech", "length", "--policy thesis --device-memory 1MiB --device sim:titanx",
			"device", "sim:titanx"},
	} {
		t.Run(c.model+" "+c.max+" "+c.flags, func(t *testing.T) {
			auto := strings.Contains(c.flags, "auto") && c.by != byLimit // which takes a minute
			if (i%2 == 1 || auto) && !longtest.Enabled() {
				t.Skip("left to the long form")
			}
			flags := append(strings.Fields(c.flags), "--model", c.model, "--size", "s512")
			out := patiently(t, with([]string{"fit", "--max", c.max, "--json"}, flags...)...)
			var keys map[string]json.RawMessage
			decode(t, out, &keys)
			for _, k := range fitKeys {
				if _, ok := keys[k]; !ok {
					t.Errorf("no key %s in %s", k, out)
				}
			}
			var x fitted
			decode(t, out, &x)
			switch {
			case x.Type != "fit" || x.Model != c.model || x.Quantity != c.max || !x.Complete ||
				x.NextRefusedBy != c.by || x.RanOn != c.device:
				t.Fatalf("%s, want it refused by %s and run on %s", out, c.by, c.device)
			case x.DevicePeak > x.DeviceBudget || x.HostPeak > x.HostBudget:
				t.Errorf("budgets are not kept: %s", out)
			case x.Next <= x.Max || x.Next > 2*x.Max+3:
				t.Errorf("next is not the next: %s", out)
			}
			confirm(t, x, planFlagsOf(flags))
		})
	}
}

// patiently runs a command line that must work, and may report on its progress.
func patiently(t *testing.T, args ...string) string {
	t.Helper()
	o := invoke(t, args...)
	if o.status != exitOK {
		t.Fatalf("gomem %s: status %d, standard error %q", strings.Join(args, " "), o.status,
			o.stderr)
	}
	return o.stdout
}

// planFlagsOf are the flags of fit that plan has, too.
func planFlagsOf(flags []string) []string {
	text := strings.Replace(strings.Join(flags, " "), "--device null", "", 1)
	return strings.Fields(text)
}

// confirm plans the answer, and the value after it.
func confirm(t *testing.T, x fitted, flags []string) {
	t.Helper()
	plan := func(value int) outcome {
		return invoke(t, with([]string{"plan", "--" + x.Quantity, fmt.Sprint(value), "--json"},
			with(flags, "--device-memory", fmt.Sprint(x.DeviceBudget))...)...)
	}
	var p explanation
	o := plan(x.Max)
	if o.status != exitOK {
		t.Fatalf("%d does not fit: %+v", x.Max, o)
	}
	decode(t, o.stdout, &p)
	searched := slices.Contains(flags, "auto") // by prices that are measured each time
	if !searched && (p.DevicePeak != x.DevicePeak || p.HostPeak != x.HostPeak) {
		t.Errorf("peaks of plan: %d and %d, of fit %+v", p.DevicePeak, p.HostPeak, x)
	}
	o = plan(x.Next)
	want := fmt.Sprintf("(%d bytes) of %s memory", x.NextNeed, x.NextRefusedBy)
	if x.NextRefusedBy == byLimit {
		want = x.NextRefusal
	}
	if o.status == exitOK || !strings.Contains(o.stderr, want) ||
		!strings.Contains(o.stderr, x.NextRefusal) {
		t.Errorf("%d: %+v, want %q", x.Next, o, want)
	}
}

// TestFitText: the numbers of the JSON, on lines that fit a terminal.
func TestFitText(t *testing.T) {
	longtest.Skip(t)
	for _, flags := range [][]string{{"--device-memory", "1200KiB"}, {"--max", "experts"},
		{"--device-memory", "1200KiB", "--device", "null"}} {
		args := with([]string{"fit", "--size", "s512", "--policy", "thesis"}, flags...)
		text := patiently(t, args...)
		var x fitted
		decode(t, patiently(t, with(args, "--json")...), &x)
		for _, want := range []string{
			"largest " + x.Quantity, " " + grouped(int64(x.Max)) + "\n",
			within(x.DevicePeak, x.DeviceBudget), within(x.HostPeak, x.HostBudget),
			fmt.Sprintf("%s %d ", x.Quantity, x.Next), "a step on " + x.RanOn,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		narrow(t, text)
	}
}

// narrow demands lines of at most 80 columns without spaces at their ends.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := len([]rune(line)); n > 80 || strings.HasSuffix(line, " ") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// countdown is a context that ends after it has been looked at some times.
type countdown struct {
	context.Context
	left *atomic.Int64
}

// Err is context.Canceled at the end.
func (c countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestFitInterrupted: whenever a search is cut short, it says what is known to fit.
func TestFitInterrupted(t *testing.T) {
	longtest.Skip(t)
	known := 0
	for looks := int64(0); ; looks = looks*5/4 + 1 {
		ctx := countdown{t.Context(), &atomic.Int64{}}
		ctx.left.Store(looks)
		c := fitCmd{modelFlags: modelFlags{Model: "moe", Size: "s512"}, Max: "batch", JSON: true,
			planFlags: planFlags{Policy: "thesis", DeviceBytes: 1200 << 10}}
		var out bytes.Buffer
		err := c.Run(ctx, &env{stdout: &out, stderr: io.Discard,
			log: slog.New(slog.DiscardHandler)})
		var x fitted
		decode(t, out.String(), &x)
		if err == nil {
			if !x.Complete || known < 3 {
				t.Errorf("%d answers before %+v", known, x)
			}
			return
		}
		want := fmt.Sprintf("interrupted: batch %d fits, and is not proven to be the largest",
			x.Max)
		if x.Max == 0 {
			want = errInterrupted.text
		}
		if err.Error() != want || x.Complete || status(ctx, err) != 130 {
			t.Fatalf("%v, want %q; %+v", err, want, x)
		}
		if x.Max > 0 {
			known++
		}
	}
}

// TestFitAgainstGuesses: where what is known of other values misleads, a search comes to an
// answer that is proven, nevertheless.
func TestFitAgainstGuesses(t *testing.T) {
	longtest.Skip(t)
	c := modelFlags{Model: "moe", Size: "s512"}
	q, err := (&fitCmd{modelFlags: c, Max: "batch"}).sought()
	if err != nil {
		t.Fatal(err)
	}
	s := &fitting{ctx: t.Context(), quantity: q, flags: c, progress: newProgress(io.Discard),
		options: gomem.Options{Policy: planner.Auto, DeviceBytes: 400 << 10, HostBytes: 64 << 20}}
	for value := range 2 { // batches of one and two, they say, need what large ones do
		large, err := s.build(200 * (value + 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.scout.Survey(s.ctx, value+1, large.model.Graph, s.options.Planning(),
			large.targets...); err != nil {
			t.Fatal(err)
		}
	}
	a, err := s.settle(1)
	if err != nil || a.Most < 3 || a.Next != a.Most+1 || s.most.value != a.Most {
		t.Fatalf("%+v, %v", a, err)
	}
	for value, fits := range map[int]bool{a.Most: true, a.Next: false} {
		b, err := s.build(value)
		if err != nil {
			t.Fatal(err)
		}
		err = planner.Fits(s.ctx, b.model.Graph, s.options.Planning(), b.targets...)
		if fits != (err == nil) {
			t.Errorf("%d: %v, want it to fit: %t", value, err, fits)
		}
	}
}
