package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/nn"
)

// Options describe a run. Model, Loader and one of Steps and Epochs are needed.
type Options struct {
	Model *nn.Model
	// Name and Size say in checkpoints which model it is; they may be empty.
	Name, Size string
	Unit       string // of what losses are means over, in the singular; "" means "example"

	Loader    data.Batches    // makes batches of the model's inputs
	Tokenizer *data.Tokenizer // saved with checkpoints and compared on resuming; may be nil
	Classes   []string        // names of the labels from 1 on, saved with checkpoints; may be nil
	Session   gomem.Options   // how to run; its seed is the run's
	Planned   *gomem.Planned  // of Targets(Model) under Session; nil: Run plans

	// Scorer makes a scorer for the evaluation after a step, or nil for none; last
	// says that it is the run's last one, where what takes long belongs. It may be
	// nil.
	Scorer func(step int, last bool) Scorer

	Steps  int     // steps to reach in all, those before a resumption included
	Epochs float64 // instead of Steps: how often to go through the data
	Seed   uint64  // selects initial values and dropout

	EvalEvery int      // steps between evaluations; 0: only at the end
	Patience  Patience // ends a run that no longer improves; the zero value never does
	// KeepBest keeps the checkpoint of the best evaluation beside the newest ones, which a run
	// with patience does anyway. Patience's Metric, Larger and Least say what is the best. The
	// file "best" names it, as "latest" does the latest, and either may be resumed.
	KeepBest    bool
	EvalBatches int // batches of held-out data an evaluation; 0 means 8

	// Save is the directory for checkpoints, without any of another run; see
	// CheckSave. Without one none are written, not even of a run that is resumed.
	Save      string
	SaveEvery int // steps between checkpoints; 0: only at the end
	// SaveAfter is how long to train between two checkpoints of which the last has taken so
	// long, such as by Young's formula, 0 if there is none; nil: what SaveEvery says. Of several
	// workers the first one's counts.
	SaveAfter func(took time.Duration) time.Duration
	Keep      int    // checkpoints to keep; 0 means 2
	Resume    string // checkpoint to start from: a file, or a directory for its latest

	// Init is a file in the safetensors format, or a directory for its latest checkpoint, of
	// which a new run takes the weights that it has; Rename maps its names. The others, and
	// the optimizer, start as without. An event says what was taken. Of a public checkpoint,
	// see Public, all parameters are taken, by their public names.
	Init   string
	Rename Renaming

	// Metrics is a directory for the run's numbers: metrics.csv, a row a step with loss, metrics,
	// those of evaluations, learning rate, seconds and peaks, and the same as files of events
	// that TensorBoard reads. A run that is resumed goes on with them. "": none are written.
	Metrics string

	Config map[string]string // what identifies the run; a checkpoint's must be equal
	// Labels are what a person calls the values of Config, where these are not
	// telling: paths beside hashes, say. They are saved, shown and not compared.
	Labels map[string]string
	// Machine is what the bits depend on; "" means the device and the instruction
	// set. A checkpoint of another one is resumed with a warning.
	Machine string

	// Parallel makes the run that of one worker of several; nil: it is alone.
	Parallel *Parallel

	Observe func(Event) // called on Run's goroutine, as Show's is; may be nil

	// After gets the session with the trained variables before it is closed, to predict
	// with: see Targets for what it computes. It may be nil, and is not called after an
	// error or if ctx is done.
	After func(ctx context.Context, s *gomem.Session) error
}

// The kinds of events.
const (
	Start   = "start"   // the session is ready; Path is the checkpoint it resumed, if any
	Init    = "init"    // weights of Options.Init were taken; Text says which
	Warning = "warning" // something that the user should know; Text says it
	Step    = "step"    // a training step is done
	Eval    = "eval"    // an evaluation is done; Loss and Metrics are of held-out data
	Save    = "save"    // a checkpoint is complete; Path is its file
	Stop    = "stop"    // the run ends early; Text says why
	View    = "view"    // workers have come or gone; Text says who, Workers how many go on
	End     = "end"     // nothing follows; Summary is there if the run succeeded
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
	Unit           string        // of Options
	UnitsPerSecond float64       // Step: of this step
	StepTime       time.Duration // Step: batch and step together
	DeviceBytes    int64         // Step: the device's peak so far
	HostBytes      int64         // Step: the host's peak so far
	CopyBytes      int64         // Step: copied between device and host, both ways
	Path           string        // Start, Save: the checkpoint
	Text           string        // Warning, Stop, View: one line
	Samples        []string      // Eval: of a scorer that is a Sampler
	Summary        *Summary      // End: what Run returns
	Workers        int           // Step, View: of Parallel, 0 of a run alone
	Exchanged      *Exchanged    // Step: by all workers since the start; nil of a run alone
}

// maxSteps keeps the step counter, which models get as a 32-bit float, exact.
const maxSteps = 1 << 24

// ErrOption says which option no run can have, and why, on one line.
type ErrOption struct {
	Option string // in words: "steps"
	Err    error
}

// Error gives option and cause.
func (e *ErrOption) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap is the cause.
func (e *ErrOption) Unwrap() error { return e.Err }

func optionf(option, format string, args ...any) error {
	return &ErrOption{Option: option, Err: fmt.Errorf(format, args...)}
}

// unit is of what losses are means over.
func (o Options) unit() string { return cmp.Or(o.Unit, "example") }

// Validate reports the first option that no run can have, before anything is
// planned: an *[ErrOption], or an *[ErrCheckpoint] for trouble with the paths to
// save to and resume from.
func (o Options) Validate() error {
	if o.Loader == nil {
		return optionf("loader", "a run needs one")
	}
	for _, check := range []func() error{o.Parallel.validate, o.validateCounts, o.validateModel,
		o.validateLength, o.validateSession, o.validatePlans, o.validateBatches, o.validatePaths,
		o.validateFactors} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) validateCounts() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"steps", o.Steps}, {"steps between evaluations", o.EvalEvery},
		{"batches an evaluation", o.EvalBatches}, {"steps between checkpoints", o.SaveEvery},
		{"checkpoints to keep", o.Keep},
	} {
		if f.value < 0 {
			return optionf(f.name, "%d is negative", f.value)
		}
	}
	if o.SaveEvery > 0 && o.SaveAfter != nil {
		return optionf("steps between checkpoints", "there is a time between them as well")
	}
	if (o.SaveEvery > 0 || o.SaveAfter != nil) && o.Save == "" && o.leads() {
		return optionf("steps between checkpoints", "no directory to save to is given")
	}
	return o.validatePatience()
}

func (o Options) validateLength() error {
	steps, most := o.steps(), o.mostSteps()
	switch {
	case math.IsNaN(o.Epochs) || o.Epochs < 0:
		return optionf("epochs", "%v is not a positive number", o.Epochs)
	case o.Steps > 0 && o.Epochs > 0:
		return optionf("steps", "steps and epochs are both given: choose one")
	case !(steps > 0):
		return optionf("steps", "nothing to do: give steps or epochs, 1 or more")
	case steps > float64(most):
		return optionf("steps", "%.4g are too many: at most %d are possible", steps, most)
	}
	return nil
}

// mostSteps is how many steps can be counted: every execution of an objective
// has a number.
func (o Options) mostSteps() int {
	turns := 1
	for _, objective := range o.Model.Objectives {
		turns = max(turns, objective.Times)
	}
	return maxSteps / (turns * o.workers())
}

// steps is the number of steps to reach; a float as epochs may be huge.
func (o Options) steps() float64 {
	if o.Epochs > 0 {
		return math.Ceil(o.Epochs * float64(o.Loader.StepsPerEpoch()) /
			float64(o.Model.Executions()*o.workers()))
	}
	return float64(o.Steps)
}

// batches is how many there are in all passes over the data; 0 if the run counts steps.
func (o Options) batches() int {
	if o.Epochs == 0 {
		return 0
	}
	return int(math.Ceil(o.Epochs * float64(o.Loader.StepsPerEpoch())))
}

func (o Options) validateSession() error {
	if err := o.Session.Validate(); err != nil {
		return &ErrOption{Option: "session", Err: err}
	}
	return o.validateMesh()
}

// validateMesh demands that the processes of a mesh are the workers.
func (o Options) validateMesh() error {
	processes := 1
	if m := o.Session.Mesh; m != nil {
		processes = m.Mesh.Processes()
	}
	switch {
	case !o.Parallel.meshed() && processes > 1:
		return optionf("workers", "the mesh is for %d processes, which are no workers of one mesh",
			processes)
	case !o.Parallel.meshed():
		return nil
	case processes != o.Parallel.Workers || o.Session.Rank != o.Parallel.Rank:
		return optionf("workers", "%d of %d is not process %d of the mesh's %d", o.Parallel.Rank,
			o.Parallel.Workers, o.Session.Rank, processes)
	}
	return nil
}

// validatePlans demands that plans which are made already are the run's.
func (o Options) validatePlans() error {
	if o.Planned == nil {
		return nil
	}
	names := func(targets []gomem.Target) (out []string) {
		for _, t := range targets {
			out = append(out, t.Name)
		}
		return out
	}
	want, have := names(Targets(o.Model)), names(o.Planned.Targets)
	if o.Planned.Model != o.Model.Graph || !slices.Equal(want, have) ||
		len(o.Planned.Results) != len(want) {
		return optionf("plans", "they are of %q of another model or of other targets, want %q",
			have, want)
	}
	return nil
}

// validateBatches demands that the loader's batches fit the model.
func (o Options) validateBatches() error {
	b := o.Loader.Train(0)
	if f, ok := o.Loader.(data.Fallible); ok && f.Err() != nil {
		return f.Err()
	}
	if !fits(o.Model, b) {
		return optionf("loader", "it makes batches of %s, the model's inputs are %s",
			types(b.Inputs), inputs(o.Model))
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
func inputs(m *nn.Model) string {
	var out []string
	for _, v := range m.Data {
		out = append(out, fmt.Sprintf("%s %s", v.Node.Name, v.Type()))
	}
	return strings.Join(out, ", ")
}

func (o Options) validatePaths() error {
	if !gomem.Computes(o.Session.Device) && (o.Save != "" || o.Resume != "" || o.Init != "") {
		return optionf("device", "%s computes nothing: it can neither save nor resume",
			o.Session.Device)
	}
	switch {
	case o.Init != "" && o.Resume != "":
		return optionf("initial weights", "a run that is resumed has its own: leave one out")
	case o.Init != "" && !IsPublic(o.Init):
		if _, err := find(o.Init); err != nil {
			return err
		}
	}
	if o.Resume != "" {
		if _, err := Inspect(o.Resume); err != nil {
			return err
		}
	}
	if err := o.checkRecord(); err != nil {
		return err
	}
	if o.Save == "" || !o.leads() {
		return nil
	}
	if err := o.savable(); err != nil {
		return err
	}
	return CheckSave(o.Save, o.Resume)
}

// savable demands that what a checkpoint says of the run can be written.
func (o Options) savable() error {
	vocabulary, err := vocabulary(o.Tokenizer)
	if err != nil {
		return &ErrOption{Option: "tokenizer", Err: err}
	}
	r := newRun(o)
	r.vocabulary = vocabulary
	metadata, err := r.checkpoint().metadata()
	if err == nil {
		var vars []graph.Value
		for _, n := range o.Model.Graph.Variables() {
			vars = append(vars, n.Value(0))
		}
		err = safetensors.Check(entries(vars), metadata)
	}
	for _, name := range o.Classes {
		if err == nil && !utf8.ValidString(name) {
			err = fmt.Errorf("class %q is not UTF-8", name)
		}
	}
	for _, strings := range []map[string]string{o.Config, o.Labels} {
		for k, v := range strings {
			if err == nil && !(utf8.ValidString(k) && utf8.ValidString(v)) {
				err = fmt.Errorf("%q is %q, which is not UTF-8", k, v)
			}
		}
	}
	if err != nil {
		return &ErrOption{Option: "checkpoints", Err: err}
	}
	return nil
}

// holds reports whether a checkpoint to resume is that of a directory or one of
// the files in it.
func holds(dir, resume string) bool {
	return resume != "" && (sameFile(dir, resume) || sameFile(dir, filepath.Dir(resume)))
}

// sameFile reports whether two paths lead to one thing that exists.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, missing := os.Stat(b)
	return err == nil && missing == nil && os.SameFile(first, second)
}

// orDefault is n, or def if n is 0.
func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}
