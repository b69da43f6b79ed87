package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
)

// resumes checks that a run of o that stops half way and is resumed is the run
// that never stopped, bit for bit, even under another plan.
func resumes(t *testing.T, o Options) {
	t.Helper()
	o.Save = filepath.Join(t.TempDir(), "whole")
	want, losses := mustRun(t, o)

	half := o
	half.Save, half.Steps = filepath.Join(t.TempDir(), "half"), o.Steps/2
	first, begin := mustRun(t, half)
	rest := half
	rest.Steps, rest.Resume = o.Steps, half.Save
	rest.Session.Partition, rest.Session.NoPlacement, rest.Session.Threads = 3, true, 2
	last, end := mustRun(t, rest)

	if got := slices.Concat(begin, end); !slices.Equal(got, losses) || len(got) != o.Steps {
		t.Errorf("losses differ:\nstraight %v\nresumed  %v", losses, got)
	}
	if last.WeightsSHA256 != want.WeightsSHA256 || last.WeightsSHA256 == first.WeightsSHA256 ||
		last.EvalLoss != want.EvalLoss {
		t.Errorf("straight %+v\nfirst    %+v\nresumed  %+v", want, first, last)
	}
	if last.ResumedFrom != half.Steps || last.Steps != o.Steps {
		t.Errorf("resumed from %d, reached %d", last.ResumedFrom, last.Steps)
	}
}

func TestResumeIsBitIdentical(t *testing.T) { resumes(t, toyOptions(t, toy(toyVocab, unigram{}))) }

// TestLearns: the held-out loss falls, and peaks are exact.
func TestLearns(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.EvalEvery, o.Steps = 5, 40
	events := watch(&o)
	s, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var evals []float64
	for _, e := range *events {
		if e.Kind == Eval {
			evals = append(evals, e.Loss)
		}
	}
	if len(evals) != 8 || evals[7] > 0.9*evals[0] || evals[7] != s.EvalLoss ||
		s.LossLast > 0.9*s.LossFirst || s.EvalMetrics["accuracy"] == 0 {
		t.Errorf("held-out losses %v, summary %+v", evals, s)
	}
	if s.ActualDevicePeak != s.PredictedDevicePeak || s.ActualHostPeak != s.PredictedHostPeak ||
		s.ActualDevicePeak == 0 {
		t.Errorf("peaks %+v", s.Usage)
	}
}

// TestEvaluationsChangeNothing: how often a run evaluates and saves does not
// show in its losses or weights.
func TestEvaluationsChangeNothing(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	want, losses := mustRun(t, o)
	o.EvalEvery, o.EvalBatches, o.Save, o.SaveEvery = 3, 1, t.TempDir(), 4
	got, again := mustRun(t, o)
	if got.WeightsSHA256 != want.WeightsSHA256 || !slices.Equal(losses, again) {
		t.Errorf("%+v, then %+v", want, got)
	}
}

// TestEvents: kinds and steps in order, with what each says.
func TestEvents(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Steps, o.EvalEvery, o.Save, o.SaveEvery = 4, 2, t.TempDir(), 3
	events := watch(&o)
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range *events {
		got = append(got, fmt.Sprint(e.Kind, e.Step))
		ok := e.Steps == 4
		switch e.Kind {
		case Step:
			ok = ok && e.Loss > 0 && e.LearningRate > 0 && e.Units > 0 && e.UnitsPerSecond > 0 &&
				e.StepTime > 0 && e.DeviceBytes > 0 && e.CopyBytes > 0 && len(e.Metrics) == 1
		case Save:
			ok = ok && e.Path == filepath.Join(o.Save, fileName(e.Step))
		}
		if !ok {
			t.Errorf("%+v", e)
		}
	}
	if want := "start0 step1 step2 eval2 step3 save3 step4 save4 eval4 end4"; strings.Join(got,
		" ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestInterrupt: the step that is running is finished and saved, and the run
// can go on from there.
func TestInterrupt(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	want, losses := mustRun(t, o)

	ctx, stop := context.WithCancel(context.Background())
	o.Save = t.TempDir()
	var begin []float64
	o.Observe = func(e Event) {
		if e.Kind == Step {
			begin = append(begin, e.Loss)
		}
		if e.Step == 7 {
			stop()
		}
	}
	s, err := Run(ctx, o)
	if err != nil || !s.Interrupted || s.Steps != 7 ||
		s.Checkpoint != filepath.Join(o.Save, fileName(7)) || s.EvalBatches != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	o.Resume, o.Observe = s.Checkpoint, nil
	last, end := mustRun(t, o)
	if last.WeightsSHA256 != want.WeightsSHA256 ||
		!slices.Equal(slices.Concat(begin, end), losses) {
		t.Errorf("straight %+v, resumed %+v", want, last)
	}
}

// TestInterruptWithoutSave: nothing is written, and that is no error.
func TestInterruptWithoutSave(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	ctx, stop := context.WithCancel(context.Background())
	o.Observe = func(Event) { stop() }
	s, err := Run(ctx, o)
	if err != nil || !s.Interrupted || s.Steps != 0 || s.Checkpoint != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that cannot even start: %v", err)
	}
}

// TestDiverging: a loss that is NaN stops the run, and so does a variable that
// is about to be saved. The last good checkpoint survives and is named.
func TestDiverging(t *testing.T) {
	for _, c := range []struct {
		u    unigram
		what string
	}{{unigram{NaNLoss: 6}, "loss"}, {unigram{NaNGrads: 6}, "variable w"}} {
		o := toyOptions(t, toy(toyVocab, c.u))
		o.Save, o.SaveEvery = t.TempDir(), 3
		s, err := Run(context.Background(), o)
		e, ok := errors.AsType[*ErrNonFinite](err)
		if !ok || e.Step != 6 || e.What != c.what || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v (%T)", err, err)
		}
		good := filepath.Join(o.Save, fileName(3))
		if e.Checkpoint != good || s.Checkpoint != good ||
			!slices.Equal(names(t, o.Save), []string{latestName, fileName(3)}) {
			t.Errorf("%v; the directory has %v", err, names(t, o.Save))
		}
		if c, err := Inspect(o.Save); err != nil || c.Step != 3 {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}

// TestEpochs: a run of 1.5 epochs has as many steps.
func TestEpochs(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Steps, o.Epochs = 0, 1.5
	s, _ := mustRun(t, o)
	if n := o.Loader.StepsPerEpoch(); s.Steps != (3*n+1)/2 {
		t.Errorf("%d steps for 1.5 epochs of %d", s.Steps, n)
	}
}

// TestNullDevice: a run that computes nothing has peaks and no weights.
func TestNullDevice(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Session.Device = gomem.Null
	s, _ := mustRun(t, o)
	if s.WeightsSHA256 != "" || s.ActualDevicePeak != s.PredictedDevicePeak {
		t.Errorf("%+v", s)
	}
}

// TestImpossibleBudget: the façade's error comes through.
func TestImpossibleBudget(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Session.DeviceBytes = 100
	_, err := Run(context.Background(), o)
	if _, ok := errors.AsType[*gomem.ErrOutOfMemory](err); !ok {
		t.Errorf("in 100 bytes: %v", err)
	}
}

// TestSummaryJSON: the keys that programs rely on.
func TestSummaryJSON(t *testing.T) {
	s, _ := mustRun(t, toyOptions(t, toy(toyVocab, unigram{})))
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"steps", "loss_first", "loss_last", "eval_loss", "units_per_s", "step_ms_median",
		"predicted_device_peak_bytes", "actual_device_peak_bytes", "predicted_host_peak_bytes",
		"actual_host_peak_bytes", "weights_sha256",
	} {
		if v, ok := got[key]; !ok || v == 0.0 || v == "" {
			t.Errorf("%s is %v", key, v)
		}
	}
}

// TestAfter: the session that is left has the trained weights, and can be stepped; what is
// wrong there is the run's error, and a run that failed or was stopped has no afterwards.
func TestAfter(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	var sum string
	o.After = func(ctx context.Context, s *gomem.Session) error {
		var err error
		sum, err = weightsSHA256(s)
		b := o.Loader.HeldOut(0)
		_, stepped := s.Step(ctx, evaluation, feeds(o.Model, b.Inputs, 7, moment{}))
		return errors.Join(err, stepped)
	}
	var end *Summary
	o.Observe = func(e Event) {
		if e.Kind == End {
			end = e.Summary
		}
	}
	s, err := Run(context.Background(), o)
	if err != nil || sum != s.WeightsSHA256 || end == nil || end.WeightsSHA256 != sum {
		t.Errorf("%v: weights %s, the summary's %s, the event's %+v", err, sum, s.WeightsSHA256,
			end)
	}
	failure := errors.New("no paper")
	o.After = func(context.Context, *gomem.Session) error { return failure }
	if _, err := Run(context.Background(), o); !errors.Is(err, failure) || end != nil {
		t.Errorf("%v, want %v; the event has %+v", err, failure, end)
	}
	ctx, stop := context.WithCancel(context.Background())
	o.Observe = func(Event) { stop() }
	if _, err := Run(ctx, o); err != nil {
		t.Errorf("a run that was stopped went on to what comes after it: %v", err)
	}
}
