package command

import (
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// TestRates: what is not given is the model's own; the peak is the one that was asked for,
// after the warm-up.
func TestRates(t *testing.T) {
	warmup := whole(10)
	for _, own := range []nn.Schedule{nn.Constant(0.5), nn.InverseSqrt{Scale: 2, Warmup: 16},
		nn.Stepwise{Rate: 0.5, Warmup: 16}, nn.CosineDecay{Rate: 0.5, Warmup: 16, Total: 100}} {
		for _, form := range []string{"", "constant", "linear", "cosine", "inverse-sqrt", "step"} {
			m := &models.Model{}
			m.Schedule = own
			numbers := map[string]string{}
			f := rateFlags{Schedule: form, LR: 0.25, Warmup: &warmup}
			if err := f.apply(m, 100, numbers); err != nil {
				t.Fatal(err)
			}
			peak := 0.0
			for step := range 100 {
				peak = max(peak, float64(m.Schedule.At(step)))
			}
			if math.Abs(peak-0.25) > 1e-6 || math.Abs(float64(m.Schedule.At(9))-0.25) > 1e-6 ||
				m.Schedule.At(0) >= 0.05 || numbers["learning rate"] == "" {
				t.Errorf("%q of %+v: %+v has a peak of %v; %v", form, own, m.Schedule, peak,
					numbers)
			}
			last := float64(m.Schedule.At(99))
			if want := map[string]float64{"constant": 0.25, "linear": 0.25 / 90, "cosine": 0.025,
				"inverse-sqrt": 0.25 * math.Sqrt(0.1), "step": 0.0025}[form]; form != "" &&
				math.Abs(last-want) > 1e-3 {
				t.Errorf("%s ends at %v, want %v", form, last, want)
			}
		}
		m := &models.Model{}
		m.Schedule = own
		if err := (rateFlags{LR: 1}).apply(m, 100, map[string]string{}); err != nil {
			t.Error(err)
		}
		got, want := shapeOf(m.Schedule).form, shapeOf(own).form
		if want != "constant" && got != want {
			t.Errorf("another peak makes %s of %s", got, want)
		}
	}
}

// TestRateOfARun: the rate is in the lines of steps, and a run that is resumed has to keep
// it.
func TestRateOfARun(t *testing.T) {
	inDir(t)
	args := append(tiny, "--model", "transformer", "--lr", "0.125", "--schedule", "linear",
		"--warmup", "1", "--bleu", "0")
	out := succeed(t, append(args, "--steps", "5", "--save", "run", "--json")...)
	for _, want := range []string{`"learning_rate":0.125`, `"learning_rate":0.03125`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	for _, c := range []struct{ flags, says string }{
		{"--steps 9 --resume run", "over 5 steps"},
		{"--steps 3 --warmup 3 --resume none", "none"},
	} {
		o := invoke(t, append(append([]string{}, args...), strings.Fields(c.flags)...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%s: %+v", c.flags, o)
		}
	}
	for _, flags := range []string{"--lr 0", "--lr x", "--schedule round", "--warmup -1"} {
		if o := invoke(t, append(append([]string{}, tiny...),
			strings.Fields(flags)...)...); o.status != exitUsage {
			t.Errorf("%s: %+v", flags, o)
		}
	}
}
