package distrib

import (
	"fmt"
	"math"
)

// Additive is the rule of tables: w += u. With Decay, w is multiplied by 1-Decay first, once an
// update: that is what weight decay is where updates are factors.
type Additive struct {
	Decay float32

	versions
}

// Apply adds the update.
func (a *Additive) Apply(w []float32, cols int, e *Entry) Version {
	shrink(w, a.Decay)
	e.U.AddTo(w, cols, 1)
	return a.next(e.Ref.Param)
}

func shrink(w []float32, decay float32) {
	if decay == 0 {
		return
	}
	keep := 1 - float32(decay)
	for i, v := range w {
		w[i] = float32(keep * v)
	}
}

// Momentum is heavy ball: v = Mu*v + u; w += v. An update has the step size in it.
type Momentum struct {
	Mu, Decay float32 // Decay: as of [Additive]

	versions
	rows rows[momentum]
}

type momentum struct{ v []float32 }

// Apply folds an update in.
func (m *Momentum) Apply(w []float32, cols int, e *Entry) Version {
	shrink(w, m.Decay)
	for i, g := range m.rows.split(w, cols, e) {
		s := m.rows.at(e.Ref.Param, e.Ref.Row+int32(i))
		if s.v == nil {
			s.v = make([]float32, cols)
		}
		row := w[i*cols : (i+1)*cols]
		for j, u := range g {
			s.v[j] = float32(m.Mu*s.v[j]) + u
			row[j] += s.v[j]
		}
	}
	return m.next(e.Ref.Param)
}

// StateBytes is a number an element.
func (m *Momentum) StateBytes(ps []*Param) int64 { return stateBytes(ps, 1, 0) }

// Save appends the row's velocity.
func (m *Momentum) Save(dst []float32, p ParamID, row int32, cols int) []float32 {
	if s, ok := m.rows.have(p, row); ok {
		dst = append(dst, s.v...)
	}
	return dst
}

// Load sets the row's velocity.
func (m *Momentum) Load(p ParamID, row int32, cols int, state []float32) error {
	if len(state) == 0 {
		m.rows.Drop(p, row)
		return nil
	}
	if err := stateFits("momentum", len(state), cols, cols); err != nil {
		return err
	}
	m.rows.at(p, row).v = append([]float32(nil), state...)
	return nil
}

// Drop forgets the row's velocity.
func (m *Momentum) Drop(p ParamID, row int32) { m.rows.Drop(p, row) }

// Adam is Kingma and Ba's rule, as PyTorch computes it; with Decay, Loshchilov and
// Hutter's. An update is a gradient, or a sum of some. A row's steps are counted on their
// own.
type Adam struct {
	LR, Beta1, Beta2, Eps float32 // 0: 1e-3, 0.9, 0.999, 1e-8
	Decay                 float32 // of LR, once a step

	versions
	rows rows[adam]
}

type adam struct {
	m, v   []float32
	steps  int64
	p1, p2 float64 // Beta1 and Beta2 to the power of steps
}

func or(x, otherwise float32) float32 {
	if x == 0 {
		return otherwise
	}
	return x
}

// Apply takes a step along a gradient.
func (a *Adam) Apply(w []float32, cols int, e *Entry) Version {
	shrink(w, or(a.LR, 1e-3)*a.Decay)
	for i, g := range a.rows.split(w, cols, e) {
		s := a.rows.at(e.Ref.Param, e.Ref.Row+int32(i))
		if s.m == nil {
			s.m, s.v, s.p1, s.p2 = make([]float32, cols), make([]float32, cols), 1, 1
		}
		a.step(s, w[i*cols:(i+1)*cols], g)
	}
	return a.next(e.Ref.Param)
}

func (a *Adam) step(s *adam, w, g []float32) {
	b1, b2, eps := or(a.Beta1, 0.9), or(a.Beta2, 0.999), or(a.Eps, 1e-8)
	s.steps++
	s.p1, s.p2 = float64(s.p1*float64(b1)), float64(s.p2*float64(b2))
	rate := float32(float64(or(a.LR, 1e-3)) / (1 - s.p1))
	scale := float32(math.Sqrt(1 - s.p2))
	for i, u := range g {
		s.m[i] = float32(b1*s.m[i]) + float32((1-b1)*u)
		s.v[i] = float32(b2*s.v[i]) + float32(float32((1-b2)*u)*u)
		w[i] -= float32(rate * s.m[i] / (sqrt(s.v[i])/scale + eps))
	}
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// StateBytes is two numbers an element and two a row.
func (a *Adam) StateBytes(ps []*Param) int64 { return stateBytes(ps, 2, 2) }

// steps are saved in two numbers, exact below 2^48.
const stepsUnit = 1 << 24

// Save appends the row's moments and how many steps it has made.
func (a *Adam) Save(dst []float32, p ParamID, row int32, cols int) []float32 {
	if s, ok := a.rows.have(p, row); ok {
		dst = append(append(dst, s.m...), s.v...)
		dst = append(dst, float32(s.steps/stepsUnit), float32(s.steps%stepsUnit))
	}
	return dst
}

// Load sets them.
func (a *Adam) Load(p ParamID, row int32, cols int, state []float32) error {
	if len(state) == 0 {
		a.rows.Drop(p, row)
		return nil
	}
	if err := stateFits("Adam", len(state), 2*cols+2, cols); err != nil {
		return err
	}
	s := a.rows.at(p, row)
	s.m = append([]float32(nil), state[:cols]...)
	s.v = append([]float32(nil), state[cols:2*cols]...)
	s.steps = int64(state[2*cols])*stepsUnit + int64(state[2*cols+1])
	s.p1, s.p2 = powered(or(a.Beta1, 0.9), s.steps), powered(or(a.Beta2, 0.999), s.steps)
	return nil
}

// powered multiplies step by step, as the steps did. At zero, it stays there.
func powered(b float32, steps int64) float64 {
	p := 1.0
	for i := int64(0); i < steps && p != 0; i++ {
		p = float64(p * float64(b))
	}
	return p
}

// Drop forgets the row's moments.
func (a *Adam) Drop(p ParamID, row int32) { a.rows.Drop(p, row) }

// versions count the updates of each parameter.
type versions struct{ of map[ParamID]Version }

func (v *versions) next(p ParamID) Version {
	if v.of == nil {
		v.of = map[ParamID]Version{}
	}
	v.of[p]++
	return v.of[p]
}

// Snapshot is how many updates the parameter has had.
func (v *versions) Snapshot(r Ref) Version { return v.of[r.Param] }

// rows is the state of the rows that a node owns.
type rows[T any] struct {
	of      map[rowOf]*T
	scratch []float32
}

type rowOf struct {
	param ParamID
	row   int32
}

// at is a row's state, a zero one if it had none.
func (r *rows[T]) at(p ParamID, row int32) *T {
	if r.of == nil {
		r.of = map[rowOf]*T{}
	}
	s, ok := r.of[rowOf{p, row}]
	if !ok {
		s = new(T)
		r.of[rowOf{p, row}] = s
	}
	return s
}

func (r *rows[T]) have(p ParamID, row int32) (*T, bool) {
	s, ok := r.of[rowOf{p, row}]
	return s, ok
}

// Drop forgets a row.
func (r *rows[T]) Drop(p ParamID, row int32) { delete(r.of, rowOf{p, row}) }

// split yields an update of rows w row by row, as dense numbers.
func (r *rows[T]) split(w []float32, cols int, e *Entry) func(func(int, []float32) bool) {
	g, ok := plain(e.U).(Dense)
	if !ok {
		if cap(r.scratch) < len(w) {
			r.scratch = make([]float32, len(w))
		}
		g = Dense(r.scratch[:len(w)])
		clear(g)
		e.U.AddTo(g, cols, 1)
	}
	return func(yield func(int, []float32) bool) {
		for i := 0; i*cols < len(w); i++ {
			if !yield(i, g[i*cols:(i+1)*cols]) {
				return
			}
		}
	}
}

func stateBytes(ps []*Param, element, row int64) int64 {
	var n int64
	for _, p := range ps {
		n += 4 * int64(p.Rows) * (element*int64(p.Cols) + row)
	}
	return n
}

func stateFits(rule string, have, want, cols int) error {
	if have == want {
		return nil
	}
	return &ShapeError{1, cols, fmt.Sprintf("a state of %d numbers for %s", have, rule)}
}
