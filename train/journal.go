package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
)

// Journal keeps what a checkpoint of any step has, of one worker. What it is told of a run is for
// [Assemble] to make sense of.
type Journal interface {
	// Begin is called once, before the workers are kept in step: about is what the run is.
	Begin(about []byte, s *gomem.Session) error
	// Mark follows every step, and whatever else changes variables: changed is what is no longer
	// as it was at the beginning.
	Mark(step int, changed []byte, s *gomem.Session) error
}

// about is what a journal is told of a run.
type about struct {
	Metadata  map[string]string `json:"metadata"` // of a checkpoint
	Variables []variable        `json:"variables"`
}

// variable is one of a session's.
type variable struct {
	Name  string       `json:"name"`
	DType tensor.DType `json:"dtype"`
	Sizes []int        `json:"sizes"`
}

// narrator tells a journal of a run, if there is one.
type narrator struct {
	to   Journal           // nil: there is none
	told map[string]string // the metadata that it began with
}

// begin tells it what the run is, which stands as a checkpoint would say.
func (n *narrator) begin(as Checkpoint, s *gomem.Session) error {
	metadata, err := as.metadata()
	if err != nil {
		return err
	}
	a := about{Metadata: metadata}
	for _, v := range s.Variables() {
		a.Variables = append(a.Variables, variable{v.Node.Name, v.Type().DType, v.Type().Sizes()})
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	n.told = metadata
	return n.to.Begin(text, s)
}

// mark tells it that the variables are those of the present step.
func (n *narrator) mark(as func() Checkpoint, s *gomem.Session) error {
	if n.to == nil {
		return nil
	}
	c := as()
	metadata, err := c.metadata()
	if err != nil {
		return err
	}
	maps.DeleteFunc(metadata, func(k, v string) bool {
		was, there := n.told[k]
		return there && was == v
	})
	text, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	return n.to.Mark(c.Step, text, s)
}

// Replica is what one worker's [Journal] was told, and the values that its variables had then.
type Replica struct {
	Rank           int
	About, Changed []byte
	Values         map[string][]byte // by name
}

// Assemble writes the checkpoint that the workers of a run would have saved, of what each of them
// had after one step. The first worker's must be there. A worker whose is not goes on with what
// the first one has. The errors are *[ErrCheckpoint]s.
func Assemble(dir string, of []Replica) (Checkpoint, error) {
	fail := func(err error) (Checkpoint, error) {
		return Checkpoint{}, &ErrCheckpoint{Path: dir, Err: err}
	}
	if err := CheckSave(dir, ""); err != nil {
		return Checkpoint{}, err
	}
	x, c, err := assembled(of)
	if err != nil {
		return fail(err)
	}
	p, err := occupy(dir)
	if err != nil {
		return Checkpoint{}, err
	}
	defer p.leave()
	c.Path, err = store{dir: dir, keep: 1, disk: osDisk{}}.save(c, x)
	return c, err
}

// assembly is the contents of a checkpoint that is put together.
type assembly struct {
	entries []safetensors.Entry
	values  map[string]tensor.View
}

func (a *assembly) list() []safetensors.Entry { return a.entries }

func (a *assembly) parts(name string, show func(part tensor.View) error) error {
	return show(a.values[name])
}

// assembled is what a checkpoint has of replicas, the first of which is the first worker's.
func assembled(of []Replica) (*assembly, Checkpoint, error) {
	a := about{}
	if len(of) == 0 || of[0].Rank != 0 {
		return nil, Checkpoint{}, fmt.Errorf("what the first worker had is not there")
	}
	if err := json.Unmarshal(of[0].About, &a); err != nil {
		return nil, Checkpoint{}, fmt.Errorf("what says of which run makes no sense: %w", err)
	}
	if err := json.Unmarshal(of[0].Changed, &a.Metadata); err != nil {
		return nil, Checkpoint{}, fmt.Errorf("what says of which step makes no sense: %w", err)
	}
	c, err := parse(a.Metadata)
	if err != nil {
		return nil, c, err
	}
	x := &assembly{values: map[string]tensor.View{}}
	for _, v := range a.Variables {
		if err := x.add(v, of[0]); err != nil {
			return nil, c, err
		}
	}
	for _, v := range a.Variables {
		for _, r := range of[1:] {
			if r.Rank >= c.Workers || bytes.Equal(r.Values[v.Name], of[0].Values[v.Name]) {
				continue
			}
			if err := x.add(v, r); err != nil {
				return nil, c, err
			}
		}
	}
	return x, c, nil
}

// add adds a variable of a worker's.
func (x *assembly) add(v variable, r Replica) error {
	data, t := r.Values[v.Name], tensor.Of(v.DType, v.Sizes...)
	if int64(len(data)) != t.Bytes() {
		return fmt.Errorf("variable %s of worker %d has %d bytes, which are no %s", v.Name, r.Rank,
			len(data), t)
	}
	name, value := ownName(v.Name, r.Rank), tensor.New(t)
	copy(value.Data, data)
	x.entries = append(x.entries, safetensors.Entry{Name: name, Type: t})
	x.values[name] = value
	return nil
}
