package train

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
)

// Checkpoint says which run a checkpoint belongs to, and how far that was.
type Checkpoint struct {
	Path        string            // its file
	Model, Size string            // of Options
	Config      map[string]string // of Options
	Labels      map[string]string // of Options
	Step        int               // steps done
	Seed        uint64
	Tokenizer   string   // the vocabulary as data.Tokenizer writes it, "" if there is none
	Machine     string   // what the bits depend on: device and instruction set
	Best        *Best    // what a run with patience knows; nil without
	Classes     []string // of Options; nil in checkpoints that do not say
	Workers     int      // of Options.Parallel; 0 or 1 of a run alone
	Executions  int      // of objectives by all workers, each with a batch of its own
	Job         string   // a random id of the job, where others may take a worker's place
	Epoch       int64    // of that, in which it was saved; they count the groups of its workers
	Base        *Base    // has the variables that are not in the checkpoint; nil: it has all
	Evaluated   int      // the step of the last evaluation; 0 if there was none, or none is told
}

// ErrCheckpoint says what is wrong with a checkpoint, or with the place to keep
// it.
type ErrCheckpoint struct {
	Path     string // the file or the directory
	Previous string // the checkpoint before a damaged one, if there is one
	Err      error
}

// Error is one line.
func (e *ErrCheckpoint) Error() string {
	s := fmt.Sprintf("checkpoint %s: %v", legible.Text(e.Path), e.Err)
	if e.Previous != "" {
		s += "; resume from the one before it, " + legible.Text(e.Previous)
	}
	return s
}

// Unwrap is the cause.
func (e *ErrCheckpoint) Unwrap() error { return e.Err }

// bare is an error of a file without what ErrCheckpoint says anyway.
func bare(err error) error {
	if e, ok := errors.AsType[*safetensors.Error](err); ok {
		return &safetensors.Error{Tensor: e.Tensor, Err: bare(e.Err)}
	}
	if e, ok := errors.AsType[*gguf.Error](err); ok {
		return bare(e.Err)
	}
	return regular.Bare(err)
}

// unwritten is an error of writing to a path, or as it is that of a checkpoint that is read for it.
func unwritten(path string, err error) error {
	if err == nil {
		return nil
	}
	if e, read := errors.AsType[*ErrCheckpoint](err); read {
		return e
	}
	return &ErrCheckpoint{Path: path, Err: bare(err)}
}

// The keys of the metadata, and the version of their meaning.
const (
	keyFormat    = "gomem.format"
	keyModel     = "gomem.model"
	keySize      = "gomem.size"
	keyConfig    = "gomem.config" // a JSON object of strings
	keyLabels    = "gomem.labels" // another
	keyStep      = "gomem.step"
	keySeed      = "gomem.seed"
	keyTokenizer = "gomem.tokenizer"
	keyMachine   = "gomem.machine"
	keyBase      = "gomem.base"    // a JSON object, if there is one
	keyBest      = "gomem.best"    // a JSON object, if there is one
	keyClasses   = "gomem.classes" // a JSON array of strings, if there are any
	keyWorkers   = "gomem.workers" // if there are several
	// if they are not what as many steps of one worker have
	keyExecutions = "gomem.executions"
	keyEvaluated  = "gomem.evaluated" // if anything was
	keyJob        = "gomem.job"       // if others may take a worker's place, and then an epoch
	keyEpoch      = "gomem.epoch"
	format        = "2" // 1 had no checksums
)

// metadata is what parse reads.
func (c Checkpoint) metadata() (map[string]string, error) {
	config, err := json.Marshal(c.Config)
	labels, errLabels := json.Marshal(c.Labels)
	m := map[string]string{
		keyFormat: format, keyModel: c.Model, keySize: c.Size, keyConfig: string(config),
		keyLabels: string(labels), keyStep: strconv.Itoa(c.Step),
		keySeed: strconv.FormatUint(c.Seed, 10), keyTokenizer: c.Tokenizer, keyMachine: c.Machine,
	}
	if c.Best != nil {
		best, errBest := json.Marshal(c.Best)
		m[keyBest], err = string(best), cmp.Or(err, errBest)
	}
	if len(c.Classes) > 0 {
		classes, errClasses := json.Marshal(c.Classes)
		m[keyClasses], err = string(classes), cmp.Or(err, errClasses)
	}
	if c.Base != nil {
		base, errBase := json.Marshal(c.Base)
		m[keyBase], err = string(base), cmp.Or(err, errBase)
	}
	if c.Workers > 1 {
		m[keyWorkers] = strconv.Itoa(c.Workers)
	}
	if c.Executions > 0 {
		m[keyExecutions] = strconv.Itoa(c.Executions)
	}
	if c.Evaluated > 0 {
		m[keyEvaluated] = strconv.Itoa(c.Evaluated)
	}
	if c.Job != "" {
		m[keyJob], m[keyEpoch] = c.Job, strconv.FormatInt(c.Epoch, 10)
	}
	return m, cmp.Or(err, errLabels)
}

// parse reads the metadata of a file.
func parse(m map[string]string) (Checkpoint, error) {
	c := Checkpoint{Model: m[keyModel], Size: m[keySize], Tokenizer: m[keyTokenizer],
		Machine: m[keyMachine]}
	switch v, ok := m[keyFormat]; {
	case !ok:
		return c, fmt.Errorf("no %s in the metadata: the file was not saved by a training run",
			keyFormat)
	case v != format:
		return c, fmt.Errorf("%s is %.60q, this version reads %q: train again, or with the "+
			"version that saved it", keyFormat, v, format)
	}
	var err error
	if c.Step, err = strconv.Atoi(m[keyStep]); err != nil || c.Step < 0 || c.Step > maxSteps {
		return c, fmt.Errorf("%s %.60q is not a number of steps", keyStep, m[keyStep])
	}
	if c.Seed, err = strconv.ParseUint(m[keySeed], 10, 64); err != nil {
		return c, fmt.Errorf("%s %.60q is not a seed", keySeed, m[keySeed])
	}
	if err := json.Unmarshal([]byte(m[keyConfig]), &c.Config); err != nil {
		return c, fmt.Errorf("%s: %w", keyConfig, legible.Error(err, 200))
	}
	if err := json.Unmarshal([]byte(m[keyLabels]), &c.Labels); err != nil {
		return c, fmt.Errorf("%s: %w", keyLabels, legible.Error(err, 200))
	}
	if best, ok := m[keyBest]; ok {
		if err := json.Unmarshal([]byte(best), &c.Best); err != nil {
			return c, fmt.Errorf("%s: %w", keyBest, legible.Error(err, 200))
		}
	}
	if classes, ok := m[keyClasses]; ok {
		if err := json.Unmarshal([]byte(classes), &c.Classes); err != nil {
			return c, fmt.Errorf("%s: %w", keyClasses, legible.Error(err, 200))
		}
	}
	if base, ok := m[keyBase]; ok {
		if err := json.Unmarshal([]byte(base), &c.Base); err != nil || c.Base == nil {
			return c, fmt.Errorf("%s is no base", keyBase)
		}
	}
	if workers, ok := m[keyWorkers]; ok {
		if c.Workers, err = strconv.Atoi(workers); err != nil || c.Workers < 2 {
			return c, fmt.Errorf("%s %.60q is not a number of workers", keyWorkers, workers)
		}
	}
	if n, ok := m[keyExecutions]; ok {
		if c.Executions, err = strconv.Atoi(n); err != nil || c.Executions < 1 {
			return c, fmt.Errorf("%s %.60q is not a number of executions", keyExecutions, n)
		}
	}
	if n, ok := m[keyEvaluated]; ok {
		c.Evaluated, err = strconv.Atoi(n)
		if err != nil || c.Evaluated < 1 || c.Evaluated > c.Step {
			return c, fmt.Errorf("%s %.60q is not a step of an evaluation", keyEvaluated, n)
		}
	}
	if job, ok := m[keyJob]; ok {
		c.Job = job
		if c.Epoch, err = strconv.ParseInt(m[keyEpoch], 10, 64); err != nil || c.Epoch < 1 {
			return c, fmt.Errorf("%s %.60q is not an epoch", keyEpoch, m[keyEpoch])
		}
	}
	return c, nil
}

// sameRun reports in what the run that c belongs to differs from another.
func (c Checkpoint) sameRun(want Checkpoint) error {
	keys := map[string]string{}
	maps.Copy(keys, c.Config)
	maps.Copy(keys, want.Config)
	var differ []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if c.Config[k] != want.Config[k] {
			differ = append(differ, k)
		}
	}
	switch {
	case len(differ) > 0:
		k := differ[0]
		return fmt.Errorf("was made with %s %s, this run has %s; settings that differ: %d", k,
			c.label(k, want), want.label(k, c), len(differ))
	case c.Seed != want.Seed:
		return fmt.Errorf("was made with seed %d, this run has %d", c.Seed, want.Seed)
	case c.Tokenizer != want.Tokenizer:
		return errors.New("was made with another tokenizer: train on the same data")
	}
	return nil
}

// label is what a person calls the value of a setting, with the value where
// another run's has the same name.
func (c Checkpoint) label(key string, other Checkpoint) string {
	text, value := c.Labels[key], strconv.Quote(c.Config[key])
	_, given := c.Config[key]
	switch {
	case !given:
		return "the default"
	case text == "":
		return value
	case text == other.Labels[key]:
		return fmt.Sprintf("%q (%s)", text, value)
	}
	return strconv.Quote(text)
}

// elsewhere says that a checkpoint was made where other bits come out, "" if it
// was not.
func (c Checkpoint) elsewhere(machine string) string {
	if c.Machine == machine {
		return ""
	}
	return fmt.Sprintf("checkpoint %s was made on %q, this is %q: the bits of losses and weights "+
		"will differ from those of a run that stays there", c.Path, c.Machine, machine)
}
