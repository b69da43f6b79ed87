package workload

import (
	"context"
	"math"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/libm"
)

// alone is the synchronizer of a world of one.
type alone struct {
	ps      []*distrib.Param
	pending []func()
	clock   distrib.Clock
	pushes  int
}

func (a *alone) Attach(ps ...*distrib.Param) error {
	a.ps = ps
	for _, p := range ps {
		if p.Kind != nil && p.Cells == nil {
			give(p, make([]float32, p.Rows*p.Cols))
		}
	}
	return nil
}

func (a *alone) Push(_ context.Context, ref distrib.Ref, u distrib.Update) error {
	p := a.ps[ref.Param]
	if p.Kind != nil {
		a.pushes++
		a.pending = append(a.pending, func() {
			p.Cells[ref.Row] = distrib.Add(p.Cells[ref.Row], u)
		})
		return p.Kind.Check(u, p.Cols)
	}
	rows := p.Data[int(ref.Row)*p.Cols:]
	if ref.N > 0 {
		rows = rows[:int(ref.N)*p.Cols]
	}
	if err := distrib.Check(u, len(rows)/p.Cols, p.Cols); err != nil {
		return err
	}
	a.pushes++
	a.pending = append(a.pending, func() { u.AddTo(rows, p.Cols, 1) })
	return nil
}

func (a *alone) Pull(context.Context, distrib.Ref) (distrib.Version, error) {
	for _, f := range a.pending {
		f()
	}
	a.pending = nil
	return 0, nil
}

func (a *alone) Tick(context.Context) (distrib.Clock, error) {
	a.clock++
	return a.clock, nil
}

func (a *alone) Close() error { return nil }

// run runs a workload on its own and returns its curve.
func run(t *testing.T, f func(distrib.Synchronizer, Worker) error, epochs int) []Progress {
	t.Helper()
	var sum Totals
	if err := f(&alone{}, Worker{Of: 1, Report: sum.Add}); err != nil {
		t.Fatal(err)
	}
	var curve []Progress
	for e := range epochs + 1 {
		p, ok := sum.Epoch(e, 1)
		if !ok {
			t.Fatalf("no report of epoch %d", e)
		}
		curve = append(curve, p)
	}
	return curve
}

func sameCurve(t *testing.T, have, want []Progress, tolerance float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(have[i].Mean() - want[i].Mean()); !(d <= tolerance) {
			t.Errorf("epoch %d: loss %.6f, want %.6f", i, have[i].Mean(), want[i].Mean())
		}
	}
}

func covertype() *MLR {
	train, test := Covertype(1, 500, 50)
	return &MLR{Train: train, Test: test, Epochs: 40, Clocks: 10, Rate: .01, Decay: .99}
}

// TestMLRAlone: one worker is the serial run in float32; and what goes as factors is what
// goes as a matrix.
func TestMLRAlone(t *testing.T) {
	m := covertype()
	want, err := m.Serial()
	if err != nil {
		t.Fatal(err)
	}
	m.Pushes = 3
	for _, m.Factors = range []bool{false, true} {
		have := run(t, func(s distrib.Synchronizer, w Worker) error {
			return m.Run(context.Background(), s, w)
		}, m.Epochs)
		sameCurve(t, have, want, 1e-5)
		last := have[len(have)-1]
		if d := last.Errors - want[m.Epochs].Errors; d < -1 || d > 1 {
			t.Errorf("%d errors, want %d", last.Errors, want[m.Epochs].Errors)
		}
		if last.Clock != 400 || last.TestCount != 50 {
			t.Errorf("at the end: %+v", last)
		}
	}
}

// TestCovertypeShape: drawn samples are as hard as the forest's.
func TestCovertypeShape(t *testing.T) {
	m := covertype()
	if m.Train.Len() != 500 || m.Test.Len() != 50 || m.Train.Features != 54 ||
		m.Train.Classes != 7 {
		t.Fatalf("%d + %d samples of %d features and %d classes", m.Train.Len(), m.Test.Len(),
			m.Train.Features, m.Train.Classes)
	}
	curve, err := m.Serial()
	if err != nil {
		t.Fatal(err)
	}
	first, last := curve[0], curve[len(curve)-1]
	if math.Abs(first.Mean()-math.Log(7)) > 1e-9 {
		t.Errorf("entropy %f at the beginning, want log 7", first.Mean())
	}
	if m := last.Mean(); m < .55 || m > .68 {
		t.Errorf("entropy %.4f at the end, want about 0.61", m)
	}
	t.Logf("entropy %.4f, error %.4f, test %.2f", last.Mean(), float64(last.Errors)/500,
		float64(last.TestErrors)/50)
}

// TestLinearIsLearned: a linear classifier finds most of what a linear one drew.
func TestLinearIsLearned(t *testing.T) {
	train, test := Linear(1, 1500, 300, 60, 5, 12, .1)
	if train.Len() != 1500 || test.Len() != 300 || train.Classes != 5 || train.Features != 60 {
		t.Fatalf("%d + %d samples of %d features and %d classes", train.Len(), test.Len(),
			train.Features, train.Classes)
	}
	m := &MLR{Train: train, Test: test, Epochs: 20, Rate: .5}
	curve, err := m.Serial()
	if err != nil {
		t.Fatal(err)
	}
	last := curve[m.Epochs]
	if e := float64(last.TestErrors) / float64(last.TestCount); e > .2 {
		t.Errorf("test error %.3f", e)
	}
}

// TestGradient compares with differences of the loss.
func TestGradient(t *testing.T) {
	train, _ := Covertype(3, 1, 0)
	n, k := train.Features, train.Classes
	w := double((&MF{Rank: n, Seed: 1}).begin(k, 0))
	index, value := train.at(0)
	g, dw := make([]float64, k), make([]float64, k*n)
	gradient(w, n, index, value, train.label[0], g)
	addOuter(dw, n, g, index, value)
	loss := func() float64 {
		p := make([]float64, k)
		softmax(w, n, index, value, p)
		return -libm.Log(p[train.label[0]])
	}
	const h = 1e-5
	for i := range w {
		was := w[i]
		w[i] = was + h
		up := loss()
		w[i] = was - h
		down := loss()
		w[i] = was
		if d := (up-down)/(2*h) - dw[i]; math.Abs(d) > 1e-8 {
			t.Errorf("weight %d: gradient %g, differences %g", i, dw[i], (up-down)/(2*h))
		}
	}
}

func lowRank() *MF {
	return &MF{Data: LowRank(1, 60, 40, 3, 900, .1), Rank: 4, Seed: 2, Epochs: 30, Clocks: 3,
		Rate: .1, Decay: .98, Lambda: .01}
}

// TestMFAlone: one worker is the serial run, whoever has L; and the loss falls to about
// the noise.
func TestMFAlone(t *testing.T) {
	m := lowRank()
	want, err := m.Serial()
	if err != nil {
		t.Fatal(err)
	}
	if first, last := want[0].Mean(), want[m.Epochs].Mean(); last > .03*first {
		t.Errorf("squared error from %.4f to %.4f", first, last)
	}
	m.Pushes = 2
	for _, m.Both = range []bool{false, true} {
		have := run(t, func(s distrib.Synchronizer, w Worker) error {
			return m.Run(context.Background(), s, w)
		}, m.Epochs)
		sameCurve(t, have, want, 1e-5)
	}
}

// TestMFGradients: what is pushed is the sum of gradients at the values as pulled.
func TestMFGradients(t *testing.T) {
	m := lowRank()
	m.Gradients, m.Both, m.Clocks, m.Epochs = true, true, 1, 1
	a := &alone{}
	if err := m.Run(context.Background(), a, Worker{Of: 1}); err != nil {
		t.Fatal(err)
	}
	l, r := double(m.begin(m.Data.Rows, 0)), double(m.begin(m.Data.Cols, 1))
	want := append([]float64(nil), r...)
	for i, v := range m.Data.value {
		x, y := rowOf(l, m.Rank, m.Data.row[i]), rowOf(r, m.Rank, m.Data.col[i])
		e := float64(v) - dot(x, y)
		for k := range x {
			rowOf(want, m.Rank, m.Data.col[i])[k] += m.Lambda*y[k] - e*x[k]
		}
	}
	for i, v := range a.ps[0].Data {
		if math.Abs(float64(v)-want[i]) > 1e-4 {
			t.Fatalf("element %d: %g, want %g", i, v, want[i])
		}
	}
}

// TestShards: workers' parts are all of it, each element once.
func TestShards(t *testing.T) {
	train, _ := Covertype(2, 103, 0)
	ratings := LowRank(2, 13, 9, 2, 50, 0)
	for n := 1; n <= 20; n++ {
		count, entries, rows, sum := 0, 0, 0, float32(0)
		for w := range n {
			s := train.Shard(w, n)
			count, entries = count+s.Len(), entries+len(s.index)
			r, from, to := ratings.Shard(w, n)
			if from != rows {
				t.Fatalf("worker %d of %d begins at row %d, want %d", w, n, from, rows)
			}
			rows = to
			for i, v := range r.value {
				sum += v
				if int(r.row[i]) < from || int(r.row[i]) >= to {
					t.Fatalf("row %d in [%d, %d)", r.row[i], from, to)
				}
			}
		}
		var all float32
		for _, v := range ratings.value {
			all += v
		}
		if count != 103 || entries != len(train.index) || rows != 13 || sum != all {
			t.Errorf("%d workers: %d samples, %d entries, %d rows, sum %g of %g", n, count,
				entries, rows, sum, all)
		}
	}
}

// TestRotation: samples that rotate are each visited once an epoch, by some worker, and in the
// course of some epochs by every worker.
func TestRotation(t *testing.T) {
	const workers, clocks, epochs = 3, 10, 6
	train, _ := Covertype(2, 100, 0)
	whole := map[float32]int{} // by what they sum to
	key := func(s *Samples, i int) (sum float32) {
		_, value := s.at(i)
		for _, v := range value {
			sum = 31*sum + v
		}
		return sum
	}
	for i := range train.Len() {
		whole[key(train, i)] = i
	}
	if len(whole) != train.Len() {
		t.Fatalf("%d keys of %d samples", len(whole), train.Len())
	}
	met := make([]map[int]bool, workers)
	for epoch := range epochs {
		visits := make([]int, train.Len())
		for w := range workers {
			if met[w] == nil {
				met[w] = map[int]bool{}
			}
			r := &mlrRun{MLR: &MLR{Train: train, Rotate: 4}, own: train.Shard(w, workers), shard: w,
				w: Worker{Rank: w, Of: workers}}
			for c := range clocks {
				r.rotate(epoch*clocks + c)
				from, to := part(r.own.Len(), c, clocks)
				for i := from; i < to; i++ {
					at := whole[key(r.own, i)]
					visits[at]++
					met[w][at] = true
				}
			}
		}
		for i, n := range visits {
			if n != 1 {
				t.Fatalf("epoch %d: sample %d is visited %d times", epoch, i, n)
			}
		}
	}
	for w := range met {
		if len(met[w]) != train.Len() {
			t.Errorf("worker %d meets %d samples of %d", w, len(met[w]), train.Len())
		}
	}
}

// TestBadTasks: each says what is wrong.
func TestBadTasks(t *testing.T) {
	ctx := context.Background()
	good, other := covertype(), covertype()
	other.Test = &Samples{Features: 3, Classes: 7}
	mlr := func(rate, decay float64) func() error {
		return (&MLR{Train: good.Train, Epochs: 1, Rate: rate, Decay: decay}).Check
	}
	for name, f := range map[string]func() error{
		"no samples": func() error {
			return (&MLR{Epochs: 1, Rate: 1}).Run(ctx, nil, Worker{Of: 1})
		},
		"no epochs": func() error { return (&MLR{Train: good.Train, Rate: 1}).Check() },
		"no rate":   mlr(0, 1),
		"rate":      mlr(math.NaN(), 1),
		"growing":   mlr(1, 2),
		"other":     other.Check,
		"worker":    func() error { return good.Run(ctx, nil, Worker{Rank: 2, Of: 2}) },
		"no data":   func() error { return (&MF{Rank: 1, Epochs: 1, Rate: 1}).Check() },
		"no rank":   func() error { m := lowRank(); m.Rank = 0; return m.Check() },
		"lambda":    func() error { m := lowRank(); m.Lambda = -1; return m.Check() },
		"mf epochs": func() error { m := lowRank(); m.Epochs = 0; return m.Check() },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
