package command

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/train"
)

// fakeTerminal is a terminal of a width that keeps what is written.
type fakeTerminal struct {
	bytes.Buffer
	width int
}

// Width is the terminal's.
func (f *fakeTerminal) Width() int { return f.width }

// tooWide lists the lines that are wider than a width, but for single words that are.
func tooWide(text string, width int) (bad []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		if utf8.RuneCountInString(line) > width && len(words) > 1 &&
			utf8.RuneCountInString(words[len(words)-1]) < width/2 {
			bad = append(bad, line)
		}
	}
	return bad
}

// TestDisplayFits: header, bar, evaluations and summary fit terminals of all widths, and a
// pipe; whatever the terminal's width becomes while a run goes on.
func TestDisplayFits(t *testing.T) {
	h := header{report: report{Model: "moe", Size: "s64", Parameters: 13_632_128, Nodes: 12_345,
		Policy: "auto", Order: "depth-first", Prices: "this machine", Unit: "token",
		DevicePeak: 190 << 20, DeviceBudget: 192 << 20, VanillaDevice: 812 << 20,
		HostPeak: 900 << 20, HostBudget: 1 << 30, Stage: 1 << 30, SwapIn: 1 << 29},
		Data: "go:doc: 1,234 files (45.6 MiB) of /usr/lib/go, 45,678 pairs (900 held out)"}
	s := train.Summary{LossFirst: 9, LossLast: 1, Steps: 300, EvalBatches: 8, Unit: "token",
		EvalMetrics:         map[string]float64{"accuracy": 0.5, "bleu": 0.125, "accuracy of 5": 1},
		PredictedDevicePeak: 190 << 20, ActualDevicePeak: 190 << 20,
		WeightsSHA256: strings.Repeat("0123456789abcdef", 4), Checkpoint: "run/step-00000300"}
	for _, width := range []int{0, 40, 60, 80, 120} {
		f := &fakeTerminal{width: width}
		d := newDisplay(f, f, false, h)
		d.observe(train.Event{Kind: train.Start, Steps: 300})
		for i := range 300 {
			d.observe(train.Event{Kind: train.Step, Step: i + 1, Steps: 300, Loss: 2.5,
				StepTime: time.Second, UnitsPerSecond: 1234, DeviceBytes: 190 << 20,
				CopyBytes: 3 << 30})
		}
		d.observe(train.Event{Kind: train.Eval, Step: 300, Steps: 300, Loss: 1,
			Metrics: s.EvalMetrics})
		d.close()
		d.summary(s, 0, nil)
		text := strings.NewReplacer("\x1b[J", "\n", "\r", "\n").Replace(f.String())
		most := width
		if width == 0 {
			most = pageWidth
		}
		for _, line := range tooWide(text, most) {
			t.Errorf("%d columns: %q", width, line)
		}
		for _, want := range []string{"step 300/300", "13,632,128", "loss 2.5000",
			"held-out loss 1.0000", "bleu 0.1250", s.WeightsSHA256} {
			if !strings.Contains(text, want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, text)
			}
		}
	}
}

// TestHelpFits: the help of every command fits 80 columns, and narrower terminals.
func TestHelpFits(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		for _, command := range []string{"", "train", "plan", "fit", "profile", "diff", "bench",
			"bench thesis", "devices", "version"} {
			f := &fakeTerminal{width: width}
			args := append(strings.Fields(command), "--help")
			if status := Main(t.Context(), args, f, f, Extras{}); status != exitOK {
				t.Fatalf("%v: status %d", args, status)
			}
			for _, line := range tooWide(f.String(), width) {
				t.Errorf("%v, %d columns: %q", args, width, line)
			}
		}
	}
}

// TestOutputFits: what commands print into a pipe fits 80 columns.
func TestOutputFits(t *testing.T) {
	inDir(t)
	for _, args := range [][]string{
		append(tiny, "--steps", "2", "--eval-every", "1"),
		{"plan", "--size", "s512"},
		{"plan", "--size", "s512", "--partition", "20"},
		{"devices"},
	} {
		for _, line := range tooWide(succeed(t, args...), pageWidth) {
			t.Errorf("%v: %q", args, line)
		}
	}
}

func TestAligned(t *testing.T) {
	const examples = `
  gomem a  what it does
  gomem a --b c    more
`
	for width, want := range map[int]string{
		80: "  gomem a        what it does\n  gomem a --b c  more\n",
		20: "  gomem a\n      what it does\n  gomem a --b c\n      more\n",
	} {
		if got := aligned(examples, width); got != want {
			t.Errorf("at %d columns\n%s", width, fmt.Sprint(got))
		}
	}
}

// TestPlanFits: what a plan costs fits terminals of all widths, and a pipe, on machines of the
// longest names.
func TestPlanFits(t *testing.T) {
	x := explanation{report: report{Policy: "auto", DevicePeak: 1023 << 30,
		VanillaDevice: 10230 << 30, DeviceBudget: 1023 << 30},
		cost: cost{MinDevice: 1023 << 30, Machine: strings.Repeat("machine ", 5),
			PredictedMS: 1.2345e+06, Kappa: 123456, Slower: 12.345}}
	x.Busy = busy{x.Machine, 1.2345e+06, 1.2345e+06, 1.2345e+06, 1.2345e+06, 1.2345e+06, 2}
	for _, width := range []int{0, 40, 60, 80, 120} {
		f := &fakeTerminal{width: width}
		x.printCost(f)
		x.Busy.print(f)
		printPeak(f, "device", plan.Peak{At: strings.Repeat("name/", 8), Live: 1023 << 30})
		if width == 0 {
			width = pageWidth
		}
		if bad := tooWide(f.String(), width); len(bad) > 0 {
			t.Errorf("in %d columns: %q", width, bad)
		}
	}
}
