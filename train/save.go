package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
)

// store keeps the newest checkpoints of a run in a directory.
type store struct {
	dir  string
	keep int
	// the step of the best evaluation, whose checkpoint is kept beside the newest; 0 if
	// there is none
	spare int
	disk  disk
}

// latestName is the file that names the latest checkpoint, and bestName that of the best
// evaluation, if there is one.
const latestName, bestName = "latest", "best"

// isPointer reports whether a file of that name names a checkpoint.
func isPointer(name string) bool { return name == latestName || name == bestName }

// fileName is the name of the checkpoint after a number of steps.
func fileName(step int) string { return fmt.Sprintf("step-%08d.safetensors", step) }

// parseName reads what fileName made.
func parseName(name string) (step int, ok bool) {
	digits, isFile := strings.CutSuffix(strings.TrimPrefix(name, "step-"), ".safetensors")
	step, err := strconv.Atoi(digits)
	return step, isFile && err == nil && fileName(step) == name
}

// isTemporary recognises what a crash left of a save, of any process. The next one removes it.
func isTemporary(name string) bool {
	of, ok := regular.Replaced(name)
	_, step := parseName(of)
	return ok && (step || isPointer(of))
}

// listing is what a directory holds of the files that saving makes.
type listing struct {
	steps  []int    // of the checkpoints, in order
	latest int      // what the file latest names, -1 if nothing
	stale  []string // names of temporary files
	odd    []string // names of ours that something else than a regular file has
}

// list reads a directory.
func list(dir string) (listing, error) {
	l := listing{latest: -1}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		step, isStep := parseName(f.Name())
		stale := isTemporary(f.Name())
		if !isStep && !stale && !isPointer(f.Name()) {
			continue
		}
		info, missing := os.Stat(filepath.Join(dir, f.Name())) // a link to a file will do
		switch {
		case missing != nil || !info.Mode().IsRegular():
			l.odd = append(l.odd, f.Name())
		case isStep:
			l.steps = append(l.steps, step)
		case stale:
			l.stale = append(l.stale, f.Name())
		}
	}
	slices.Sort(l.steps)
	if text, err := regular.ReadFile(filepath.Join(dir, latestName)); err == nil {
		if step, ok := parseName(strings.TrimSpace(string(text))); ok {
			l.latest = step
		}
	}
	return l, err
}

// save writes a checkpoint of the session and makes it the latest; only then
// are older ones removed. After an error the directory has what it had, or
// that and the complete new checkpoint.
func (s store) save(c Checkpoint, from tensors) (path string, err error) {
	name := fileName(c.Step)
	path = filepath.Join(s.dir, name)
	if err := s.write(name, c, from); err != nil {
		_, diverged := errors.AsType[*ErrNonFinite](err)
		_, replaced := errors.AsType[*ErrReplaced](err)
		if diverged || replaced {
			return "", err
		}
		if lost, ok := errors.AsType[*lostError](err); ok { // whichever tensor it was to give
			err = lost
		}
		return "", &ErrCheckpoint{Path: path,
			Err: fmt.Errorf("cannot save step %d: %w", c.Step, bare(err))}
	}
	return path, nil
}

func (s store) write(name string, c Checkpoint, from tensors) error {
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return err
	}
	l, err := list(s.dir)
	if err != nil {
		return err
	}
	for _, stale := range l.stale {
		if err := s.remove(stale); err != nil {
			return err
		}
	}
	variables := func(w file) error { return writeVariables(w, c, from) }
	if err := s.replace(name, variables); err != nil {
		return err
	}
	if err := s.point(latestName, name); err != nil {
		return err
	}
	if s.spare == c.Step {
		if err := s.point(bestName, name); err != nil {
			return err
		}
	}
	return s.prune(l.steps, c.Step)
}

// point has a file name a checkpoint.
func (s store) point(pointer, name string) error {
	return s.replace(pointer, func(w file) error {
		_, err := io.WriteString(w, name+"\n")
		return err
	})
}

// mark says that the checkpoint after a step, which is saved, is that of the best evaluation.
func (s store) mark(step int) error {
	err := s.point(bestName, fileName(step))
	if _, replaced := errors.AsType[*ErrReplaced](err); err != nil && !replaced {
		return &ErrCheckpoint{Path: filepath.Join(s.dir, bestName),
			Err: fmt.Errorf("cannot say which is the best: %w", bare(err))}
	}
	return err
}

// prune removes all but the newest checkpoints up to a step. Later ones are of
// a run that somebody went back on; they are left alone.
func (s store) prune(steps []int, newest int) error {
	old := slices.DeleteFunc(steps, func(step int) bool {
		return step >= newest || step == s.spare
	})
	for _, step := range old[:max(0, len(old)-(s.keep-1))] {
		if err := s.remove(fileName(step)); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file; one that is gone already will do.
func (s store) remove(name string) error {
	return regular.IgnoreMissing(s.disk.Remove(filepath.Join(s.dir, name)))
}

// replace makes a file in one step: see regular.Replace.
func (s store) replace(name string, content func(file) error) error {
	return regular.Replace(s.disk, s.dir, name, content)
}

// tensors is what is in a checkpoint: tensors in an order, and the value of each, asked for one
// after the other and shown part by part.
type tensors interface {
	list() []safetensors.Entry
	parts(name string, show func(part tensor.View) error) error
}

// source is where a checkpoint's values come from: a session, and what other workers have
// otherwise, which fetch brings.
type source struct {
	session *gomem.Session
	others  []foreign
	fetch   func(foreign) (tensor.View, error)
	based   map[string]bool // variables that the checkpoint's base has
}

// writeVariables writes a checkpoint, some of a variable at a time.
func writeVariables(w file, c Checkpoint, from tensors) error {
	metadata, err := c.metadata()
	if err != nil {
		return err
	}
	put := func(e safetensors.Entry, w io.Writer) error {
		return from.parts(e.Name, func(part tensor.View) error {
			if err := finiteVariable(e.Name, part); err != nil {
				return err
			}
			_, err := w.Write(part.Data)
			return err
		})
	}
	return safetensors.WriteSealed(w, from.list(), metadata, put)
}

// list is the session's variables, and then those of others.
func (s source) list() []safetensors.Entry {
	own := slices.DeleteFunc(slices.Clone(s.session.Variables()), func(v graph.Value) bool {
		return s.based[v.Node.Name]
	})
	all := entries(own)
	for _, x := range s.others {
		all = append(all, safetensors.Entry{Name: ownName(x.v.Node.Name, x.rank), Type: x.v.Type()})
	}
	return all
}

// parts shows what has a name.
func (s source) parts(name string, show func(part tensor.View) error) error {
	for _, v := range s.session.Variables() {
		if v.Node.Name != name {
			continue
		}
		if len(s.session.Blocks(v)) == 0 {
			return s.session.Read(v, show)
		}
		return shown(show)(s.value(foreign{v, 0, entire}))
	}
	for _, x := range s.others {
		if ownName(x.v.Node.Name, x.rank) == name {
			return shown(show)(s.value(x))
		}
	}
	return fmt.Errorf("there is no variable %s", name)
}

// shown shows a value that there is at once.
func shown(show func(part tensor.View) error) func(tensor.View, error) error {
	return func(x tensor.View, err error) error {
		if err != nil {
			return err
		}
		return show(x)
	}
}

// value is this worker's or another's, or of the blocks of several.
func (s source) value(x foreign) (tensor.View, error) {
	if x.rank != 0 {
		return s.fetch(x)
	}
	if blocks := s.session.Blocks(x.v); x.block == entire && len(blocks) > 0 {
		return s.joined(x.v, blocks)
	}
	return x.of(s.session)
}

// entries are variables as a checkpoint has them.
func entries(vars []graph.Value) []safetensors.Entry {
	var out []safetensors.Entry
	for _, v := range vars {
		out = append(out, safetensors.Entry{Name: v.Node.Name, Type: v.Type()})
	}
	return out
}
