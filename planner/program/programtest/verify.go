// Package programtest checks schedules by books of its own: what tests of those who make schedules
// hold them to.
package programtest

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// Verify replays a schedule of a program. It knows the graph and the contract of
// program.Schedule, and nothing of who made it: every stay begins with what fills it, is read
// only while it holds what is read, and each live node is executed, after what it reads and
// before that is updated.
func Verify(p *program.Program, s *program.Schedule) error {
	c := &checker{p: p, s: s, held: make([]holding, len(s.Stays)), ran: make([]int, p.Graph.Len()),
		updated: make([]bool, p.Graph.Len()), takenBy: make([]int32, len(s.Stays))}
	if err := c.bindings(); err != nil {
		return err
	}
	for i := range s.Stays {
		c.takenBy[i] = -1
		y := &s.Stays[i]
		if y.From > y.To || y.From < 0 || int(y.To) >= len(s.Events) {
			return fmt.Errorf("stay %d is from %d to %d", i, y.From, y.To)
		}
	}
	for i := range s.Events {
		if err := c.event(int32(i)); err != nil {
			return fmt.Errorf("event %d of %s: %w", i, p.Graph.Node(s.Events[i].Node).Name, err)
		}
	}
	return c.ended()
}

// holding is what a stay holds.
type holding struct {
	value   graph.Value // not valid: nothing
	off     int64
	bytes   int64
	updated bool
	touched bool
}

type checker struct {
	p       *program.Program
	s       *program.Schedule
	held    []holding
	ran     []int
	updated []bool // by variable
	takenBy []int32
}

func (c *checker) bindings() error {
	variables, feeds := c.s.Variables, c.s.Feeds
	for _, n := range c.p.Graph.Nodes() {
		var list *[]program.StayID
		switch {
		case n.Kind == graph.KindVariable || n.Kind == graph.KindConstant:
			list = &variables
		case n.Kind == graph.KindInput && c.p.Live[n.ID]:
			list = &feeds
		default:
			continue
		}
		if len(*list) == 0 {
			return fmt.Errorf("%s has no stay", n.Name)
		}
		id := (*list)[0]
		*list = (*list)[1:]
		y := &c.s.Stays[id]
		fixed := n.Kind != graph.KindInput
		if y.Value != n.Value(0) || y.Origin != program.Bound || y.Fixed != fixed || y.From != 0 ||
			!fixed && y.Space != space.Host || fixed && int(y.To) != len(c.s.Events)-1 ||
			y.Bytes != n.Out[0].Bytes() || y.Over != program.NoStay {
			return fmt.Errorf("the stay of %s is %+v", n.Name, *y)
		}
		c.held[id] = holding{value: n.Value(0), bytes: y.Bytes, touched: !fixed}
	}
	if len(variables)+len(feeds) > 0 {
		return fmt.Errorf("%d bindings too many", len(variables)+len(feeds))
	}
	return nil
}

func (c *checker) event(i int32) error {
	ev := &c.s.Events[i]
	if ev.Copies() {
		return c.copy(i, ev)
	}
	return c.execution(i, ev)
}

// there demands that a stay has its bytes, in a space.
func (c *checker) there(i int32, id program.StayID, in space.ID) error {
	if id < 0 || int(id) >= len(c.s.Stays) {
		return fmt.Errorf("no stay %d", id)
	}
	y := &c.s.Stays[id]
	if i < y.From || i > y.To || y.Space != in {
		return fmt.Errorf("stay %d of %s is from %d to %d in %s", id, y.Value, y.From, y.To,
			y.Space)
	}
	if c.takenBy[id] >= 0 {
		return fmt.Errorf("stay %d of %s was taken over at %d", id, y.Value, c.takenBy[id])
	}
	return nil
}

// begins demands that a stay begins with an event.
func (c *checker) begins(i int32, id program.StayID, origin program.Origin) error {
	y := &c.s.Stays[id]
	if c.held[id].touched || y.From != i || y.Origin != origin || y.Fixed {
		return fmt.Errorf("stay %d of %s, %s, begins at %d, not here as %s", id, y.Value, y.Origin,
			y.From, origin)
	}
	c.held[id].touched = true
	return nil
}

func (c *checker) copy(i int32, ev *program.Event) error {
	engine := c.s.Streams[ev.Stream].Engine
	if !engine.Copies() {
		return fmt.Errorf("%s copies", engine)
	}
	if err := c.there(i, ev.Src, engine.Reads()); err != nil {
		return err
	}
	if err := c.there(i, ev.Dst, engine.Writes()); err != nil {
		return err
	}
	src, y := c.held[ev.Src], &c.s.Stays[ev.Dst]
	if src.value != y.Value || src.value.Node == nil || src.value.Node.ID != ev.Node ||
		y.Off < src.off || y.Off+y.Bytes > src.off+src.bytes {
		return fmt.Errorf("copies %v to a stay of %s", src, y.Value)
	}
	if ev.Reason == space.WriteBack {
		if !y.Fixed || !src.updated || src.bytes != y.Value.Type().Bytes() {
			return fmt.Errorf("writes %v back", src)
		}
		c.held[ev.Dst] = holding{value: y.Value, bytes: y.Bytes, updated: true, touched: true}
		return nil
	}
	if !c.fits(ev.Reason, src.value.Node.Kind, engine) || src.updated {
		return fmt.Errorf("copies %v as %s", src, ev.Reason)
	}
	if err := c.begins(i, ev.Dst, program.Copied); err != nil {
		return err
	}
	c.held[ev.Dst] = holding{value: y.Value, off: y.Off, bytes: y.Bytes, touched: true}
	return nil
}

func (c *checker) fits(why space.Reason, k graph.Kind, e space.Engine) bool {
	load := e == space.Copier(space.Disk, space.Host)
	store := e == space.Copier(space.Host, space.Disk)
	switch why {
	case space.Feed:
		return k == graph.KindInput && e == space.CopyIn
	case space.Stage:
		return (k == graph.KindVariable || k == graph.KindConstant) && (e == space.CopyIn || load)
	case space.SwapIn:
		return k == graph.KindCompute && (e == space.CopyIn || load)
	case space.SwapOut:
		return k == graph.KindCompute && (e == space.CopyOut || store)
	}
	return k == graph.KindCompute && e == space.CopyOut
}

func (c *checker) execution(i int32, ev *program.Event) error {
	n := c.p.Graph.Node(ev.Node)
	engine := c.s.Streams[ev.Stream].Engine
	in := engine.Reads()
	_, peers := n.Peers()
	if peers { // from the device's memory to it, past the others'
		in = engine.Writes()
	}
	if peers != (engine == space.Peer) || !peers && engine.Copies() ||
		!c.p.Live[n.ID] || !n.Executes() || len(ev.In) != len(n.In) || len(ev.Out) != len(n.Out) {
		return fmt.Errorf("may not be executed so")
	}
	if c.ran[n.ID]++; c.ran[n.ID] > 1 && n.Kind != graph.KindCompute {
		return fmt.Errorf("is executed again")
	}
	for k, id := range ev.In {
		if err := c.operand(i, n, k, id, in); err != nil {
			return err
		}
	}
	if err := c.updates(n, ev); err != nil {
		return err
	}
	if (ev.Scratch != program.NoStay) != (n.Cost().Scratch > 0) {
		return fmt.Errorf("scratch is stay %d", ev.Scratch)
	}
	if ev.Scratch != program.NoStay {
		y := &c.s.Stays[ev.Scratch]
		if err := c.begins(i, ev.Scratch, program.Workspace); err != nil || y.Space != in ||
			y.Bytes != n.Cost().Scratch || y.Over != program.NoStay {
			return fmt.Errorf("workspace is %+v: %w", *y, err)
		}
	}
	for k, id := range ev.Out {
		if err := c.result(i, ev, k, id, in); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) operand(i int32, n *graph.Node, k int, id program.StayID, in space.ID) error {
	if err := c.there(i, id, in); err != nil {
		return err
	}
	h := c.held[id]
	root, off := n.In[k].Resolve()
	if h.value != root || off < h.off || off+n.In[k].Type().Bytes() > h.off+h.bytes {
		return fmt.Errorf("operand %d is %s at %d, the stay holds %v", k, root, off, h)
	}
	if h.updated { // a copy that was made before the update is not
		return fmt.Errorf("operand %d, %s, has been updated", k, root)
	}
	return nil
}

// updates notes what an update has written: whole variables, where they are bound
// or in copies that are written back.
func (c *checker) updates(n *graph.Node, ev *program.Event) error {
	for k, v := range n.In[:n.Mutates] {
		h := &c.held[ev.In[k]]
		if h.bytes != v.Type().Bytes() || h.off != 0 {
			return fmt.Errorf("updates a part of %s", v)
		}
		h.updated, c.updated[v.Node.ID] = true, true
	}
	return nil
}

func (c *checker) result(i int32, ev *program.Event, k int, id program.StayID, in space.ID) error {
	n, y := c.p.Graph.Node(ev.Node), &c.s.Stays[id]
	origin := program.Made
	if c.ran[n.ID] > 1 {
		origin = program.Recomputed
	}
	if err := c.begins(i, id, origin); err != nil {
		return err
	}
	if y.Value != n.Value(k) || y.Off != 0 || y.Bytes != n.Out[k].Bytes() || y.Space != in {
		return fmt.Errorf("result %d is in %+v", k, *y)
	}
	if y.Over != program.NoStay {
		if err := c.over(i, ev, k, y); err != nil {
			return err
		}
		c.takenBy[y.Over] = i
	}
	c.held[id] = holding{value: y.Value, bytes: y.Bytes, touched: true}
	return nil
}

// over holds the rules of work in place.
func (c *checker) over(i int32, ev *program.Event, k int, y *program.Stay) error {
	n, old := c.p.Graph.Node(ev.Node), &c.s.Stays[y.Over]
	at := slices.Index(ev.In, y.Over)
	o, ok := n.Op.(graph.InPlacer)
	switch {
	case k != 0 || at < 0 || !ok || !slices.Contains(o.InPlace(n.InTypes(), n.Out), at):
		return fmt.Errorf("%s may not replace operand %d", y.Value, at)
	case slices.Contains(ev.In[at+1:], y.Over):
		return fmt.Errorf("%s is read twice", old.Value)
	case old.Fixed || old.Bytes != y.Bytes || old.Off != 0 || old.To < i:
		return fmt.Errorf("takes over %+v", *old)
	}
	return nil
}

func (c *checker) ended() error {
	for _, n := range c.p.Graph.Nodes() {
		if c.p.Live[n.ID] && n.Executes() && c.ran[n.ID] == 0 {
			return fmt.Errorf("%s is not executed", n.Name)
		}
	}
	for _, id := range c.s.Variables {
		h := c.held[id]
		if c.updated[h.value.Node.ID] != h.updated {
			return fmt.Errorf("%s is in an old version at the end", h.value)
		}
	}
	for i := range c.s.Stays {
		if !c.s.Stays[i].Fixed && !c.held[i].touched {
			return fmt.Errorf("stay %d, %+v, is not used", i, c.s.Stays[i])
		}
	}
	if len(c.s.Fetches) != len(c.p.Fetches) {
		return fmt.Errorf("%d fetches", len(c.s.Fetches))
	}
	for k, id := range c.s.Fetches {
		root, off := c.p.Fetches[k].Resolve()
		h, y := c.held[id], &c.s.Stays[id]
		if h.value != root || off+c.p.Fetches[k].Type().Bytes() > h.bytes ||
			y.Space != space.Host || int(y.To) != len(c.s.Events)-1 {
			return fmt.Errorf("fetch %d is in %+v, which holds %v", k, *y, h)
		}
	}
	return nil
}

// Taken is the most bytes of a space that are taken at an event, each stay's rounded up to the
// arena's alignment: all events are looked at, one after the other, with all stays. Bytes that one
// stay takes over from another are there once, until the last of them needs them.
func Taken(s *program.Schedule, in space.ID) (most int64) {
	to := make([]int32, len(s.Stays))
	for id := len(s.Stays) - 1; id >= 0; id-- {
		y := &s.Stays[id]
		to[id] = max(to[id], y.To)
		if y.Over != program.NoStay {
			to[y.Over] = max(to[y.Over], to[id])
		}
	}
	for i := range s.Events {
		var now int64
		for id := range s.Stays {
			y := &s.Stays[id]
			if y.Space == in && y.Over == program.NoStay && y.From <= int32(i) &&
				int32(i) <= to[id] {
				now += space.Line.Up(y.Bytes)
			}
		}
		most = max(most, now)
	}
	return most
}
