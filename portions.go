package gomem

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// portionBytes is how much of a variable is copied at once, or one row if that is more.
const portionBytes = 1 << 20

// showParts is Read for who has the session.
func showParts(s *Session, v graph.Value, show func(part Tensor) error) error {
	pieces, err := s.piecesOf(v)
	if err != nil {
		return err
	}
	if !whole(pieces) {
		out, err := s.get(v)
		if err != nil {
			return err
		}
		return show(flat(out, v.Type().Elems()))
	}
	p := pieces[0]
	if s.torn[p.Name] {
		return ErrTorn
	}
	return each(v.Type(), func(part Tensor, at int64) error {
		err := s.targets[0].exec.ReadAt(s.slots[p.Name], part.Data, at*part.Type.DType.Size())
		if err != nil {
			return err
		}
		return show(part)
	})
}

// fillParts is Write for who has the session.
func fillParts(s *Session, v graph.Value, fill func(part Tensor, at int64) error) error {
	pieces, err := s.piecesOf(v)
	if err != nil {
		return err
	}
	if !whole(pieces) {
		out := tensor.New(v.Type())
		if err := fill(flat(out, v.Type().Elems()), 0); err != nil {
			return err
		}
		return s.set(v, out)
	}
	p := pieces[0]
	err = each(v.Type(), func(part Tensor, at int64) error {
		if err := fill(part, at); err != nil {
			return err
		}
		s.torn[p.Name] = true
		return s.targets[0].exec.WriteAt(s.slots[p.Name], part.Data, at*part.Type.DType.Size())
	})
	if err == nil {
		delete(s.torn, p.Name)
	}
	return err
}

// whole reports whether the pieces of a variable are it.
func whole(pieces []mesh.Piece) bool { return len(pieces) == 1 && len(pieces[0].Cut) == 0 }

// flat is n elements of a tensor, without its axes.
func flat(t Tensor, n int) Tensor {
	kind := tensor.Of(t.Type.DType, n)
	return Tensor{Type: kind, Data: t.Data[:kind.Bytes()]}
}

// each visits parts of a type in order, of some rows each. All are in the same memory.
func each(t graph.Type, visit func(part Tensor, at int64) error) error {
	row, all := 1, t.Elems()
	if k := t.Rank(); k > 1 {
		row = max(t.Size(k-1), 1)
	}
	most := min(all, row*max(1, portionBytes/(row*int(t.DType.Size()))))
	buffer := tensor.New(tensor.Of(t.DType, most))
	for at := 0; at < all; at += most {
		if err := visit(flat(buffer, min(most, all-at)), int64(at)); err != nil {
			return err
		}
	}
	return nil
}
