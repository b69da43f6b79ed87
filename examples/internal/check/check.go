// Package check is what the tests of all examples have in common.
package check

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// Lines demands that main.go has so many lines at most, without those that are blank or
// comments only.
func Lines(t *testing.T, most int) {
	t.Helper()
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := Count(string(text)); n > most {
		t.Errorf("main.go has %d lines, want %d at most", n, most)
	}
}

// Count is the number of lines of a program but for those that are blank or comments only.
func Count(program string) (n int) {
	for line := range strings.Lines(program) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// Third demands that a budget of device memory is a third at most of what vanilla takes,
// and that a few steps within it are exact: the peak is the one that was predicted, and the
// losses and weights are vanilla's, to the bit.
func Third(t *testing.T, m *nn.Model, batches data.Batches, budget int64) {
	t.Helper()
	p, err := gomem.Plan(t.Context(), m.Graph, gomem.Options{Policy: planner.Vanilla},
		train.Targets(m)...)
	if err != nil {
		t.Fatal(err)
	}
	vanilla := p.Peak(space.Device)
	if 3*budget > vanilla {
		t.Errorf("the budget is %d bytes, want %d at most, a third of vanilla's %d", budget,
			vanilla/3, vanilla)
	}
	run := func(s gomem.Options) train.Summary {
		s.Threads = 1
		sum, err := train.Run(context.Background(), train.Options{Model: m, Loader: batches,
			Steps: 3, EvalBatches: 1, Session: s})
		if err != nil {
			t.Fatal(err)
		}
		if sum.ActualDevicePeak != sum.PredictedDevicePeak {
			t.Errorf("the peak is %d bytes, predicted are %d", sum.ActualDevicePeak,
				sum.PredictedDevicePeak)
		}
		return sum
	}
	within := run(gomem.Options{Policy: planner.Auto, DeviceBytes: budget})
	free := run(gomem.Options{Policy: planner.Vanilla})
	if within.ActualDevicePeak > budget || within.LossLast != free.LossLast ||
		within.EvalLoss != free.EvalLoss || within.WeightsSHA256 != free.WeightsSHA256 {
		t.Errorf("within %d bytes %+v,\nwithout a budget %+v", budget, within, free)
	}
	t.Logf("budget %d bytes, vanilla %d, the peak %d", budget, vanilla, within.ActualDevicePeak)
}
