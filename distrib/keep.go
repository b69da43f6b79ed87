package distrib

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// standby is the rows of another node as this one keeps them.
type standby struct {
	slot []int32 // of a parameter's rows; -1: it is not of the owner
	rows store
}

// keepRows begins to keep a parameter's rows of the owners that this node has replicas of.
func (p *param) keepRows(first *Param) error {
	l, e := p.lane, p.lane.e
	if len(e.cfg.Keeps) == 0 {
		return nil
	}
	if l.mode != served || !l.adds() || l.weighs() != nil {
		return errors.New("distrib: replicas are of rows that have an owner which adds updates " +
			"to them, and nothing else")
	}
	for _, owner := range e.cfg.Keeps {
		s := &standby{slot: make([]int32, p.rows)}
		n := int32(0)
		for i, of := range p.owner {
			if s.slot[i] = -1; of == owner {
				s.slot[i] = n
				n++
			}
		}
		s.rows = p.newStore(int(n))
		for i, at := range s.slot {
			if at >= 0 {
				s.rows.begin(int(at), first, i, 1)
			}
		}
		if p.kept == nil {
			p.kept = map[NodeID]*standby{}
		}
		p.kept[owner] = s
	}
	return nil
}

// keptBytes is the memory of all replicas of other nodes' rows.
func (p *param) keptBytes() (n int64) {
	for _, s := range p.kept {
		now, _, _ := s.rows.size()
		n += now + 4*int64(len(s.slot))
	}
	return n
}

// Keep is of [Pool].
func (h handler) Keep(owner NodeID, body [][]byte) error {
	e := h.e
	var frames []Frame
	err := Decode(joined(&Msg{Body: body}), e.shapes, func(f Frame) error {
		f.Ref.N = max(f.Ref.N, 1)
		s := e.params[f.Ref.Param].kept[owner]
		for i := f.Ref.Row; i < f.Ref.Row+f.Ref.N; i++ {
			if s == nil || s.slot[i] < 0 {
				return fmt.Errorf("it has updates of row %d of %s for a replica of node %d, "+
					"which is not here", i, e.params[f.Ref.Param].name, owner)
			}
		}
		frames = append(frames, f)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range frames {
		s := e.params[f.Ref.Param].kept[owner]
		s.rows.add(int(s.slot[f.Ref.Row]), int(f.Ref.N), f.U)
	}
	return nil
}

// Norm is of [Pool].
func (h handler) Norm(m *Msg) float64 {
	sum := 0.0
	err := Decode(joined(m), h.e.shapes, func(f Frame) error {
		p := h.e.params[f.Ref.Param]
		d := make(Dense, max(int(f.Ref.N), 1)*p.cols)
		f.U.AddTo(d, p.cols, 1)
		for _, x := range d {
			sum += float64(float64(x) * float64(x))
		}
		return nil
	})
	if err != nil {
		return 0 // whoever takes the message says so
	}
	return math.Sqrt(sum)
}

// Kept is the replica of another node's rows, nil if this one keeps none: what those began with,
// and all updates that have come for it; or this node's own rows. The memory is the caller's.
func (e *Engine) Kept(owner NodeID) (rows []SavedRows) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.params {
		s := p.kept[owner]
		if owner == e.self && p.master != nil {
			s = &standby{p.slot, p.master}
		}
		if s == nil {
			continue
		}
		for row := 0; row < p.rows; row++ {
			n := 0
			for row+n < p.rows && s.slot[row+n] >= 0 {
				n++
			}
			if n == 0 {
				continue
			}
			r := SavedRows{Param: p.name, Cols: p.cols, Row: int32(row), N: int32(n)}
			s.rows.save(&r, int(s.slot[row]), n)
			rows = append(rows, r)
			row += n - 1
		}
	}
	return slices.Clip(rows)
}
