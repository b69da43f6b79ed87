package train

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
)

// Inspect reads what a checkpoint says of its run. path is its file, or a
// directory for the latest in it. The whole file is checked but for the values
// themselves, which are compared with their checksums when they are read. Errors
// are *[ErrCheckpoint]s.
func Inspect(path string) (Checkpoint, error) {
	o, err := open(path)
	if err != nil {
		return Checkpoint{}, err
	}
	defer o.close()
	return o.Checkpoint, nil
}

// opened is a checkpoint whose variables can be read.
type opened struct {
	Checkpoint
	file *safetensors.File
	sums []uint32 // of divided variables, of what this process has read of them
}

// open finds and opens a checkpoint.
func open(path string) (*opened, error) {
	path, err := find(path)
	if err != nil {
		return nil, err
	}
	o := &opened{Checkpoint: Checkpoint{Path: path}}
	if o.file, err = safetensors.Open(path); err != nil {
		return nil, o.fail("%w", bare(err))
	}
	c, err := parse(o.file.Metadata())
	if err == nil && !o.file.Sealed() {
		err = errors.New("has no checksums: it is damaged, or was written by another program")
	}
	if err != nil {
		o.close()
		return nil, o.fail("%w", err)
	}
	c.Path = path
	o.Checkpoint = c
	return o, nil
}

// close ends reading; a file that was only read has nothing to lose.
func (o *opened) close() { _ = o.file.Close() }

// fail is an error about the checkpoint. If the cause is damage, it says which
// checkpoint was before.
func (o *opened) fail(format string, args ...any) error {
	e := &ErrCheckpoint{Path: o.Path, Err: fmt.Errorf(format, args...)}
	if _, damaged := errors.AsType[*safetensors.Error](e.Err); damaged {
		e.Previous = previous(o.Path)
	}
	return e
}

// find resolves a directory to its latest checkpoint.
func find(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", &ErrCheckpoint{Path: path, Err: bare(err)}
	}
	if !info.IsDir() && !isPointer(filepath.Base(path)) {
		return path, nil
	}
	if !info.IsDir() {
		return pointed(path)
	}
	l, err := list(path)
	if err != nil {
		return "", &ErrCheckpoint{Path: path, Err: bare(err)}
	}
	if len(l.steps) == 0 {
		return "", &ErrCheckpoint{Path: path,
			Err: errors.New("there is no checkpoint in the directory: give one that was saved to")}
	}
	// The newest file is not always the latest: a run that went back to an
	// older checkpoint leaves the later ones alone.
	if i := slices.Index(l.steps, l.latest); i >= 0 {
		return filepath.Join(path, fileName(l.latest)), nil
	}
	return filepath.Join(path, fileName(slices.Max(l.steps))), nil
}

// pointed is the checkpoint that a file of the name latest or best names.
func pointed(path string) (string, error) {
	text, err := regular.ReadFile(path)
	if err == nil {
		if step, ok := parseName(strings.TrimSpace(string(text))); ok {
			return filepath.Join(filepath.Dir(path), fileName(step)), nil
		}
		err = fmt.Errorf("names no checkpoint: give the directory, or a %s in it", fileName(0))
	}
	return "", &ErrCheckpoint{Path: path, Err: bare(err)}
}

// previous is the file of the checkpoint before one, "" if there is none.
func previous(path string) string {
	dir := filepath.Dir(path)
	step, ok := parseName(filepath.Base(path))
	l, err := list(dir)
	if !ok || err != nil {
		return ""
	}
	before := slices.DeleteFunc(l.steps, func(s int) bool { return s >= step })
	if len(before) == 0 {
		return ""
	}
	return filepath.Join(dir, fileName(slices.Max(before)))
}

// matches demands that the checkpoint has exactly the variables of g, and
// belongs to the run that want describes.
func (o *opened) matches(want Checkpoint, g *graph.Graph) error {
	vars := g.Variables()
	if o.Base != nil {
		is := frozen(g)
		vars = slices.DeleteFunc(vars, func(n *graph.Node) bool { return is[n.Name] })
	}
	if first, n := differences(o.common(), vars); n > 0 {
		which := "is of a model with other sizes"
		if o.Model != want.Model || o.Size != want.Size {
			which = fmt.Sprintf("is of another model (%s %s, this is %s %s)", o.Model, o.Size,
				want.Model, want.Size)
		}
		return o.fail("%s: %s; variables that differ: %d", which, first, n)
	}
	if err := o.sameRun(want); err != nil {
		return o.fail("%w", err)
	}
	return nil
}

// differences counts variables that are not the same in a file and in a graph,
// and describes the first in order of names.
func differences(file []safetensors.Entry, vars []*graph.Node) (first string, n int) {
	expected := map[string]graph.Type{}
	for _, v := range vars {
		expected[v.Name] = v.Out[0]
	}
	var found []difference
	for _, e := range file {
		t, ok := expected[e.Name]
		if !ok || !t.Equal(e.Type) {
			found = append(found, difference{e.Name, e.Type, t})
		}
		delete(expected, e.Name)
	}
	for name, t := range expected {
		found = append(found, difference{name: name, expected: t})
	}
	if len(found) == 0 {
		return "", 0
	}
	byName := func(a, b difference) int { return cmp.Compare(a.name, b.name) }
	return slices.MinFunc(found, byName).String(), len(found)
}

// difference is a variable with two types; the zero type stands for none.
type difference struct {
	name            string
	saved, expected graph.Type
}

func (d difference) String() string {
	describe := func(t graph.Type) string {
		if t.DType == tensor.Invalid {
			return "missing"
		}
		return tensor.Of(t.DType, t.Sizes()...).String() // names of axes are not saved
	}
	return fmt.Sprintf("variable %s is %s in the checkpoint and %s in the model", d.name,
		describe(d.saved), describe(d.expected))
}

// restore gives the variables of a session their values, one at a time. Of one that is divided
// among processes nothing is read but what this one has of it: see [run.undamaged].
func (o *opened) restore(s *gomem.Session) error {
	own, based := o.separate(s.Variables())
	if err := o.setBased(s, based); err != nil {
		return err
	}
	for _, v := range own {
		var err error
		if blocks := s.Blocks(v); len(blocks) > 0 {
			err = o.setBlocks(s, v, blocks)
		} else {
			err = o.set(s, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// set gives a variable of a session its value.
func (o *opened) set(s *gomem.Session, v graph.Value) error { return o.setFrom(s, v, v.Node.Name) }

// setFrom gives a variable of a session the value that has a name.
func (o *opened) setFrom(s *gomem.Session, v graph.Value, name string) error {
	sum, size, all := uint32(0), v.Type().DType.Size(), v.Type().Bytes()
	return s.Write(v, func(part tensor.View, at int64) error {
		own, err := o.file.ReadPart(name, part.Data, at*size)
		if sum ^= own; err == nil && at*size+int64(len(part.Data)) == all {
			err = o.file.CheckParts(name, sum)
		}
		if err != nil {
			return o.fail("%w", bare(err))
		}
		return o.finite(name, part)
	})
}

// finite refuses values that no training goes on from.
func (o *opened) finite(name string, t tensor.View) error {
	if x, at := nonFinite(t); at >= 0 {
		return o.fail("%w", &safetensors.Error{Tensor: name,
			Err: fmt.Errorf("has an element that is %v: training had diverged", x)})
	}
	return nil
}
