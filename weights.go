package gomem

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
)

// SaveOptions say what [Session.Save] writes. The zero value is all variables by their
// names.
type SaveOptions struct {
	// Only selects variables; nil is all.
	Only func(v graph.Value) bool
	// NoState leaves out the optimizer's variables, those made by graph.State.
	NoState bool
	// Rename gives a variable's name in the file, "" to leave it out; nil is the same.
	Rename func(name string) string
	// Metadata are strings that the file says beside.
	Metadata map[string]string
}

// Save writes variables to a file in the safetensors format, with checksums, in one
// step: after an error the file is what it was before. No step runs meanwhile. A MiB of a variable,
// or a row, is in memory beside the session's own; all of one that a mesh cuts.
func (s *Session) Save(path string, o SaveOptions) error {
	return s.save(regular.OS{}, path, o)
}

func (s *Session) save(d regular.Disk, path string, o SaveOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(d, path, o); err != nil {
		return fmt.Errorf("gomem: save %s: %w", path, bare(err))
	}
	return nil
}

func (s *Session) write(d regular.Disk, path string, o SaveOptions) error {
	if s.device == nil {
		return ErrClosed
	}
	var entries []safetensors.Entry
	variables := map[string]graph.Value{}
	for _, v := range chosen(s.Variables(), o.Only, o.NoState) {
		if name := renamed(v.Node.Name, o.Rename); name != "" {
			entries = append(entries, safetensors.Entry{Name: name, Type: v.Type()})
			variables[name] = v
		}
	}
	if err := safetensors.Check(entries, o.Metadata); err != nil {
		return err
	}
	dir, name := filepath.Split(path)
	return regular.Replace(d, cmp.Or(dir, "."), name,
		func(f regular.File) error {
			return safetensors.WriteSealed(f, entries, o.Metadata,
				func(e safetensors.Entry, w io.Writer) error {
					return showParts(s, variables[e.Name], func(part Tensor) error {
						_, err := w.Write(part.Data)
						return err
					})
				})
		})
}

// LoadOptions say what [Session.Load] reads. The zero value demands that the file has
// all variables, in their types, and nothing else.
type LoadOptions struct {
	// Only selects variables; nil is all. The others stay as they are.
	Only func(v graph.Value) bool
	// NoState leaves the optimizer's variables as they are.
	NoState bool
	// Rename gives the variable that a tensor of the file is for, "" if it is for none;
	// nil is the one of its name.
	Rename func(tensor string) string
	// Partial takes what there is: variables that the file does not have, or has in
	// another type, stay as they are, and tensors without a variable are left. The
	// report lists them.
	Partial bool
	// Convert takes numbers of another element type, and converts them: see
	// Tensor.To.
	Convert bool
}

// LoadReport lists, in order of names, what became of variables and tensors.
type LoadReport struct {
	Loaded    []string // variables that were set
	Converted []string // those of them that the file has in another element type
	Missing   []string // variables that the file does not have
	Leftover  []string // tensors of the file that are for no variable of the session
	Other     []Other  // variables that the file has in another type
	Parts     []Part   // tensors for variables that are divided among processes
}

// Part is a tensor of a file that the processes of a mesh read together, each what it has of
// the variable, and what this one has read: see [CheckParts].
type Part struct {
	Path, Tensor string
	Sum          uint32 // what it is of the tensor's checksum
}

// CheckParts reports whether tensors are undamaged of which the processes of a mesh have read
// parts. A tensor's checksum is of all of it, so it takes what all of them have read: the Sum
// of each part is to be the exclusive or of those that the processes have for it.
func CheckParts(parts []Part) error {
	for len(parts) > 0 {
		path := parts[0].Path
		f, err := safetensors.Open(path)
		for len(parts) > 0 && parts[0].Path == path && err == nil {
			err = f.CheckParts(parts[0].Tensor, parts[0].Sum)
			parts = parts[1:]
		}
		if f != nil {
			_ = f.Close() // it was only read
		}
		if err != nil {
			return fmt.Errorf("gomem: load %s: %w", path, bare(err))
		}
	}
	return nil
}

// Other is a variable that a file has in another type.
type Other struct {
	Name        string
	Saved, Want graph.Type
}

// LoadError is a file that does not have what was asked for: exactly the variables, or,
// of a partial load, one of them at least. Nothing has been set.
type LoadError struct {
	Path   string
	Report LoadReport
}

// Error is one line: the first of everything that differs, and how many there are.
func (e *LoadError) Error() string {
	var why []string
	note := func(n int, what, first string) {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d %s (%s)", n, what, first))
		}
	}
	r := e.Report
	if n := len(r.Other); n > 0 {
		o := r.Other[0]
		first := fmt.Sprintf("%s is %s in the file, %s here", o.Name, o.Saved, o.Want)
		if o.Saved.SameShape(o.Want) {
			first += ": Convert converts"
		}
		note(n, "of another type", first)
	}
	if len(r.Missing) > 0 {
		note(len(r.Missing), "not in the file", some(r.Missing))
	}
	if len(r.Leftover) > 0 {
		note(len(r.Leftover), "in the file only", some(r.Leftover))
	}
	return fmt.Sprintf("gomem: load %s: variables differ: %s", e.Path, strings.Join(why, ", "))
}

// some is the first names of a list.
func some(names []string) string {
	if len(names) > 2 {
		return strings.Join(names[:2], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// Load sets variables from a file in the safetensors format. What the file has is
// compared with the variables before any is set; if it is not what was asked for, the
// error is a *[LoadError]. A MiB of a tensor, or a row, is in memory beside the session's own.
// Where reading fails half-way, the report lists the variables that have been set; the one after
// them may be torn.
//
// Of a variable that is divided among the processes of a mesh, each reads what it has. Of
// these the checksums are not compared: see [CheckParts].
func (s *Session) Load(path string, o LoadOptions) (LoadReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device == nil {
		return LoadReport{}, fmt.Errorf("gomem: load %s: %w", path, ErrClosed)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return LoadReport{}, fmt.Errorf("gomem: load %s: %w", path, bare(err))
	}
	defer f.Close()
	return s.load(f, path, o)
}

// load is Load for who has the session, of an open file.
func (s *Session) load(f *safetensors.File, path string, o LoadOptions) (LoadReport, error) {
	l, err := s.match(f, o)
	if err != nil {
		return LoadReport{}, fmt.Errorf("gomem: load %s: %w", path, bare(err))
	}
	if l.refused(o) {
		return l.report, &LoadError{Path: path, Report: l.report}
	}
	for _, m := range l.matches {
		sum, err := m.fill(s, f)
		if err != nil {
			return l.report, fmt.Errorf("gomem: load %s: %w", path, bare(err))
		}
		l.report.Loaded = append(l.report.Loaded, m.variable.Node.Name)
		if s.apart[m.variable.Node.Name] != nil {
			l.report.Parts = append(l.report.Parts, Part{path, m.tensor.Name, sum})
		}
	}
	return l.report, nil
}

// fill sets a variable to a tensor. Of one that is divided among processes nothing is read but
// what this one has of it, and sum is what that is of the tensor's checksum: who is the first
// that has a block counts it.
func (m match) fill(s *Session, f *safetensors.File) (sum uint32, err error) {
	as, blocks := m.variable.Type().DType, s.apart[m.variable.Node.Name]
	if blocks == nil {
		return 0, fillParts(s, m.variable, filling(f, m.tensor, as))
	}
	for i, b := range blocks {
		if !slices.Contains(b.Ranks, s.Rank()) {
			continue
		}
		part := tensor.New(b.Type(m.tensor.Type))
		own, err := f.ReadRuns(m.tensor.Name, part.Data, func(visit func(at, to, n int)) {
			b.Runs(m.tensor.Type, visit)
		})
		if err == nil {
			err = s.setBlock(m.variable, i, part.As(as))
		}
		if err != nil {
			return 0, err
		}
		if b.Ranks[0] == s.Rank() {
			sum ^= own
		}
	}
	return sum, nil
}

// filling reads parts of a tensor in order, as elements of some type. The last is not given before
// all have been compared with the checksum.
func filling(f *safetensors.File, e safetensors.Entry,
	as graph.DType) func(part Tensor, at int64) error {
	var buffer Tensor
	sum := uint32(0)
	return func(part Tensor, at int64) error {
		n, from := part.Type.Elems(), part
		if as != e.Type.DType {
			if buffer.Data == nil {
				buffer = tensor.New(tensor.Of(e.Type.DType, n))
			}
			from = flat(buffer, n)
		}
		own, err := f.ReadPart(e.Name, from.Data, at*e.Type.DType.Size())
		if sum ^= own; err == nil && at+int64(n) == int64(e.Type.Elems()) {
			err = f.CheckParts(e.Name, sum)
		}
		if err == nil && as != e.Type.DType {
			tensor.Convert(part, from, 0, n)
		}
		return err
	}
}

// loading is what is to be loaded.
type loading struct {
	matches []match
	report  LoadReport
}

// match is a variable and the tensor that it is set to.
type match struct {
	variable graph.Value
	tensor   safetensors.Entry
}

// refused reports whether the file is not what was asked for.
func (l *loading) refused(o LoadOptions) bool {
	r := l.report
	if o.Partial {
		return len(l.matches) == 0 && len(r.Leftover)+len(r.Missing)+len(r.Other) > 0
	}
	return len(r.Missing)+len(r.Leftover)+len(r.Other) > 0
}

// match compares the tensors of a file with the variables.
func (s *Session) match(f *safetensors.File, o LoadOptions) (*loading, error) {
	l := &loading{}
	all := s.Variables()
	ours := map[string]bool{}
	for _, v := range all {
		ours[v.Node.Name] = true
	}
	for _, t := range f.Foreign() {
		if ours[renamed(t.Name, o.Rename)] {
			_, err := f.Get(t.Name) // which says why it cannot be read
			return nil, err
		}
		l.report.Leftover = append(l.report.Leftover, t.Name)
	}
	tensors := map[string]safetensors.Entry{} // by the variable that they are for
	for _, e := range f.Entries() {
		name := renamed(e.Name, o.Rename)
		if !ours[name] {
			l.report.Leftover = append(l.report.Leftover, e.Name)
			continue
		}
		if other, twice := tensors[name]; twice {
			return nil, fmt.Errorf("tensors %s and %s are both for variable %s", other.Name, e.Name,
				name)
		}
		tensors[name] = e
	}
	slices.Sort(l.report.Leftover)
	for _, v := range chosen(all, o.Only, o.NoState) {
		if e, ok := tensors[v.Node.Name]; ok {
			l.compare(v, e, o)
		} else {
			l.report.Missing = append(l.report.Missing, v.Node.Name)
		}
	}
	return l, nil
}

// compare enters a variable that the file has.
func (l *loading) compare(v graph.Value, e safetensors.Entry, o LoadOptions) {
	t := v.Type()
	switch {
	case t.Equal(e.Type):
	case o.Convert && t.SameShape(e.Type):
		l.report.Converted = append(l.report.Converted, v.Node.Name)
	default:
		l.report.Other = append(l.report.Other, Other{v.Node.Name, e.Type, t})
		return
	}
	l.matches = append(l.matches, match{v, e})
}

// chosen are the variables that options select.
func chosen(all []graph.Value, only func(graph.Value) bool, noState bool) []graph.Value {
	return slices.DeleteFunc(all, func(v graph.Value) bool {
		return noState && v.Node.State || only != nil && !only(v)
	})
}

// renamed is a name after a renaming, if there is one.
func renamed(name string, rename func(string) string) string {
	if rename == nil {
		return name
	}
	return rename(name)
}

// bare is an error about a file without its path, which the reader is told anyway.
func bare(err error) error {
	if e, ok := errors.AsType[*safetensors.Error](err); ok {
		return &safetensors.Error{Tensor: e.Tensor, Err: e.Err}
	}
	return regular.Bare(err)
}
