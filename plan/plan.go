package plan

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
)

// SlotID indexes Plan.Slots.
type SlotID int32

// NoSlot is the scratch slot of a launch that needs none.
const NoSlot SlotID = -1

// StreamID indexes Plan.Streams.
type StreamID uint8

// Plan is every decision of one step, in a form that can be executed, printed,
// parsed, verified and compared.
type Plan struct {
	Title   string // what made it: "policy=thesis strategy=dfs partition=200 …"
	Digest  string // of the graph that it is for: graph.Digest
	Spaces  []Space
	Streams []Stream
	Slots   []Slot
	Steps   []Step
	Parts   int  // number of partitions; a step's Part is below it
	Window  int  // how many partitions may be in flight; 0 is no limit
	Gathers bool // an [Await] starts after every [Send] before it is done

	Feeds     []Binding // slots that hold inputs when the step starts
	Variables []Binding // slots that hold variables and constants, between steps too
	Fetches   []Fetch   // in the order asked for
}

// Space is a memory. The first is the device's, the second the host's; those that
// follow are farther away.
type Space struct {
	Name   string
	Bytes  int64 // high-water mark: the largest end of a slot; the run has the same
	Budget int64 // Bytes may not exceed it
	Align  int64 // what the address of every slot is a multiple of, in bytes
}

// Stream is a sequence of steps that run one after the other.
type Stream struct {
	Name   string
	Engine space.Engine
}

// Slot is a range of addresses during a part of the step. It holds one value;
// or, one after the other, the values of a chain of operations that work in
// place.
type Slot struct {
	Space      space.ID
	Off, Bytes int64
	// From and To are the first and the last step during which the slot is
	// live. No other slot that is live during one of these steps overlaps it.
	From, To int
	// Fixed slots hold variables and constants; they are live throughout, between
	// steps too.
	Fixed bool
	// Value names what the slot holds first: "enc/0/att/qk", or "scratch of
	// enc/0/att/qk", the name of the operation that scribbles there.
	Value string
	// Type is the first value's type, or u8[n] where it is scratch or a part of a
	// value: it is as large as the slot.
	Type tensor.Type
}

// Ref is a place in a slot: Off bytes from its start.
type Ref struct {
	Slot SlotID
	Off  int64
}

// Step is one thing that a stream does.
type Step struct {
	Node   graph.NodeID // what it is done for
	Name   string       // that node's name
	Part   int
	Stream StreamID
	// Wait lists earlier steps on other streams that must have finished, in order.
	// What those steps waited for need not be repeated.
	Wait []int
	Do   Action
}

// Binding ties a leaf of the graph to a slot.
type Binding struct {
	Node graph.NodeID
	Name string
	Slot SlotID
}

// Fetch is where a fetched value is when the step has ended.
type Fetch struct {
	Value string
	Ref   Ref
	Type  tensor.Type
}

// SpaceName is the plan's name for a space, or package space's if it has none.
func (p *Plan) SpaceName(s space.ID) string {
	if int(s) < len(p.Spaces) {
		return p.Spaces[s].Name
	}
	return s.String()
}

// Timeline is, for every step, the number of bytes of a space that are live
// during it.
func (p *Plan) Timeline(space space.ID) []int64 {
	delta := make([]int64, len(p.Steps)+1)
	for _, s := range p.Slots {
		if s.Space == space && len(p.Steps) > 0 {
			delta[s.From] += s.Bytes
			delta[s.To+1] -= s.Bytes
		}
	}
	live := make([]int64, len(p.Steps))
	var now int64
	for i := range live {
		now += delta[i]
		live[i] = now
	}
	return live
}
