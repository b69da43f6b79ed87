package program

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// StayID indexes Program.Stays.
type StayID int32

// NoStay stands where there is no stay.
const NoStay StayID = -1

// Origin is where the bytes of a stay come from.
type Origin uint8

// The origins.
const (
	Bound      Origin = iota // a leaf of the graph: it is there when the step begins
	Made                     // an execution's result
	Copied                   // from another stay, by a copy
	Recomputed               // a result of an execution that was made before
	Workspace                // what an execution scribbles in
)

var origins = [...]string{"bound", "made", "copied", "recomputed", "workspace"}

// String is the origin in a word.
func (o Origin) String() string { return origins[o] }

// Stay is a time that a value, or a part of one, has bytes of its own in a space.
type Stay struct {
	Value      graph.Value // it resolves to itself; of a workspace: any of the node's
	Off, Bytes int64       // the part of the value
	Space      space.ID
	Origin     Origin
	Fixed      bool // of a variable or constant: throughout, and between steps too
	// From and To are the first and the last event at which the bytes are taken.
	From, To int32
	// Over is the stay whose bytes this one takes over, since the execution that
	// makes it works in place; NoStay if it has bytes of its own.
	Over StayID
}

// Event is an execution of a node, or a copy between two stays.
type Event struct {
	Node   graph.NodeID // what is executed, or whose value is copied
	Part   int32        // the partition that it belongs to
	Stream uint8        // index in Program.Streams

	// An execution: the stays of the operands and the results, in the node's order.
	// A node whose operation is pure may be executed more than once.
	In, Out []StayID
	Scratch StayID

	// A copy, if Src is not NoStay.
	Src, Dst StayID
	Reason   space.Reason
	Idle     int32 // operations during which a swapped value is not needed
}

// Copies reports whether the event is a copy.
func (e *Event) Copies() bool { return e.Src != NoStay }

// Stream is a sequence of events that happen one after the other.
type Stream struct {
	Name   string
	Engine space.Engine
}

// Schedule is the decisions that lowering translates, and nothing else: all that a
// step does in one linear order, and what has bytes of which memory from when to
// when. An event becomes a step of the plan with the same index, and a stay a slot,
// or, if it takes over another's bytes, a part of the life of that slot.
type Schedule struct {
	Streams []Stream
	Stays   []Stay
	Events  []Event
	Parts   int  // number of partitions
	Window  int  // how many of them may be in flight; 0 is any number
	Gathers bool // an await starts after every send before it
	// Variables has the fixed stays, by creation of the leaves; Feeds those of the
	// inputs that live; Fetches where the fetched values are at the end, in order.
	Variables, Feeds, Fetches []StayID
}

// Each calls f with every stay that the event touches.
func (e *Event) Each(f func(StayID)) {
	for _, id := range e.In {
		f(id)
	}
	for _, id := range e.Out {
		f(id)
	}
	for _, id := range [...]StayID{e.Scratch, e.Src, e.Dst} {
		if id != NoStay {
			f(id)
		}
	}
}
