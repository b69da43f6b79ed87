package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/orion"
)

// Strata is matrix factorisation by stratified gradient descent (J. Wei's thesis, section 4.2): W,
// Rows x Rank, and H, Cols x Rank, that make the squared error of W H^T at the known elements
// least, beside a penalty, which the thesis has not. The elements are blocks of rows and columns;
// workers have blocks at the same time that have neither in common, so that what comes of it is
// that of a serial order. The matrix that has more rows stays divided among the workers, the other
// one rotates.
type Strata struct {
	Data *Ratings
	Rank int
	Seed uint64 // of the beginning

	Epochs int
	Rate   float64 // the step size
	Lambda float64 // for each element, that times half the squares of its rows is added
	Decay  float64 // what it is multiplied by every epoch, 0: 1
}

func (m *Strata) schedule() schedule {
	return schedule{m.Epochs, 1, 1, m.Rate, orOne(m.Decay)}
}

// Rounds are how many epochs there are, of one clock each.
func (m *Strata) Rounds() (epochs, clocks int) { return m.Epochs, 1 }

// Check reports what is wrong with the task.
func (m *Strata) Check() error {
	mf := MF{Data: m.Data, Rank: m.Rank, Epochs: m.Epochs, Rate: m.Rate, Decay: m.Decay,
		Lambda: m.Lambda}
	return mf.Check()
}

// Params are what is learnt, at the beginning: H and W, by the names that [MF] has for them.
func (m *Strata) Params() []*distrib.Param {
	ps := m.zeros()
	for i, p := range ps {
		m.begin(ps, orion.Elements{Array: i, N: int64(len(p.Data))})
	}
	return ps
}

// zeros are params of which nothing is drawn. Memory that nobody writes to is none.
func (m *Strata) zeros() []*distrib.Param {
	return []*distrib.Param{
		{Name: "mf/r", Rows: m.Data.Cols, Cols: m.Rank, Data: make([]float32, m.Data.Cols*m.Rank)},
		{Name: "mf/l", Rows: m.Data.Rows, Cols: m.Rank, Data: make([]float32, m.Data.Rows*m.Rank)}}
}

// begin draws elements, uniform in +-1/sqrt(rank) around what has the products of all rows be the
// mean of the known elements, if that is positive: ratings from 1 to 5 are near to it at once.
func (m *Strata) begin(ps []*distrib.Param, e orion.Elements) {
	top := 1 / math.Sqrt(float64(m.Rank))
	middle := float64(top * math.Sqrt(max(0, m.Data.mean())))
	for k := e.From; k < e.From+e.N; k++ {
		u := orion.Uniform(m.Seed, uint64(e.Array)<<56|uint64(k))
		ps[e.Array].Data[k] = float32(middle + float64(top*(float64(2*u)-1)))
	}
}

// loop is a pass over the known elements, as Orion sees it (figure 5.4).
func (m *Strata) loop() *orion.Loop {
	l := &orion.Loop{Name: "mf", Space: []orion.Dim{{Name: "row", Size: int64(m.Data.Rows)},
		{Name: "col", Size: int64(m.Data.Cols)}}}
	for i, name := range []string{"H", "W"} {
		dim := 1 - i
		l.Arrays = append(l.Arrays, orion.Array{Name: name, Bytes: 4,
			Shape: []int64{l.Space[dim].Size, int64(m.Rank)}})
		for _, access := range []orion.Access{orion.Read, orion.Write} {
			l.Refs = append(l.Refs, orion.Ref{Array: i, Access: access,
				At: []orion.Subscript{{Form: orion.Index, Dim: dim}, {Form: orion.All}}})
		}
	}
	return l
}

// partBytes is how large a part of the matrix that rotates is, at most: what comes while a worker
// computes waits in the group's window.
const partBytes = 1 << 20

// plan is the schedule for a number of workers.
func (m *Strata) plan(workers int) (*orion.Schedule, error) {
	moves := int64(min(m.Data.Rows, m.Data.Cols)) * int64(m.Rank) * 4
	times := moves / (partBytes * int64(workers))
	c, err := orion.Choose(m.loop(), orion.Options{Workers: workers, Times: int(max(times, 1)) + 1})
	if err != nil {
		return nil, err
	}
	return c.Over(func(yield func([]int64) bool) {
		var point [2]int64
		for i, row := range m.Data.row {
			point[0], point[1] = int64(row), int64(m.Data.col[i])
			if !yield(point[:]) {
				return
			}
		}
	}), nil
}

// Run is a worker's part. There is nothing to synchronise, so it takes no synchronizer.
func (m *Strata) Run(ctx context.Context, _ distrib.Synchronizer, w Worker) error {
	r, err := m.part(w)
	if err != nil {
		return err
	}
	return r.worker.Run(ctx, m.Epochs-r.done)
}

// part is what a worker runs.
func (m *Strata) part(w Worker) (*strataRun, error) {
	if err := errors.Join(m.Check(), w.check()); err != nil {
		return nil, err
	}
	ps := m.zeros()
	done, err := w.resume(ps, m.Epochs)
	var s *orion.Schedule
	if err == nil {
		s, err = m.plan(w.Of)
	}
	if err != nil {
		return nil, fmt.Errorf("mf: %w", err)
	}
	r := &strataRun{Strata: m, w: w, params: ps, done: done, rates: m.schedule().rates(),
		own: s.Own(w.Rank)}
	for _, e := range r.own {
		if w.From == nil {
			m.begin(ps, e)
		}
	}
	if w.Rank < len(s.Blocks) {
		r.blocks = m.Data.blocks(s, w.Rank)
	}
	r.worker = &orion.Worker{Schedule: s, Group: w.Group, Memory: factorMemory(ps), Block: r.block,
		Sums: make([]float64, 1), Total: r.total, After: r.after}
	return r, nil
}

// strataRun is a worker's part in a run.
type strataRun struct {
	*Strata
	w      Worker
	worker *orion.Worker
	params []*distrib.Param
	own    []orion.Elements // between passes
	blocks []*Ratings
	rates  []float64
	done   int // epochs, before the run
}

// blocks are the elements of each of a worker's blocks, in order.
func (r *Ratings) blocks(s *orion.Schedule, worker int) []*Ratings {
	of := map[[2]int]*Ratings{}
	var list []*Ratings
	for _, b := range s.Blocks[worker] {
		block := &Ratings{Rows: r.Rows, Cols: r.Cols}
		of[[2]int{b.Space, b.Time}] = block
		list = append(list, block)
	}
	var point [2]int64
	for i, row := range r.row {
		point[0], point[1] = int64(row), int64(r.col[i])
		if b := of[[2]int{s.Across.Part(point[:]), s.Along.Part(point[:])}]; b != nil {
			b.add(row, r.col[i], r.value[i])
		}
	}
	return list
}

// errDiverged is what comes of steps that are too long.
var errDiverged = errors.New("mf: the loss is no number any more: take a smaller step size")

// block takes a step for each element of a block. Both matrices take it from where they were.
func (r *strataRun) block(_ context.Context, pass, index int) error {
	h, w, b := r.params[0].Data, r.params[1].Data, r.blocks[index]
	rate, loss := r.rates[r.done+pass], 0.0
	step, keep := float32(rate), float32(1-float64(rate*r.Lambda))
	for i, v := range b.value {
		loss += descend(rowOf(w, r.Rank, b.row[i]), rowOf(h, r.Rank, b.col[i]), v, step, keep)
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return errDiverged
	}
	r.worker.Sums[0] += loss
	return nil
}

// descend takes a step towards a value, after each number of either row is multiplied by keep, and
// is the squared error before.
func descend(w, h []float32, v, rate, keep float32) float64 {
	e := v - dot4(w, h)
	g := rate * e
	for h = h[:len(w)]; len(w) >= 4; w, h = w[4:], h[4:] {
		a, b := (*[4]float32)(w), (*[4]float32)(h)
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		a[0], a[1] = float32(keep*a0)+float32(g*b0), float32(keep*a1)+float32(g*b1)
		a[2], a[3] = float32(keep*a2)+float32(g*b2), float32(keep*a3)+float32(g*b3)
		b[0], b[1] = float32(keep*b0)+float32(g*a0), float32(keep*b1)+float32(g*a1)
		b[2], b[3] = float32(keep*b2)+float32(g*a2), float32(keep*b3)+float32(g*a3)
	}
	for k, x := range w {
		w[k] = float32(keep*x) + float32(g*h[k])
		h[k] = float32(keep*h[k]) + float32(g*x)
	}
	return float64(float64(e) * float64(e))
}

// dot4 adds products up in four sums, which a processor does at the same time, and then these.
func dot4(x, y []float32) float32 {
	var s0, s1, s2, s3 float32
	for y = y[:len(x)]; len(x) >= 4; x, y = x[4:], y[4:] {
		a, b := (*[4]float32)(x), (*[4]float32)(y)
		s0 += float32(a[0] * b[0])
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
	}
	for k, v := range x {
		s0 += float32(v * y[k])
	}
	return (s0 + s1) + (s2 + s3)
}

func (r *strataRun) total(pass int, sums []float64) {
	if r.w.Total != nil {
		r.w.Total(Progress{Epoch: r.done + pass + 1, Loss: sums[0], Count: r.Data.Len()})
	}
}

// after keeps what is due, and hands out the state if somebody asks.
func (r *strataRun) after(ctx context.Context, pass int) error {
	epoch := r.done + pass + 1
	if r.w.Keep != nil {
		if err := r.w.Keep(epoch, epoch == r.Epochs, func() ([]distrib.SavedRows, error) {
			err := r.worker.Home(ctx)
			return r.rows(), err
		}); err != nil {
			return err
		}
	}
	if r.w.Between == nil || epoch == r.Epochs {
		return nil
	}
	if err := r.worker.Gather(ctx); err != nil {
		return err
	}
	r.worker.Told()
	stop, err := r.w.Between(ctx, StateOf(r.params, epoch))
	if err == nil && stop {
		err = ErrStopped
	}
	return err
}

// rows are those that this worker has between passes.
func (r *strataRun) rows() (rows []distrib.SavedRows) {
	cols := int64(r.Rank)
	for _, e := range r.own {
		p := r.params[e.Array]
		rows = append(rows, distrib.SavedRows{Param: p.Name, Cols: r.Rank,
			Row: int32(e.From / cols), N: int32(e.N / cols), Data: p.Data[e.From:][:e.N]})
	}
	return rows
}

// factorMemory is where parameters are, as Orion's arrays of the same numbers.
type factorMemory []*distrib.Param

// Load appends floats.
func (m factorMemory) Load(b []byte, array int, from, n int64) []byte {
	for _, x := range m[array].Data[from:][:n] {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// Store takes floats.
func (m factorMemory) Store(array int, from, n int64, b []byte) {
	for i := range m[array].Data[from:][:n] {
		m[array].Data[from+int64(i)] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}
