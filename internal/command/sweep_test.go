package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestSweep: the curve goes from the smallest budget to one at which nothing is
// copied, and keeps to all of them.
func TestSweep(t *testing.T) {
	longtest.Skip(t)
	for _, model := range []string{"deepspeech", "transformer", "resnet", "moe", "wgan"} {
		points := longtest.Count(3, 12)
		if points == 3 && model != "deepspeech" {
			continue // more operations
		}
		t.Run(model, func(t *testing.T) {
			flags := []string{"plan", "--model", model, "--size", "s512", "--policy", "auto",
				"--device", "sim:titanx", "--json"}
			var x curve
			decode(t, patiently(t, with(flags, "--sweep", "--points", fmt.Sprint(points))...), &x)
			var alone explanation
			decode(t, patiently(t, with(flags, "--device-memory",
				fmt.Sprint(x.Points[1].Budget))...), &alone)
			checkEnds(t, x, points)
			if p := x.Points[1]; alone.PredictedMS != p.PredictedMS ||
				alone.LowerBoundMS != p.LowerBoundMS || alone.Actions != p.Actions ||
				alone.DevicePeak != p.Device || alone.copies() != p.Copied ||
				alone.MinDevice != x.MinDevice {
				t.Errorf("%+v by itself %+v, %+v", p, alone.report, alone.cost)
			}
			for i, p := range x.Points {
				if p.Device > p.Budget || i > 0 && p.Budget <= x.Points[i-1].Budget ||
					p.Actions.Kept < 0 || p.Slower <= 0 || p.PredictedMS < p.LowerBoundMS ||
					p.LowerBoundMS == 0 {
					t.Errorf("point %d: %+v", i, p)
				}
			}
		})
	}
}

// checkEnds checks the first and the last point.
func checkEnds(t *testing.T, x curve, points int) {
	t.Helper()
	last := x.Points[len(x.Points)-1]
	switch {
	case x.Type != "sweep" || x.Machine != "titanx" || !x.Complete || x.Kappa < 729 ||
		x.Kappa > 731 || len(x.Points) != points:
		t.Errorf("%+v", x)
	case x.Points[0].Budget != x.MinDevice:
		t.Errorf("begins at %d, the smallest is %d", x.Points[0].Budget, x.MinDevice)
	case last.Budget != x.Vanilla || last.Slower > 1 || last.PredictedMS > x.VanillaMS:
		t.Errorf("ends with %+v, vanilla needs %d", last, x.Vanilla)
	}
}

// TestBudgets: from the least to the most, in order, the given one among them.
func TestBudgets(t *testing.T) {
	for _, c := range []struct{ least, most, given, points, first, last int64 }{
		{100, 100, 0, 16, 100, 100}, {100, 50, 70, 16, 100, 100},
		{1, 1 << 60, 12345, maxPoints, 1, 1 << 60}, {10, 12, 11, 16, 10, 12},
		{1 << 20, 9 << 20, 3 << 20, 2, 1 << 20, 9 << 20},
	} {
		list := budgets(c.least, c.most, c.given, c.points)
		among := slices.Contains(list, c.given) || c.given < c.least || c.given > c.most
		if list[0] != c.first || list[len(list)-1] != c.last || !among || !slices.IsSorted(list) ||
			len(slices.Compact(slices.Clone(list))) != len(list) || len(list) > int(c.points)+1 {
			t.Errorf("%+v: %v", c, list)
		}
	}
}

// TestSweepText: a row a budget, with a chart that fits a terminal.
func TestSweepText(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, c := range []struct{ flags, file, begins string }{
		{"--policy auto --model deepspeech --device-memory 400KiB", "cost.svg", "<?xml"},
		{"--policy thesis --device sim:h200-pcie5 --device-memory 1MiB", "cost.png", "\x89PNG"},
		{"--policy vanilla", "one.png", "\x89PNG"},
	} {
		text := patiently(t, with([]string{"plan", "--sweep", "--size", "s512", "--points", "3",
			"--plot", c.file}, strings.Fields(c.flags)...)...)
		narrow(t, text)
		if given := strings.Contains(c.flags, "memory"); given != strings.Contains(text, "\n>  ") {
			t.Errorf("the budget that was given is marked: %t\n%s", !given, text)
		}
		picture, err := os.ReadFile(c.file)
		if err != nil || !strings.HasPrefix(strings.TrimSpace(string(picture)), c.begins) {
			t.Errorf("%s: %v, %.20q", c.file, err, picture)
		}
		if bytes.Contains(picture, []byte("href=\"http")) {
			t.Errorf("%s refers to a page", c.file)
		}
	}
}

// TestSweepSaysWhyItIsFaster: what takes less than vanilla's time is explained, and only that.
func TestSweepSaysWhyItIsFaster(t *testing.T) {
	for slower, explained := range map[float64]bool{0.9: true, 0.997: false, 1.2: false} {
		var text strings.Builder
		curve{Points: []point{{Slower: slower}, {Slower: 1}}}.print(&text)
		if narrow(t, text.String()); strings.Contains(text.String(), "no error") != explained {
			t.Errorf("%v: %s", slower, text.String())
		}
	}
}

// TestSweepIsMeasured: a sweep is by what this machine takes, whatever budget is given.
func TestSweepIsMeasured(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, given := range longtest.Some(1, []string{"600KiB", "1GiB"}) {
		var x curve
		decode(t, patiently(t, "plan", "--sweep", "--points", "2", "--model", "deepspeech",
			"--size", "s512", "--json", "--policy", "auto", "--device-memory", given), &x)
		if x.Machine != "local" {
			t.Errorf("within %s by the prices of %s", given, x.Machine)
		}
	}
}

// TestSweepInterrupted: what has been planned is printed.
func TestSweepInterrupted(t *testing.T) {
	for looks, before := int64(0), 0; ; looks = looks*2 + 1 {
		ctx := countdown{t.Context(), &atomic.Int64{}}
		ctx.left.Store(looks)
		c := planCmd{modelFlags: modelFlags{Model: "transformer", Size: "s512"}, JSON: true,
			planFlags: planFlags{Policy: "thesis"}, Sweep: true, Points: 9, Device: "cpu"}
		var out bytes.Buffer
		err := c.Run(ctx, &env{stdout: &out, stderr: io.Discard,
			log: slog.New(slog.DiscardHandler)})
		var x curve
		decode(t, out.String(), &x)
		if x.Complete != (err == nil) || len(x.Points) < before {
			t.Fatalf("%v, %+v after %d points", err, x, before)
		}
		if before = len(x.Points); err == nil {
			return
		}
		want := "interrupted after " + counted(len(x.Points), "budget")
		_, stopped := errors.AsType[*stoppedError](err)
		if !stopped || err.Error() != want {
			t.Fatalf("%v, want %q", err, want)
		}
	}
}
