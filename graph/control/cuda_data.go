package control

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// whileCUDA asks the condition after each iteration, and knows how many there were by where it
// stands.
func whileCUDA(w while, c *cuda.Call) ([]cuda.Command, error) {
	b := &onGPU{body: w.Body, memory: c.Scratch, operands: c.In}
	fixed := w.Same + w.States
	states := w.Body.in[w.Same:fixed]
	seen := slices.Clone(c.In[:w.Same])
	for _, v := range states {
		seen = append(seen, b.at(v))
	}
	condition := &onGPU{body: w.Condition, memory: c.Scratch + uint64(w.conditionAt()),
		operands: append(seen, c.In[fixed+w.Lifted:][:w.More]...)}
	asked, err := condition.apart(func() error { return condition.run(c.TF32) })
	if err != nil {
		return nil, err
	}
	var next []cuda.Command
	if w.From+w.Bound == w.Of { // else those that go on with it ask
		next = asking(asked, condition.result(0), nil, w.choose(w.Bound))
	}
	for k := w.Bound - 1; k >= 0; k-- {
		more, err := b.apart(func() error { return w.launch(b, c, k) })
		if err != nil {
			return nil, err
		}
		next = asking(asked, condition.result(0), append(more, next...), w.choose(k))
	}
	if w.Record {
		b.clear(c.Out[w.States+1:])
	}
	if err := b.begin(states, c.In[w.Same:]); err != nil {
		return nil, err
	}
	if err := w.goOn(b, c, next); err != nil {
		return nil, err
	}
	return b.list, b.end(states, c.Out)
}

// goOn appends iterations: those of a loop that goes on with another only if that was not over.
func (w while) goOn(b *onGPU, c *cuda.Call, next []cuda.Command) error {
	count := c.Out[w.States]
	if w.From == 0 {
		b.list = append(append(b.list, cuda.Fill{Addr: count.Addr, Words: 1}), next...)
		return nil
	}
	before := c.In[len(c.In)-1]
	err := b.copy(count.Addr, before.Addr, count.Type)
	b.list = append(b.list, cuda.Branch{Addr: before.Addr, Type: graph.I32,
		Lists: [][]cuda.Command{next}, Choose: func(n int32) (lo, hi int, err error) {
			if int(n) == w.From {
				hi = 1
			}
			return 0, hi, nil
		}})
	return err
}

// asking asks a condition and goes on as is chosen.
func asking(asked []cuda.Command, answer cuda.Operand, then []cuda.Command,
	choose func(n int32) (lo, hi int, err error)) []cuda.Command {
	return append(slices.Clone(asked), cuda.Branch{Addr: answer.Addr, Type: graph.Bool,
		Lists: [][]cuda.Command{then}, Choose: choose})
}

// choose goes on after k iterations where the condition holds, or there may be no more.
func (w while) choose(k int) func(n int32) (lo, hi int, err error) {
	return func(n int32) (lo, hi int, err error) {
		switch {
		case n == 0:
			return 0, 0, nil
		case k == w.Bound:
			return 0, 0, w.errBound()
		}
		return 0, 1, nil
	}
}

// launch appends iteration k, and counts it.
func (w while) launch(m *onGPU, c *cuda.Call, k int) error {
	states := w.Body.in[w.Same : w.Same+w.States]
	for i, v := range states {
		if !w.Record {
			break
		}
		if err := m.copy(rowAt(c.Out[w.States+1+i], k, w.Bound), m.at(v).Addr,
			v.Type()); err != nil {
			return err
		}
	}
	if err := m.run(c.TF32); err != nil {
		return err
	}
	for i, v := range states {
		if err := m.copy(m.at(v).Addr, m.result(i).Addr, v.Type()); err != nil {
			return err
		}
	}
	m.list = append(m.list, cuda.Fill{Addr: c.Out[w.States].Addr, Words: 1,
		Word: uint32(w.From + k + 1)})
	return nil
}

// condCUDA has the commands of both branches, of which one's are run.
func condCUDA(o cond, c *cuda.Call) ([]cuda.Command, error) {
	then, otherwise := split(o, c.In)
	branch := cuda.Branch{Addr: c.In[0].Addr, Type: graph.Bool,
		Choose: func(n int32) (lo, hi int, err error) {
			if n != 0 {
				return 0, 1, nil
			}
			return 1, 2, nil
		}}
	for i, b := range []*Body{o.Then, o.Else} {
		m := &onGPU{body: b, memory: c.Scratch,
			operands: [][]cuda.Operand{then, otherwise}[i]}
		if err := m.run(c.TF32); err != nil {
			return nil, err
		}
		for k, v := range b.out {
			if err := m.copy(c.Out[k].Addr, m.result(k).Addr, v.Type()); err != nil {
				return nil, err
			}
		}
		branch.Lists = append(branch.Lists, m.list)
	}
	return []cuda.Command{branch}, nil
}
