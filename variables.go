package gomem

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/plan"
)

// Variables are the variables of the session, in order of their names: those that
// the graph had when it was planned. They can be asked for after Close.
func (s *Session) Variables() []graph.Value {
	if s.graph == nil {
		return nil
	}
	var out []graph.Value
	for _, n := range s.graph.Variables() {
		if _, ok := s.slots[n.Name]; ok {
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
	b, err := s.binding(v)
	switch {
	case err != nil:
		return Tensor{}, err
	case s.torn[b.Name]:
		return Tensor{}, ErrTorn
	}
	out := tensor.New(v.Type())
	return out, s.targets[0].exec.Read(b, out.Data)
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
	b, err := s.binding(v)
	if err != nil {
		return err
	}
	if !data.Type.Equal(v.Type()) {
		return fmt.Errorf("it is %s, not %s", v.Type(), data.Type)
	}
	if err := s.targets[0].exec.Write(b, data.Data); err != nil {
		return err
	}
	delete(s.torn, b.Name)
	return nil
}

// binding is where a variable is.
func (s *Session) binding(v graph.Value) (plan.Binding, error) {
	if s.device == nil {
		return plan.Binding{}, ErrClosed
	}
	if v.Valid() && v.Graph() == s.graph && v.Node.Kind == graph.KindVariable && v.Index == 0 {
		if b, ok := s.slots[v.Node.Name]; ok {
			return b, nil
		}
	}
	return plan.Binding{}, fmt.Errorf("it is no variable of this session")
}
