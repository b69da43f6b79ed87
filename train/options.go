package train

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/models"
)

// Options describe a run. Model, Loader and one of Steps and Epochs are needed.
type Options struct {
	Model     *models.Model
	Loader    data.Batches    // makes batches of the model's inputs
	Tokenizer *data.Tokenizer // saved with checkpoints and compared on resuming; may be nil
	Session   gomem.Options   // how to run

	// Scorer makes a scorer for the evaluation after a step, or nil for none; last
	// says that it is the run's last one, where what takes long belongs. It may be
	// nil.
	Scorer func(step int, last bool) Scorer

	Steps  int     // steps to reach in all, those before a resumption included
	Epochs float64 // instead of Steps: how often to go through the data
	Seed   uint64  // selects initial values and dropout

	EvalEvery   int // steps between evaluations; 0: only at the end
	EvalBatches int // batches of held-out data an evaluation; 0 means 8

	Save      string // directory for checkpoints, without any of another run; "": none are written
	SaveEvery int    // steps between checkpoints; 0: only at the end
	Keep      int    // checkpoints to keep; 0 means 2
	Resume    string // checkpoint to start from: a file, or a directory for its latest

	Config  map[string]string // what identifies the run; a checkpoint's must be equal
	Observe func(Event)       // called on Run's goroutine; may be nil
}

// The kinds of events.
const (
	Start = "start" // the session is ready; Path is the checkpoint it resumed, if any
	Step  = "step"  // a training step is done
	Eval  = "eval"  // an evaluation is done; Loss and Metrics are of held-out data
	Save  = "save"  // a checkpoint is complete; Path is its file
)

// Event is something that happened in a run.
type Event struct {
	Kind        string
	Step, Steps int // steps done, and to reach
	// of the first objective; of held-out data, the mean over units
	Loss         float64
	LearningRate float64            // Step: as fed
	Metrics      map[string]float64 // the model's, by name
	// Step: target tokens, images or utterances in a batch, without padding
	Units          int
	UnitsPerSecond float64       // Step: of this step
	StepTime       time.Duration // Step: batch and step together
	DeviceBytes    int64         // Step: the device's peak so far
	HostBytes      int64         // Step: the host's peak so far
	CopyBytes      int64         // Step: copied between device and host, both ways
	Path           string        // Start, Save: the checkpoint
}

// maxSteps keeps the step counter, which models get as a 32-bit float, exact.
const maxSteps = 1 << 24

// Validate reports the first option that no run can have, on one line.
func (o Options) Validate() error {
	if o.Model == nil || o.Loader == nil {
		return errors.New("a run needs a model and a loader")
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"steps", o.Steps}, {"steps between evaluations", o.EvalEvery}, {"batches an evaluation",
			o.EvalBatches},
		{"steps between checkpoints", o.SaveEvery}, {"checkpoints to keep", o.Keep},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s: %d is negative", f.name, f.value)
		}
	}
	if o.SaveEvery > 0 && o.Save == "" {
		return errors.New("steps between checkpoints are given, but no directory to save to")
	}
	for _, check := range []func() error{o.validateLength, o.validateModel, o.Session.Validate, o.validatePaths} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) validateLength() error {
	steps := o.steps()
	switch {
	case math.IsNaN(o.Epochs) || o.Epochs < 0:
		return fmt.Errorf("epochs: %v is not a positive number", o.Epochs)
	case o.Steps > 0 && o.Epochs > 0:
		return errors.New("steps and epochs are both given: choose one")
	case steps == 0:
		return errors.New("nothing to do: give steps or epochs, 1 or more")
	case steps > maxSteps:
		return fmt.Errorf("%.0f steps are too many: at most %d are possible", steps, maxSteps)
	}
	return nil
}

// steps is the number of steps to reach; a float as epochs may be huge.
func (o Options) steps() float64 {
	if o.Epochs > 0 {
		return math.Ceil(o.Epochs * float64(o.Loader.StepsPerEpoch()) / float64(o.Model.Executions()))
	}
	return float64(o.Steps)
}

// validateModel demands that the loader's batches fit the model, and that what
// a run shows of it are numbers.
func (o Options) validateModel() error {
	if b := o.Loader.Train(0); !fits(o.Model, b) {
		return fmt.Errorf("the loader makes batches of %s, the model's inputs are %s",
			types(b.Inputs), inputs(o.Model))
	}
	losses := fetches(o.Model.EvalLoss, o.Model.EvalMetrics)
	for _, objective := range o.Model.Objectives {
		losses = append(losses, fetches(objective.Loss, objective.Metrics)...)
	}
	for _, v := range losses {
		if !v.Type().Equal(tensor.Of(graph.F32)) {
			return fmt.Errorf("%s of the model is %s, want f32[]", v, v.Type())
		}
	}
	return nil
}

// types lists the types of tensors.
func types(ts []gomem.Tensor) string {
	var out []string
	for _, t := range ts {
		out = append(out, t.Type.String())
	}
	return strings.Join(out, ", ")
}

// inputs lists a model's data with names and types.
func inputs(m *models.Model) string {
	var out []string
	for _, v := range m.Data {
		out = append(out, fmt.Sprintf("%s %s", v.Node.Name, v.Type()))
	}
	return strings.Join(out, ", ")
}

func (o Options) validatePaths() error {
	if o.Session.Device == gomem.Null && (o.Save != "" || o.Resume != "") {
		return fmt.Errorf("device %s computes nothing: it can neither save nor resume", gomem.Null)
	}
	if o.Resume != "" {
		if _, err := os.Stat(o.Resume); err != nil {
			return &ErrCheckpoint{Path: o.Resume, Err: bare(err)}
		}
	}
	if o.Save == "" {
		return nil
	}
	if err := writable(o.Save); err != nil {
		return &ErrCheckpoint{Path: o.Save, Err: err}
	}
	if l, err := list(o.Save); err == nil && len(l.steps) > 0 && !holds(o.Save, o.Resume) {
		return &ErrCheckpoint{Path: o.Save,
			Err: errors.New("the directory has checkpoints of another run: resume that one, or " +
				"save to another directory")}
	}
	return nil
}

// holds reports whether a checkpoint to resume is that of a directory or one of
// the files in it.
func holds(dir, resume string) bool {
	d, err := os.Stat(dir)
	for _, path := range []string{resume, filepath.Dir(resume)} {
		if r, missing := os.Stat(path); err == nil && missing == nil && resume != "" &&
			os.SameFile(d, r) {
			return true
		}
	}
	return false
}

// orDefault is n, or def if n is 0.
func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}
