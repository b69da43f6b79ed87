package distrib

import (
	"context"
	"io"
	"time"
)

type (
	// NodeID numbers the nodes of a view, from 0.
	NodeID int32
	// ParamID numbers parameters in the order of [Synchronizer.Attach], from 0.
	ParamID int32
	// Clock is a number of completed ticks of a worker; an update made in clock c is
	// stamped c.
	Clock int64
	// Version is a number of updates folded into rows so far.
	Version int64
)

// Ref names rows [Row, Row+N) of a parameter; N == 0 means all of it.
type Ref struct {
	Param  ParamID
	Row, N int32
}

// Param is one trainable tensor, seen as Rows x Cols: the weight of a product of matrices
// is J x K, a bias 1 x n.
type Param struct {
	Name       string
	Rows, Cols int
	Data       []float32 // Rows*Cols; the training loop's own copy, written only inside Pull
	Sync       *Plan     // nil: the session's plan

	// Kind is what the rows are if they are not dense numbers, nil if they are. Cells is then what
	// Data is else, a row each, and Data is nil. At the beginning, rows that are nil are zero, and
	// so are all if Cells is. What Pull puts there does not change any more.
	Kind  Kind
	Cells []Update
}

// Update is an immutable change to some rows of a parameter. [Dense], [Sparse] and
// [Factored] are its forms, and a [Cell] where rows have a [Kind].
type Update interface {
	// AddTo adds scale times the update to dst, rows of cols elements.
	AddTo(dst []float32, cols int, scale float32)
	// Norm is the Euclidean norm, or an upper bound of it.
	Norm() float64
	// WireSize is how many bytes AppendWire appends.
	WireSize() int
	// AppendWire appends the body of the wire format to b.
	AppendWire(b []byte) []byte
}

// Plan is how a parameter, or all of a session, is synchronised. The zero value of every
// field is the plain choice.
type Plan struct {
	Topology    Topology    // nil: parameter servers, rows hashed over all nodes
	Down        Down        // what owners send back
	Consistency Consistency // nil: bulk-synchronous
	Up, DownF   Filter      // nil: everything goes
	Pacer       Pacer       // nil: send at the tick, in order
	Rule        Rule        // nil: add
	Every       []Periodic  // average, snapshot and the like at a barrier every n clocks
}

// Down is what the owner of rows sends to those who hold copies.
type Down uint8

// The ways down.
const (
	Values Down = iota // rows as they are, when asked for or by subscription
	Deltas             // the sum of the updates of a clock, which the receiver applies too
)

// Synchronizer is all that a training loop sees: Push as soon as an update exists, Pull
// before a value is read, Tick at the end of a step.
type Synchronizer interface {
	// Attach declares the parameters, the same on all nodes and before anything else.
	Attach(ps ...*Param) error
	// Push hands over an update, which belongs to the synchronizer from here on. It
	// blocks only while the outbox is at its bound.
	Push(ctx context.Context, ref Ref, u Update) error
	// Pull folds into Param.Data what has come, once the consistency allows a read at
	// this clock.
	Pull(ctx context.Context, ref Ref) (Version, error)
	// Tick ends the worker's clock and returns the next.
	Tick(ctx context.Context) (Clock, error)
	// Close sends what is pending, and ends.
	Close() error
}

// Batched is a [Synchronizer] that asks for many rows at once, in a message to each owner: those of
// an [Engine]'s workers.
type Batched interface {
	Synchronizer
	// PullRows is [Synchronizer.Pull] of some rows of parameters, of no two twice.
	PullRows(ctx context.Context, refs []Ref) error
}

// Entry is one pending update in the outbox.
type Entry struct {
	Ref  Ref
	Dest NodeID
	Made Clock   // the oldest clock in it
	Tag  Version // of the value that it was computed from; 0: not followed
	U    Update
	// At is how many messages of updates its owner has folded in before it, and Delay how many of
	// those it was computed without: for a [Rule].
	At, Delay Version
}

// Topology says who must get an update.
type Topology interface {
	// Dests appends the nodes that self sends an update of clock c to.
	Dests(dst []NodeID, self NodeID, r Ref, c Clock) []NodeID
	// Owner is the node that holds the master copy; !ok if every node holds a replica.
	Owner(r Ref) (id NodeID, ok bool)
}

// Consistency says when a value may be read, and when an update must have left.
type Consistency interface {
	// MayRead reports whether a worker in clock at may read, which has seen all updates
	// of peer q stamped less than seen(q).
	MayRead(at Clock, seen func(NodeID) Clock, peers []NodeID) bool
	// Due reports whether an entry must be out before the worker passes now.
	Due(e *Entry, now Clock) bool
}

// Filter splits an update: send + keep equal it, always; keep goes back to the outbox.
type Filter interface {
	Split(e *Entry, now Clock, link Link) (send, keep Update)
}

// Pacer releases entries before they are due.
type Pacer interface {
	// Budget is how many bytes may go to dest now, and after what time to ask again.
	Budget(dest NodeID, now time.Time) (bytes int, again time.Duration)
	// Sent notes what went.
	Sent(dest NodeID, bytes int, at time.Time)
	// Better reports whether a goes before b; value is the replica's rows.
	Better(a, b *Entry, value func(Ref) []float32) bool
}

// Rule folds an update into the owner's rows.
type Rule interface {
	// Apply changes rows w of cols elements and returns their new version.
	Apply(w []float32, cols int, e *Entry) Version
	// Snapshot is called when rows are sent out, and returns the version that updates
	// computed from them are tagged with.
	Snapshot(r Ref) Version
}

// Periodic runs at a barrier every n clocks.
type Periodic struct {
	Every Clock
	Do    func(ctx context.Context, r *Round) error
}

// Round is what a [Periodic] works on.
type Round struct {
	Clock  Clock
	Group  Group
	Params []*Param
	Drain  func(Ref) Update // takes all that this node still has pending
}

// Class separates streams of messages; within one, between two nodes, order is kept.
type Class uint8

// The classes.
const (
	Control Class = iota
	Updates
	ValuesOf
	Collective
	classes
)

// Classes is how many classes there are.
const Classes = int(classes)

// Msg is sent by reference: Head and Body may be used again only after Done. One that was
// received may have a Done, too: a receiver that does not keep the message calls it with nil,
// so that the transport uses the memory again, the Msg's too.
type Msg struct {
	Class Class
	Tag   uint64
	Head  []byte // at most MaxHead bytes
	Body  [][]byte
	Done  func(error) // nil: nobody asks; called once, from any goroutine
}

// MaxHead is the most bytes a message's head has.
const MaxHead = 4 << 10

// Transport carries messages between the nodes of a view.
type Transport interface {
	Self() NodeID
	// Send queues a message; order is kept per destination and class. What it is refused
	// with goes to Done. Sending to oneself is allowed.
	Send(to NodeID, m *Msg)
	// Serve starts to deliver messages; it is called once. What came before waits. Serve itself
	// calls nothing of the handler, so whoever calls it may hold what the handler needs.
	Serve(h Handler)
	// Links says what is known of the way to each other node.
	Links() []Link
	// Close ends after what was queued has been sent, or its nodes are gone.
	io.Closer
}

// Dropper is a transport that can be told what it has not noticed: that a node is gone.
type Dropper interface {
	// Drop gives a node up at once: what was to be sent to it is refused with why, its connections
	// end, and the handler is told, as of one whose connection broke. Close does not wait for it.
	Drop(node NodeID, why error)
}

// Drop gives a node up by a transport that is a [Dropper]; others will notice by themselves.
func Drop(t Transport, node NodeID, why error) {
	if d, ok := t.(Dropper); ok {
		d.Drop(node, why)
	}
}

// Handler takes what a transport delivers. Calls for one peer and class come in order,
// one after the other; others at the same time. While one blocks, its stream does, and in
// the end the sender.
type Handler interface {
	// Receive takes a message, whose bytes it may keep.
	Receive(from NodeID, m *Msg)
	// Down says that nothing will come from a node any more, and why. It is called once.
	Down(from NodeID, err error)
}

// Link is the way to a node.
type Link struct {
	To        NodeID
	Bps       float64 // measured goodput in bits a second, 0 unknown
	Congested bool
}

// Wrap decorates a transport: rates, meters, faults.
type Wrap func(Transport) Transport

// View is the nodes that take part in an epoch. Messages of other epochs are dropped.
type View struct {
	Epoch int64
	Self  NodeID
	Nodes []Node
}

// Node is a member of a view.
type Node struct {
	ID    NodeID
	Addr  string
	Roles []string
}

// Coordinator agrees on views, leaders and small values.
type Coordinator interface {
	// Join waits until min to max nodes are there and returns their view.
	Join(ctx context.Context, self Node, min, max int) (View, error)
	// Views delivers every view after the one that Join returned.
	Views() <-chan View
	// Lead waits until this node leads in a role; term ends when it does not any more.
	Lead(ctx context.Context, role string) (term context.Context, err error)
	// Barrier waits until n nodes have come to one of the same name.
	Barrier(ctx context.Context, name string, n int) error
	Put(ctx context.Context, key string, val []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
}

// Group is some nodes that work together in collectives, by rank. Messages between two
// ranks of the same tag keep their order.
type Group interface {
	Rank() int
	Size() int
	// Send sends b, which may be used again when it returns.
	Send(ctx context.Context, to int, tag uint64, b []byte) error
	// Recv waits for the next message of a rank and tag and puts it into b; one of
	// another length is an error.
	Recv(ctx context.Context, from int, tag uint64, b []byte) error
}
