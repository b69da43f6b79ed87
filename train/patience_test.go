package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/nn"
)

// TestBest counts evaluations since the best one.
func TestBest(t *testing.T) {
	var b Best
	p := Patience{Evaluations: 2, Least: 0.1}
	for i, c := range []struct {
		x      float64
		better bool
		since  int
	}{{3, true, 0}, {2.95, false, 1}, {2.5, true, 0}, {2.45, false, 1}, {9, false, 2}} {
		if got := b.See(p, i+1, c.x); got != c.better || b.Since != c.since {
			t.Errorf("evaluation %d of %v: better %t, %+v", i, c.x, got, b)
		}
	}
	if !(Patience{Larger: true}).Better(2, 1) || (Patience{}).Better(2, 1) {
		t.Error("larger and smaller are mixed up")
	}
}

// worsening is a toy whose held-out loss rises from the start: its learning rate does
// harm.
func worsening(t *testing.T) Options {
	m := toy(toyVocab, unigram{})
	m.Schedule = nn.Constant(60)
	o := toyOptions(t, m)
	o.Steps, o.EvalEvery, o.Patience = 40, 2, Patience{Evaluations: 3}
	return o
}

// TestPatienceEndsARun: a run that gets worse ends early, and keeps the checkpoint of its
// best evaluation beside the newest.
func TestPatienceEndsARun(t *testing.T) {
	o := worsening(t)
	o.Save, o.SaveEvery, o.Keep = t.TempDir(), 2, 1
	var stops, ends int
	o.Observe = func(e Event) {
		switch e.Kind {
		case Stop:
			stops++
		case End:
			ends++
		}
	}
	s, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !s.StoppedEarly || s.Steps >= o.Steps || s.Steps != s.BestStep+6 || stops != 1 || ends != 1 {
		t.Errorf("%+v, told %d times", s, stops)
	}
	for _, step := range []int{s.BestStep, s.Steps} {
		if _, err := Inspect(filepath.Join(o.Save, fileName(step))); err != nil {
			t.Error(err)
		}
	}
}

// TestPatienceSurvivesResuming: a run in two parts ends where one without a break does.
func TestPatienceSurvivesResuming(t *testing.T) {
	whole := worsening(t)
	want, losses := mustRun(t, whole)
	for _, steps := range []int{1, 2, 3, 4} {
		first := whole
		first.Steps, first.Save = steps, t.TempDir()
		_, begin := mustRun(t, first)
		second := whole
		second.Resume = first.Save
		got, end := mustRun(t, second)
		if got.Steps != want.Steps || got.BestStep != want.BestStep ||
			got.WeightsSHA256 != want.WeightsSHA256 || len(begin)+len(end) != len(losses) {
			t.Errorf("after %d steps:\nstraight %+v\nresumed  %+v", steps, want, got)
		}
	}
}

func TestPatienceRefuses(t *testing.T) {
	for want, p := range map[string]Patience{
		"-1 evaluations":            {Evaluations: -1},
		"improvement of NaN":        {Evaluations: 1, Least: math.NaN()},
		"improvement of -1":         {Evaluations: 1, Least: -1},
		"after how many":            {Metric: "accuracy"},
		"no metric \"bleu\": watch": {Evaluations: 1, Metric: "bleu"},
	} {
		o := toyOptions(t, toy(toyVocab, unigram{}))
		o.EvalEvery, o.Patience = 1, p
		_, err := Run(context.Background(), o)
		if _, ok := errors.AsType[*ErrOption](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Patience.Evaluations = 1
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "no evaluations") {
		t.Errorf("patience without evaluations: %v", err)
	}
}

// TestKeepBest: a run keeps the checkpoint of its best evaluation, under a name that can be
// resumed and inspected, whether it is interrupted or not, and goes on to its end.
func TestKeepBest(t *testing.T) {
	run := func(parts ...int) (Summary, string) {
		t.Helper()
		dir := t.TempDir()
		var s Summary
		for i, steps := range parts {
			o := worsening(t)
			o.Patience, o.KeepBest, o.Steps = Patience{}, true, steps
			o.Save, o.SaveEvery, o.Keep = dir, 5, 1
			if i > 0 {
				o.Resume = dir
			}
			s, _ = mustRun(t, o)
		}
		return s, dir
	}
	want, dir := run(20)
	if want.Steps != 20 || want.BestStep == 0 || want.BestStep == 20 || want.StoppedEarly {
		t.Fatalf("%+v", want)
	}
	for _, parts := range [][]int{{1, 20}, {3, 20}, {4, 7, 20}} {
		got, other := run(parts...)
		if got.BestStep != want.BestStep || got.WeightsSHA256 != want.WeightsSHA256 ||
			!slices.Equal(names(t, dir), names(t, other)) {
			t.Errorf("in parts %v: %+v, %q", parts, got, names(t, other))
		}
	}
	best, err := Inspect(filepath.Join(dir, "best"))
	if err != nil || best.Step != want.BestStep || best.Best.Step != want.BestStep {
		t.Errorf("the best is %+v, %v", best, err)
	}
	latest, err := Inspect(filepath.Join(dir, "latest"))
	if err != nil || latest.Step != 20 {
		t.Errorf("the latest is %+v, %v", latest, err)
	}
	o := worsening(t)
	o.Patience, o.KeepBest, o.Steps = Patience{}, true, 20
	o.Save, o.Resume = dir, filepath.Join(dir, "best")
	again, _ := mustRun(t, o)
	if again.ResumedFrom != want.BestStep || again.WeightsSHA256 != want.WeightsSHA256 {
		t.Errorf("%+v", again)
	}
}

// TestBestRefuses: a run cannot keep the best of evaluations that there are none of.
func TestBestRefuses(t *testing.T) {
	for want, edit := range map[string]func(o *Options){
		"keeping the best: there are no evaluations": func(o *Options) { o.EvalEvery = 0 },
		"keeping the best: no directory to save to":  func(o *Options) { o.Save = "" },
		"keeping the best: there is nothing held out": func(o *Options) {
			o.Loader = noneHeld{o.Loader}
		},
	} {
		o := toyOptions(t, toy(toyVocab, unigram{}))
		o.EvalEvery, o.KeepBest, o.Save = 1, true, t.TempDir()
		edit(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// noneHeld holds nothing out.
type noneHeld struct{ data.Batches }

func (noneHeld) HeldOutBatches() int { return 0 }
