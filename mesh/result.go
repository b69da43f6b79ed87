package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Result is a graph that is divided over the slices of a mesh, or what one of the processes
// of a mesh has of it, and where the nodes of the first graph went.
type Result struct {
	Graph *graph.Graph
	// Rank is the process that the graph is for.
	Rank int
	// Propagation says how the values of the first graph are divided.
	Propagation *Propagation
	// Pieces has, by variable's name, the pieces that this process has of a variable that was
	// taken apart, in row-major order of their coordinates. One that is whole is not in it,
	// here or at another process: see [Propagation.Owners].
	Pieces Pieces
	// Conversions are what was made because values are wanted in other pieces than they
	// were computed in.
	Conversions []Conversion
	// Divided and Whole count the operations of the first graph that are computed in
	// pieces, and those that are computed once.
	Divided, Whole int

	nodes     []*graph.Node // by the ID in the first graph; nil for what is in pieces or gone
	updates   map[graph.NodeID][]*graph.Node
	fetched   map[graph.Value]graph.Value
	exchanges []exchange
	composed  *composed // what was lowered instead of the first graph; nil: that
}

// Node is the node that stands for one of the first graph, or nil if it is in pieces, or not
// needed.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Updates are the nodes that stand for an update; none if what it writes is not here.
func (r *Result) Updates(id graph.NodeID) []*graph.Node { return r.updates[id] }

// Value is the value that stands for a fetch.
func (r *Result) Value(v graph.Value) graph.Value { return r.fetched[v] }

// Conversion is a value that is made of the pieces of another form of it.
type Conversion struct {
	Value string // by its name in the first graph
	Type  graph.Type
	Kind  ConversionKind
	Axis  string // of the mesh
	Bytes int64  // that are copied; 0 if what is made is a view
	Wire  int64  // that each process sends
	For   string // the node of the first graph that was the first to want it
}

// ConversionKind is what a conversion does.
type ConversionKind string

// The kinds of conversions.
const (
	Slice ConversionKind = "slice" // what is whole along an axis of the mesh in pieces
	Join  ConversionKind = "join"  // pieces along an axis of the mesh to one
	Move  ConversionKind = "move"  // divided along another axis of the value
	Sum   ConversionKind = "sum"   // partial sums added up

	// Among processes.
	Gather  ConversionKind = "gather"     // pieces of all to one
	Swap    ConversionKind = "all-to-all" // divided along another axis of the value
	Reduce  ConversionKind = "reduce"     // terms of a sum added up
	Scatter ConversionKind = "scatter"    // terms of a sum added up, in pieces
	Copy    ConversionKind = "copy"       // what one has, for all
	Send    ConversionKind = "send"       // what one has, for another

	// Among processes, of the rows alone that experts of each want: how many that are is known
	// when they are routed, and what is said of bytes is the most.
	GatherSome  ConversionKind = "gather-some"
	ScatterSome ConversionKind = "scatter-some"
)

// Some reports whether a conversion is of some rows, so that what it sends is at most what is
// said of it.
func (k ConversionKind) Some() bool { return k == GatherSome || k == ScatterSome }

// Copied is the sum of what conversions of a kind copy, in bytes, and how many there are.
func (r *Result) Copied(kind ConversionKind) (bytes int64, count int) {
	for _, c := range r.Conversions {
		if c.Kind == kind {
			bytes, count = bytes+c.Bytes, count+1
		}
	}
	return bytes, count
}

// Sent is the sum of what conversions of a kind send, in bytes, and how many there are.
func (r *Result) Sent(kind ConversionKind) (bytes int64, count int) {
	for _, c := range r.Conversions {
		if c.Kind == kind {
			bytes, count = bytes+c.Wire, count+1
		}
	}
	return bytes, count
}

// Pieces are the pieces that variables are in, by name of the whole.
type Pieces map[string][]Piece

// Piece is one of the blocks of a variable: a variable of its own.
type Piece struct {
	Name string
	Cut  []graph.Part // by axis: the zero Part is one that is not divided
}

// Type is the type of a piece of a value of type t.
func (p Piece) Type(t graph.Type) graph.Type {
	out := graph.Type{DType: t.DType, Shape: slices.Clone(t.Shape)}
	for k, c := range p.Cut {
		if c.N > 1 {
			out.Shape[k].Size /= c.N
		}
	}
	return out
}

// Of is a copy of the piece's elements of the whole.
func (p Piece) Of(whole tensor.View) tensor.View {
	out := tensor.New(p.Type(whole.Type))
	p.Runs(whole.Type, func(at, piece, n int) {
		copy(out.Data[piece:piece+n], whole.Data[at:])
	})
	return out
}

// Into writes the piece's elements into the whole.
func (p Piece) Into(whole, piece tensor.View) {
	p.Runs(whole.Type, func(at, from, n int) {
		copy(whole.Data[at:at+n], piece.Data[from:])
	})
}

// Runs visits the contiguous runs of a piece of a whole of a type: where they start in the
// whole and in the piece, and how long they are, in bytes.
func (p Piece) Runs(whole graph.Type, visit func(at, piece, n int)) {
	inner := len(p.Cut) // axes from here on are whole
	for inner > 0 && p.Cut[inner-1].N < 2 {
		inner--
	}
	size := p.Type(whole)
	tail := int(whole.DType.Size())
	for _, d := range whole.Shape[inner:] {
		tail *= d.Size
	}
	if inner == 0 {
		visit(0, 0, tail)
		return
	}
	rows, length := 1, size.Shape[inner-1].Size*tail
	for _, d := range size.Shape[:inner-1] {
		rows *= d.Size
	}
	for row := range rows {
		at, step, rest := 0, tail*whole.Shape[inner-1].Size, row
		for k := inner - 2; k >= 0; k-- {
			n := size.Shape[k].Size
			at += (rest%n + p.Cut[k].I*n) * step
			step, rest = step*whole.Shape[k].Size, rest/n
		}
		visit(at+p.Cut[inner-1].I*length, row*length, length)
	}
}
