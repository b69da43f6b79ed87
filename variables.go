package gomem

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/mesh"
)

// Variables are the variables of the session, in order of their names: those that
// the graph had when it was planned. They can be asked for after Close.
func (s *Session) Variables() []graph.Value {
	if s.graph == nil {
		return nil
	}
	var out []graph.Value
	for _, n := range s.graph.Variables() {
		if s.has(n.Name) {
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
// failed had begun to write it.
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
	out := tensor.New(v.Type())
	for _, p := range pieces {
		b := s.slots[p.Name]
		if s.torn[b.Name] {
			return Tensor{}, ErrTorn
		}
		if len(pieces) == 1 {
			return out, s.targets[0].exec.Read(b, out.Data)
		}
		piece := tensor.New(p.Type(v.Type()))
		if err := s.targets[0].exec.Read(b, piece.Data); err != nil {
			return Tensor{}, err
		}
		p.Into(out, piece)
	}
	return out, nil
}

// Set gives a variable a value.
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
		if len(pieces) > 1 {
			part = p.Of(data)
		}
		if err := s.targets[0].exec.Write(s.slots[p.Name], part.Data); err != nil {
			return err
		}
		delete(s.torn, p.Name)
	}
	return nil
}

// piecesOf are the pieces that a variable is in, each of which has a slot: itself, unless
// a mesh divides it.
func (s *Session) piecesOf(v graph.Value) ([]mesh.Piece, error) {
	if s.device == nil {
		return nil, ErrClosed
	}
	if !v.Valid() || v.Graph() != s.graph || v.Node.Kind != graph.KindVariable || v.Index != 0 ||
		!s.has(v.Node.Name) {
		return nil, fmt.Errorf("it is no variable of this session")
	}
	if pieces := s.pieces()[v.Node.Name]; pieces != nil {
		return pieces, nil
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
