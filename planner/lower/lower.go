package lower

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// lowering translates a sketch: an event is a step, and a slot gets its names.
type lowering struct {
	*Sketch
	graph *graph.Graph
	plan  *plan.Plan
}

// Plan writes the plan of a program whose sketch is packed, but for its waits: see AddWaits. The
// budgets are in bytes, and are those that the plan names.
func (k *Sketch) Plan(p *program.Program, title string, budgets Need) *plan.Plan {
	s := k.schedule
	l := &lowering{Sketch: k, graph: p.Graph, plan: &plan.Plan{
		Title:  title,
		Digest: p.Graph.Digest(),
		Parts:  s.Parts,
		Window: s.Window, Gathers: s.Gathers,
		Spaces: k.spaces(s, budgets),
		Slots:  k.slots,
		Steps:  make([]plan.Step, len(s.Events)),
	}}
	for _, st := range s.Streams {
		l.plan.Streams = append(l.plan.Streams, plan.Stream(st))
	}
	for i := range l.plan.Spaces {
		l.plan.Spaces[i].Bytes = k.Need[i]
	}
	l.names()
	for i := range s.Events {
		l.event(i)
	}
	l.plan.Variables, l.plan.Feeds = l.bindings(s.Variables), l.bindings(s.Feeds)
	for i, v := range p.Fetches {
		_, off := v.Resolve()
		l.plan.Fetches = append(l.plan.Fetches, plan.Fetch{Value: v.String(),
			Ref: l.ref(s.Fetches[i], off), Type: v.Type()})
	}
	return l.plan
}

// spaces are the memories that a schedule uses: a disk only if something is there.
func (k *Sketch) spaces(s *program.Schedule, budgets Need) []plan.Space {
	used := budgets[:space.Disk]
	if slices.ContainsFunc(s.Stays, func(y program.Stay) bool { return y.Space == space.Disk }) {
		used = budgets[:]
	}
	var list []plan.Space
	for id, budget := range used {
		list = append(list, plan.Space{Name: space.ID(id).String(), Budget: budget,
			Align: int64(k.align)})
	}
	return list
}

// names says what the slots hold first.
func (l *lowering) names() {
	for i := range l.schedule.Stays {
		if y := &l.schedule.Stays[i]; y.Over == program.NoStay {
			name(&l.plan.Slots[l.of[i]], y)
		}
	}
}

// name says what the slot of a stay holds.
func name(slot *plan.Slot, y *program.Stay) {
	slot.Value, slot.Type = y.Value.String(), y.Value.Type()
	if y.Origin == program.Workspace {
		slot.Value = "scratch of " + y.Value.Node.Name
	}
	if y.Origin == program.Workspace || y.Bytes != slot.Type.Bytes() {
		slot.Type = graph.Type{DType: graph.U8, Shape: []graph.Dim{{Size: int(y.Bytes)}}}
	}
}

// ref is where the byte at an offset of a value is, if a stay has it.
func (l *lowering) ref(id program.StayID, off int64) plan.Ref {
	return plan.Ref{Slot: l.of[id], Off: off - l.schedule.Stays[id].Off}
}

// event makes a step.
func (l *lowering) event(i int) {
	e := &l.schedule.Events[i]
	n := l.graph.Node(e.Node)
	step := plan.Step{Node: n.ID, Name: n.Name, Part: int(e.Part), Stream: plan.StreamID(e.Stream)}
	exchange, sends := n.Sends()
	between, peers := n.Peers()
	switch {
	case e.Copies():
		step.Do = l.copies(e)
	case n.Leaf() && len(e.In) > 0:
		at := l.ref(e.In[0], 0)
		step.Do = plan.Send{In: []plan.Ref{at}, Out: at, Bytes: n.Out[0].Bytes(), How: *n.Shared}
	case n.Leaf():
		step.Do = plan.Await{At: l.ref(e.Out[0], 0), Bytes: n.Out[0].Bytes()}
	case sends:
		step.Do = plan.Send{In: l.operands(e, n), Out: l.ref(e.Out[0], 0),
			Bytes: n.Out[0].Bytes(), How: exchange.How}
	case peers:
		step.Do = plan.Peer{In: l.operands(e, n), Out: l.ref(e.Out[0], 0),
			Bytes: n.Out[0].Bytes(), How: between.How}
	case n.Awaits():
		step.Do = plan.Await{At: l.ref(e.Out[0], 0), Bytes: n.Out[0].Bytes()}
	default:
		step.Do = l.launches(e, n)
	}
	l.plan.Steps[i] = step
}

// copies is the copy of what both stays have.
func (l *lowering) copies(e *program.Event) plan.Copy {
	from, bytes := common(l.schedule, e)
	return plan.Copy{Src: l.ref(e.Src, from), Dst: l.ref(e.Dst, from), Bytes: bytes,
		Why: e.Reason, Idle: int(e.Idle)}
}

// launches is the execution of a node.
func (l *lowering) launches(e *program.Event, n *graph.Node) plan.Launch {
	do := plan.Launch{Op: n.Op.Name(), Scratch: plan.NoSlot, Mutates: n.Mutates,
		In: l.operands(e, n), Out: slices.Grow([]plan.Ref(nil), len(e.Out))}
	for _, id := range e.Out {
		do.Out = append(do.Out, l.ref(id, 0))
	}
	if e.Scratch != program.NoStay {
		do.Scratch = l.of[e.Scratch]
	}
	if l.plan.Streams[e.Stream].Engine == space.Compute {
		do.Library = n.Library()
	}
	return do
}

// operands are where the execution of a node finds them.
func (l *lowering) operands(e *program.Event, n *graph.Node) []plan.Ref {
	in := slices.Grow([]plan.Ref(nil), len(e.In))
	for k, id := range e.In {
		_, off := n.In[k].Resolve()
		in = append(in, l.ref(id, off))
	}
	return in
}

// bindings ties leaves to the slots of their stays.
func (l *lowering) bindings(ids []program.StayID) []plan.Binding {
	var out []plan.Binding
	for _, id := range ids {
		n := l.schedule.Stays[id].Value.Node
		out = append(out, plan.Binding{Node: n.ID, Name: n.Name, Slot: l.of[id]})
	}
	return out
}
