package gomem

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// ErrApart is wrapped by errors about a variable as a whole that is divided among the
// processes of a mesh: see [Session.Blocks].
var ErrApart = errors.New("it is divided among processes")

// Variables are the variables of the session, in order of their names: those that
// the graph had when it was planned, of all processes of a mesh. They can be asked for after
// Close.
func (s *Session) Variables() []graph.Value {
	if s.graph == nil {
		return nil
	}
	var out []graph.Value
	for _, n := range s.graph.Variables() {
		if s.has(n.Name) || s.apart[n.Name] != nil {
			out = append(out, n.Value(0))
		}
	}
	slices.SortFunc(out, func(a, b graph.Value) int {
		return cmp.Compare(a.Node.Name, b.Node.Name)
	})
	return out
}

// Get copies the value of a variable; of one that workers share, the fresh one, for which
// it waits. The error wraps [ErrTorn] if a step that
// failed had begun to write it, and [ErrApart] if other processes have blocks of it.
func (s *Session) Get(v graph.Value) (Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.get(v)
	if err != nil {
		return Tensor{}, fmt.Errorf("gomem: get %s: %w", v, err)
	}
	return out, nil
}

// get is Get for who has the session.
func (s *Session) get(v graph.Value) (Tensor, error) {
	pieces, err := s.piecesOf(v)
	if err != nil {
		return Tensor{}, err
	}
	if s.apart[v.Node.Name] != nil {
		return Tensor{}, ErrApart
	}
	if len(pieces) == 1 {
		return s.read(pieces[0], v.Type())
	}
	out := tensor.New(v.Type())
	for _, p := range pieces {
		piece, err := s.read(p, v.Type())
		if err != nil {
			return Tensor{}, err
		}
		p.Into(out, piece)
	}
	return out, nil
}

// read copies a piece of a variable of some type.
func (s *Session) read(p mesh.Piece, whole graph.Type) (Tensor, error) {
	if s.torn[p.Name] {
		return Tensor{}, ErrTorn
	}
	out := tensor.New(p.Type(whole))
	return out, s.targets[0].exec.Read(s.slots[p.Name], out.Data)
}

// Blocks are the blocks that a variable is in which is divided among the processes of a mesh,
// and who has each; nil of any other. They make it up, and are the same on all processes.
func (s *Session) Blocks(v graph.Value) []mesh.Owned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.piecesOf(v); err != nil {
		return nil
	}
	return s.apart[v.Node.Name]
}

// Rank is the process of the mesh that the session is, in the words of Blocks; 0 without one.
func (s *Session) Rank() int {
	if s.planned == nil || s.planned.Mesh == nil {
		return 0
	}
	return s.planned.Mesh.Rank
}

// Block copies the i-th of a variable's Blocks, which this process must have.
func (s *Session) Block(v graph.Value, i int) (Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.owned(v, i)
	out := Tensor{}
	if err == nil {
		out, err = s.read(b.Piece, v.Type())
	}
	if err != nil {
		return Tensor{}, fmt.Errorf("gomem: block %d of %s: %w", i, v, err)
	}
	return out, nil
}

// SetBlock gives the i-th of a variable's Blocks, which this process must have, a value.
func (s *Session) SetBlock(v graph.Value, i int, data Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.setBlock(v, i, data); err != nil {
		return fmt.Errorf("gomem: set block %d of %s: %w", i, v, err)
	}
	return nil
}

// setBlock is SetBlock for who has the session.
func (s *Session) setBlock(v graph.Value, i int, data Tensor) error {
	b, err := s.owned(v, i)
	if err != nil {
		return err
	}
	if want := b.Type(v.Type()); !data.Type.Equal(want) {
		return fmt.Errorf("it is %s, not %s", want, data.Type)
	}
	return s.put(b.Piece, data)
}

// owned is the i-th of a variable's blocks, which this process must have.
func (s *Session) owned(v graph.Value, i int) (mesh.Owned, error) {
	if _, err := s.piecesOf(v); err != nil {
		return mesh.Owned{}, err
	}
	blocks := s.apart[v.Node.Name]
	if i < 0 || i >= len(blocks) || !slices.Contains(blocks[i].Ranks, s.planned.Mesh.Rank) {
		return mesh.Owned{}, errors.New("this process has no such block")
	}
	return blocks[i], nil
}

// put gives a piece of a variable its value.
func (s *Session) put(p mesh.Piece, data Tensor) error {
	if err := s.targets[0].exec.Write(s.slots[p.Name], data.Data); err != nil {
		return err
	}
	delete(s.torn, p.Name)
	return nil
}

// Set gives a variable a value, of which this process keeps what it has of the variable.
func (s *Session) Set(v graph.Value, data Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.set(v, data); err != nil {
		return fmt.Errorf("gomem: set %s: %w", v, err)
	}
	return nil
}

// set is Set for who has the session.
func (s *Session) set(v graph.Value, data Tensor) error {
	pieces, err := s.piecesOf(v)
	if err != nil {
		return err
	}
	if !data.Type.Equal(v.Type()) {
		return fmt.Errorf("it is %s, not %s", v.Type(), data.Type)
	}
	for _, p := range pieces {
		part := data
		if len(p.Cut) > 0 {
			part = p.Of(data)
		}
		if err := s.put(p, part); err != nil {
			return err
		}
	}
	return nil
}

// Read shows the value of a variable some rows of its last axis at a time, in order, so that no
// more than these are in memory beside the session's own. Each part is flat, and show may keep
// nothing of it, nor use the session. Of a variable that a mesh cuts the only part is the whole.
// Errors are those of [Session.Get], and show's as it is, which ends it.
func (s *Session) Read(v graph.Value, show func(part Tensor) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var theirs error
	err := showParts(s, v, func(part Tensor) error {
		theirs = show(part)
		return theirs
	})
	if err == nil || theirs != nil {
		return theirs
	}
	return fmt.Errorf("gomem: read %s: %w", v, err)
}

// Write gives a variable a value some rows of its last axis at a time, in order: fill has to set
// all elements of each part, which is flat; at is the number of its first element. It may not use
// the session. Of a variable that a mesh cuts the only part is the whole. An error of fill ends it
// and is returned as it is; if parts have been written before, the variable is torn: see [ErrTorn].
func (s *Session) Write(v graph.Value, fill func(part Tensor, at int64) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var theirs error
	err := fillParts(s, v, func(part Tensor, at int64) error {
		theirs = fill(part, at)
		return theirs
	})
	if err == nil || theirs != nil {
		return theirs
	}
	return fmt.Errorf("gomem: write %s: %w", v, err)
}

// piecesOf are the pieces that a variable is in here, each of which has a slot: itself,
// unless a mesh divides it; none if other processes have it.
func (s *Session) piecesOf(v graph.Value) ([]mesh.Piece, error) {
	if s.device == nil {
		return nil, ErrClosed
	}
	if !v.Valid() || v.Graph() != s.graph || v.Node.Kind != graph.KindVariable || v.Index != 0 ||
		!s.has(v.Node.Name) && s.apart[v.Node.Name] == nil {
		return nil, fmt.Errorf("it is no variable of this session")
	}
	if pieces := s.pieces()[v.Node.Name]; pieces != nil {
		return pieces, nil
	}
	if !s.has(v.Node.Name) {
		return nil, nil
	}
	return []mesh.Piece{{Name: v.Node.Name}}, nil
}

// pieces are those that variables are in, if a mesh divides them.
func (s *Session) pieces() mesh.Pieces {
	if s.planned.Mesh == nil {
		return nil
	}
	return s.planned.Mesh.Pieces
}

// has reports whether the plans know a variable.
func (s *Session) has(name string) bool {
	if pieces := s.pieces()[name]; pieces != nil {
		name = pieces[0].Name
	}
	_, ok := s.slots[name]
	return ok
}

// wholes are the names of the variables that variables of the plans are, or are pieces of.
func (s *Session) wholes(names []string) []string {
	whole := map[string]string{}
	for name, pieces := range s.pieces() {
		for _, p := range pieces {
			whole[p.Name] = name
		}
	}
	var out []string
	for _, name := range names {
		out = append(out, cmp.Or(whole[name], name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
