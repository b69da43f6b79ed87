package graph

// Framed is implemented by operations whose work is said by a graph of their own, the body, which
// is laid out in a part of the operation's scratch, the frame.
type Framed interface {
	Op
	// Inside are the results of the body, of one graph; none of a body that cannot be another.
	Inside() []Value
	// Frame is how many bytes the body takes.
	Frame() int64
	// Reframed is the operation with a body of another graph, which computes the same: of is what
	// stands there for a value of the body, its operands among them.
	Reframed(of func(Value) Value) Op
}
