package train

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
)

// Workers that are kept in step between steps have some variables each their own: the state
// of optimizers and, on their own between averages, weights too. Worker 0's have the
// checkpoint's names; of the others, those that differ from worker 0's are saved beside them
// under the rank, and read back by it: "w/momentum@2". They travel to worker 0, which alone
// need have the disk.

// ownName is the name in a checkpoint of a variable of worker rank's own.
func ownName(name string, rank int) string {
	if rank == 0 {
		return name
	}
	return name + "@" + strconv.Itoa(rank)
}

// parseOwn reads what ownName made of a rank from 1.
func parseOwn(s string) (name string, rank int, ok bool) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return "", 0, false
	}
	rank, err := strconv.Atoi(s[i+1:])
	return s[:i], rank, err == nil && rank > 0 && ownName(s[:i], rank) == s
}

// common are the entries but for those of workers other than the first, of variables that
// are there.
func (o *opened) common() []safetensors.Entry {
	types := map[string]tensor.Type{}
	for _, e := range o.file.Entries() {
		types[e.Name] = e.Type
	}
	return slices.DeleteFunc(slices.Clone(o.file.Entries()), func(e safetensors.Entry) bool {
		name, rank, ok := parseOwn(e.Name)
		t, there := types[name]
		return ok && there && rank < o.Workers && t.Equal(e.Type)
	})
}

// ownOf gives a worker what is its own; if there are more workers than there were, those
// beyond have that of the ones whose ranks are less by the number that there were.
func (o *opened) ownOf(worker int, s *gomem.Session) error {
	rank := worker % max(o.Workers, 1)
	for _, e := range o.file.Entries() {
		name, of, ok := parseOwn(e.Name)
		if !ok || of != rank {
			continue
		}
		for _, v := range s.Variables() {
			if v.Node.Name != name {
				continue
			}
			if err := o.setFrom(s, v, e.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// differs reports whether workers have variables of their own that are to be saved. Where
// they come and go they have not: whoever goes on has all of one of them.
func (p *Parallel) differs() bool {
	return p != nil && p.Between != nil && p.Elastic == nil
}

// jointly reports whether all workers take part in saving: where the others have what
// worker 0 has not, and where they make each step together, whose exchanges wait for nobody
// who saves.
func (p *Parallel) jointly() bool { return p.differs() || p.meshed() }

// foreign is what another worker than the first has: a variable, or a block of one.
type foreign struct {
	v     graph.Value
	rank  int
	block int // of the variable's Blocks; entire: the variable
}

// entire is no block of a variable, but all of it.
const entire = -1

// of is the value, of the session of the worker that has it.
func (x foreign) of(s *gomem.Session) (tensor.View, error) {
	if x.block == entire {
		return s.Get(x.v)
	}
	return s.Block(x.v, x.block)
}

// kind is the value's type, which all workers know.
func (x foreign) kind(s *gomem.Session) graph.Type {
	if x.block == entire {
		return x.v.Type()
	}
	return s.Blocks(x.v)[x.block].Type(x.v.Type())
}
