package train

import (
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/safetensors"
)

// Load gives variables of a session the values that they have in a checkpoint, one
// at a time, and leaves the session's others alone; what the checkpoint has beside
// them, such as an optimizer's state, is not read. path is the checkpoint's file, or
// a directory for the latest in it. A variable that the checkpoint has not, or has
// with another type, is an *[ErrCheckpoint], and then none is set.
func Load(path string, s *gomem.Session, vars []graph.Value) error {
	o, err := open(path)
	if err != nil {
		return err
	}
	defer o.close()
	own, based := o.separate(vars)
	if err := o.has(own); err != nil {
		return err
	}
	if err := o.setBased(s, based); err != nil {
		return err
	}
	for _, v := range own {
		if err := o.set(s, v); err != nil {
			return err
		}
	}
	return nil
}

// has demands that the checkpoint has variables.
func (o *opened) has(vars []graph.Value) error {
	wanted := map[string]bool{}
	var nodes []*graph.Node
	for _, v := range vars {
		wanted[v.Node.Name] = true
		nodes = append(nodes, v.Node)
	}
	var entries []safetensors.Entry
	for _, e := range o.file.Entries() {
		if wanted[e.Name] {
			entries = append(entries, e)
		}
	}
	if first, n := differences(entries, nodes); n > 0 {
		return o.fail("is of a model with other sizes: %s; variables that differ: %d", first, n)
	}
	return nil
}
