package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
)

// overhead compares a step with everything resident with a plain loop over the
// same kernels.
func overhead(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Everything resident (`vanilla`), beside the same kernels in plain loops: "+
		"one that gives every value memory of its own, and one over the plan's steps at the "+
		"plan's addresses, which differs from the executor in nothing but streams, queues and "+
		"checks. One thread, so that what else the machine does disturbs less; the ratio is the "+
		"median over rounds.")
	fmt.Fprintln(w, "\n| model | operations | loop, own memory ms | loop, plan's addresses ms | "+
		"executor ms | executor / loop at the same addresses |\n|---|---|---|---|---|---|")
	for _, size := range []string{"s64", "s512"} {
		for _, sparse := range []bool{false, true} {
			if err := overheadOf(ctx, w, size, sparse); err != nil {
				return err
			}
		}
	}
	return nil
}

func overheadOf(ctx context.Context, w io.Writer, size string, sparse bool) error {
	m, err := build(size, 0, func(c *models.MoEConfig) { c.Sparse = sparse })
	if err != nil {
		return err
	}
	target := gomem.Training(m.Graph, m.Objectives[0].Loss)
	o := gomem.Options{Policy: planner.Vanilla, Threads: 1}
	planned, err := gomem.Plan(ctx, m.Graph, o, target)
	if err != nil {
		return err
	}
	s, err := gomem.Open(planned, o)
	if err != nil {
		return err
	}
	defer s.Close()
	threads := pool.New(1)
	defer threads.Close()
	live := m.Graph.Ancestors(append([]graph.NodeID{m.Objectives[0].Loss.Node.ID},
		target.Updates...))
	loop, err := reference.New(m.Graph, live, threads)
	if err != nil {
		return err
	}
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			return err
		}
		if live[v.Node.ID] {
			copy(loop.Value(v).Data, x.Data)
		}
	}
	in := feeds(m)
	for v, x := range in {
		copy(loop.Value(v).Data, x.Data)
	}
	same, err := newPlanLoop(s, planned.Graph, in, threads)
	if err != nil {
		return err
	}
	times, err := timed(ctx, 51, loop.Step, same.step, func() error {
		_, err := s.Step(ctx, "train", in)
		return err
	})
	if err != nil {
		return err
	}
	var ratios []float64
	for i, t := range times[2] {
		ratios = append(ratios, t.Seconds()/times[1][i].Seconds())
	}
	form := map[bool]string{false: "dense", true: "sparse"}[sparse]
	fmt.Fprintf(w, "| %s %s | %d | %s | %s | %s | %.3f |\n", size, form, s.Plan("train").Launches(),
		ms(median(times[0])), ms(median(times[1])), ms(median(times[2])), median(ratios))
	return nil
}

// planLoop is a plan's steps, one after the other on the caller.
type planLoop []func() error

func (l planLoop) step() error {
	for _, f := range l {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// newPlanLoop resolves the session's training plan, of the graph that was chosen for it,
// on memory of its own, with the session's variables and the given feeds.
func newPlanLoop(s *gomem.Session, g *graph.Graph, in gomem.Feeds,
	threads *pool.Pool) (planLoop, error) {
	p := s.Plan("train")
	var memory [][]byte
	for _, space := range p.Spaces {
		memory = append(memory, make([]byte, space.Bytes))
	}
	at := func(r plan.Ref, bytes int64) []byte {
		slot := p.Slots[r.Slot]
		return memory[slot.Space][slot.Off+r.Off:][:bytes]
	}
	variables, fed := byName(s.Variables()), byName(slices.Collect(maps.Keys(in)))
	for _, b := range p.Variables {
		n := g.Node(b.Node)
		x := n.Data // of a constant
		if n.Kind == graph.KindVariable {
			var err error
			if x, err = s.Get(variables[b.Name]); err != nil {
				return nil, err
			}
		}
		copy(at(plan.Ref{Slot: b.Slot}, x.Type.Bytes()), x.Data)
	}
	var l planLoop
	for _, b := range p.Feeds { // their slots are used again in the step
		x := in[fed[b.Name]]
		dst := at(plan.Ref{Slot: b.Slot}, x.Type.Bytes())
		l = append(l, func() error { copy(dst, x.Data); return nil })
	}
	for _, step := range p.Steps {
		n := g.Node(step.Node)
		switch do := step.Do.(type) {
		case plan.Copy:
			dst, src := at(do.Dst, do.Bytes), at(do.Src, do.Bytes)
			l = append(l, func() error { copy(dst, src); return nil })
		case plan.Launch:
			fn, err := kernel.Lookup(kernel.CPU, n.Op)
			if err != nil {
				return nil, err
			}
			c := &kernel.Call{Pool: threads}
			for i, r := range do.In {
				c.In = append(c.In, gomem.Tensor{Type: n.In[i].Type(),
					Data: at(r, n.In[i].Type().Bytes())})
			}
			for i, r := range do.Out {
				c.Out = append(c.Out, gomem.Tensor{Type: n.Out[i], Data: at(r, n.Out[i].Bytes())})
			}
			if do.Scratch != plan.NoSlot {
				c.Scratch = at(plan.Ref{Slot: do.Scratch}, p.Slots[do.Scratch].Bytes)
			}
			l = append(l, func() error { return fn(n.Op, c) })
		}
	}
	return l, nil
}

// byName finds leaves by their names, which a graph has in common with those that are made
// of it.
func byName(leaves []graph.Value) map[string]graph.Value {
	out := map[string]graph.Value{}
	for _, v := range leaves {
		out[v.Node.Name] = v
	}
	return out
}
