package svlog

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/distrib"
	_ "github.com/gomem/gomem/internal/longtest" // sets rapid's seed
)

// live is a replica at work, that tells a log what it does.
type live struct {
	rng    *rand.Rand
	rule   distrib.Rule // nil: it adds
	log    *Log
	params []*distrib.Param
	read   [][]float32 // what the worker took last
	opt    []byte      // what is kept beside it
}

// newRule makes a rule like that of a replica; nil: updates are added.
type newRule func() distrib.Rule

func adds() distrib.Rule     { return nil }
func decays() distrib.Rule   { return &distrib.Additive{Decay: 0.01} }
func momentum() distrib.Rule { return &distrib.Momentum{Mu: 0.9, Decay: 0.001} }
func adam() distrib.Rule     { return &distrib.Adam{LR: 0.01} }

// tiny are parameters of drawn values.
func tiny(rng *rand.Rand, shapes ...[2]int) []*distrib.Param {
	var ps []*distrib.Param
	for i, s := range shapes {
		p := &distrib.Param{Name: string(rune('a' + i)), Rows: s[0], Cols: s[1]}
		p.Data = floats(rng, s[0]*s[1])
		ps = append(ps, p)
	}
	return ps
}

func floats(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// begin has a replica, whose log begins with its base.
func begin(seed uint64, rule newRule, l *Log, shapes ...[2]int) *live {
	v := &live{rng: rand.New(rand.NewPCG(seed, 1)), rule: rule(), log: l}
	v.params = tiny(v.rng, shapes...)
	for _, p := range v.params {
		v.read = append(v.read, slices.Clone(p.Data))
	}
	v.base(0)
	return v
}

// base tells the values of the replica, which count as read.
func (v *live) base(at int64) {
	v.log.Base(distrib.Clock(at), v.params)
	for i, p := range v.params {
		copy(v.read[i], p.Data)
	}
}

// update draws an update of some rows of a parameter, in any form.
func (v *live) update() (distrib.Ref, distrib.Update) {
	i := v.rng.IntN(len(v.params))
	p := v.params[i]
	n := 1 + v.rng.IntN(min(3, p.Rows))
	ref := distrib.Ref{Param: distrib.ParamID(i), Row: int32(v.rng.IntN(p.Rows - n + 1)),
		N: int32(n)}
	switch v.rng.IntN(4) {
	case 0:
		return ref, distrib.Dense(floats(v.rng, n*p.Cols))
	case 1:
		var u distrib.Update = distrib.Sparse{N: n * p.Cols, Idx: []uint32{0},
			Val: floats(v.rng, 1)}
		return ref, u
	case 2:
		send, _ := distrib.RoundTo(distrib.Dense(floats(v.rng, n*p.Cols)), distrib.BF16)
		return ref, send
	}
	r := 1 + v.rng.IntN(2)
	return ref, distrib.Factored{R: r, J: n, K: p.Cols, A: floats(v.rng, r*n),
		B: floats(v.rng, r*p.Cols)}
}

// apply folds an update in, and tells.
func (v *live) apply(from distrib.NodeID, at int64, ref distrib.Ref, u distrib.Update) {
	v.log.Applied(from, distrib.Clock(at), ref, u)
	p := v.params[ref.Param]
	w := p.Data[int(ref.Row)*p.Cols : int(ref.Row+ref.N)*p.Cols]
	if v.rule == nil {
		u.AddTo(w, p.Cols, 1)
		return
	}
	v.rule.Apply(w, p.Cols, &distrib.Entry{Ref: ref, Dest: from, Made: distrib.Clock(at), U: u})
}

// clock is one clock of a replica: updates of three nodes, some rows that are read, an average
// now and then, another base where the log wants one.
func (v *live) clock(t int64, average int64) {
	for from := range distrib.NodeID(3) {
		ref, u := v.update()
		v.apply(from, t, ref, u)
	}
	if t%average == 0 {
		for _, p := range v.params {
			for i := range p.Data {
				p.Data[i] *= 0.5
			}
		}
		v.base(t)
	}
	if v.log.Due() {
		v.base(t)
	}
	for range 2 {
		i := v.rng.IntN(len(v.params))
		p := v.params[i]
		row := v.rng.IntN(p.Rows)
		v.log.Read(distrib.Clock(t), distrib.Ref{Param: distrib.ParamID(i), Row: int32(row),
			N: int32(p.Rows - row)})
		copy(v.read[i][row*p.Cols:], p.Data[row*p.Cols:])
	}
	v.opt = []byte{byte(t), byte(t >> 8), 7}[:1+t%3]
	v.log.State(0, v.opt)
	v.log.Mark(t, []byte{byte(t)})
}

// moment is what a restored state must be.
type moment struct {
	read [][]float32
	opt  []byte
}

func (v *live) moment() moment {
	m := moment{opt: slices.Clone(v.opt)}
	for _, x := range v.read {
		m.read = append(m.read, slices.Clone(x))
	}
	return m
}

// same demands that a state is a moment, to the bit.
func (m moment) same(t testing.TB, s *State) {
	t.Helper()
	for i, p := range s.Params {
		for k, x := range p.Data {
			if x != m.read[i][k] {
				t.Fatalf("clock %d: element %d of %s is %v, it was %v", s.At, k, p.Name, x,
					m.read[i][k])
			}
		}
	}
	if !slices.Equal(s.States[0], m.opt) {
		t.Fatalf("clock %d: the state is %v, it was %v", s.At, s.States[0], m.opt)
	}
}

func opened(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	l.Describe(nil, "opt")
	return l
}

func closed(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func restored(t testing.TB, dir string, at int64, rule newRule) *State {
	t.Helper()
	s, err := history(t, dir).Restore(at, rule())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func history(t testing.TB, dir string) *History {
	t.Helper()
	h, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// clocks are those that a log has, ascending.
func clocks(t testing.TB, dir string) (all []int64) {
	t.Helper()
	for _, p := range history(t, dir).marks {
		all = append(all, p.clock)
	}
	slices.Sort(all)
	return all
}
