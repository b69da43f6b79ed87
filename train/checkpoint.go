package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/gomem/gomem/internal/safetensors"
)

// Checkpoint says which run a checkpoint belongs to, and how far that was.
type Checkpoint struct {
	Path        string            // its file
	Model, Size string            // of models.Model
	Config      map[string]string // of Options
	Step        int               // steps done
	Seed        uint64
	Tokenizer   string // the vocabulary as data.Tokenizer writes it, "" if there is none
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
	s := fmt.Sprintf("checkpoint %s: %v", e.Path, e.Err)
	if e.Previous != "" {
		s += "; resume from the one before it, " + e.Previous
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
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// The keys of the metadata, and the version of their meaning.
const (
	keyFormat    = "gomem.format"
	keyModel     = "gomem.model"
	keySize      = "gomem.size"
	keyConfig    = "gomem.config" // a JSON object of strings
	keyStep      = "gomem.step"
	keySeed      = "gomem.seed"
	keyTokenizer = "gomem.tokenizer"
	format       = "1"
)

// metadata is what parse reads.
func (c Checkpoint) metadata() (map[string]string, error) {
	config, err := json.Marshal(c.Config)
	return map[string]string{
		keyFormat: format, keyModel: c.Model, keySize: c.Size, keyConfig: string(config),
		keyStep: strconv.Itoa(c.Step), keySeed: strconv.FormatUint(c.Seed,
			10), keyTokenizer: c.Tokenizer,
	}, err
}

// parse reads the metadata of a file.
func parse(m map[string]string) (Checkpoint, error) {
	c := Checkpoint{Model: m[keyModel], Size: m[keySize], Tokenizer: m[keyTokenizer]}
	switch v, ok := m[keyFormat]; {
	case !ok:
		return c, fmt.Errorf("no %s in the metadata: the file was not saved by a training run",
			keyFormat)
	case v != format:
		return c, fmt.Errorf("%s is %q, this version reads %q", keyFormat, v, format)
	}
	var err error
	if c.Step, err = strconv.Atoi(m[keyStep]); err != nil || c.Step < 0 || c.Step > maxSteps {
		return c, fmt.Errorf("%s %q is not a number of steps", keyStep, m[keyStep])
	}
	if c.Seed, err = strconv.ParseUint(m[keySeed], 10, 64); err != nil {
		return c, fmt.Errorf("%s %q is not a seed", keySeed, m[keySeed])
	}
	if err := json.Unmarshal([]byte(m[keyConfig]), &c.Config); err != nil {
		return c, fmt.Errorf("%s: %w", keyConfig, err)
	}
	return c, nil
}

// checkpoint describes the run as it stands.
func (r *run) checkpoint() Checkpoint {
	return Checkpoint{
		Model: r.Model.Name, Size: r.Model.Size, Config: r.Config,
		Step: r.done, Seed: r.Seed, Tokenizer: r.vocabulary,
	}
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
		return fmt.Errorf("was made with %s %q, this run has %q; settings that differ: %d", k,
			c.Config[k], want.Config[k], len(differ))
	case c.Seed != want.Seed:
		return fmt.Errorf("was made with seed %d, this run has %d", c.Seed, want.Seed)
	case c.Tokenizer != want.Tokenizer:
		return errors.New("was made with another tokenizer: train on the same data")
	}
	return nil
}
