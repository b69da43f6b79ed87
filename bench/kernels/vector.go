package main

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// columns is the length of a row in normalisations, softmax and sums.
const columns = 1024

// arrays are the operands of a vector problem: a destination or weights, a
// source or gradient, and two more.
type arrays struct{ d, x, y, z []float32 }

// vector is an operation on arrays.
type vector struct {
	name      string
	bytes     float64 // read and written, an element
	primitive func(a arrays)
	operation func(f *formula) *graph.Node
	kind      trait
}

// trait is what sets an operation apart from the others.
type trait int

const (
	usual   trait = iota
	random        // the operation's results differ from the peer's
	narrow        // the primitive has a result for each row
	squares       // an operand is a mean of squares, not negative
)

// Operands of the optimizer steps; the peer has the same.
const (
	learningRate   = 1e-3
	beta1, beta2   = 0.9, 0.999
	epsilon, small = 1e-5, 1e-8
	dropRate       = 0.1
	smoothing      = 0.1
)

var vectorOps = []vector{
	{"add", 12, func(a arrays) { vec.Add(a.d, a.x, a.y) },
		func(f *formula) *graph.Node { return ops.Add(f.matrix(f.x), f.matrix(f.y)).Node }, usual},
	{"relu", 8, func(a arrays) { vec.Relu(a.d, a.x) },
		func(f *formula) *graph.Node { return ops.Relu(f.matrix(f.x)).Node }, usual},
	{"exp", 8, func(a arrays) { vec.Exp(a.d, a.x) },
		func(f *formula) *graph.Node { return ops.Exp(f.matrix(f.x)).Node }, usual},
	{"tanh", 8, func(a arrays) { vec.Tanh(a.d, a.x) },
		func(f *formula) *graph.Node { return ops.Tanh(f.matrix(f.x)).Node }, usual},
	{"gelu", 8, func(a arrays) { vec.Gelu(a.d, a.x) },
		func(f *formula) *graph.Node { return ops.Gelu(f.matrix(f.x)).Node }, usual},
	{"softmax", 8, perRow(func(d, x []float32, _ int) { vec.Softmax(d, x) }),
		func(f *formula) *graph.Node { return ops.Softmax(f.matrix(f.x)).Node }, usual},
	{"sum", 4, func(a arrays) { perRow(func(_, x []float32, i int) { a.d[i] = vec.Sum(x) })(a) },
		func(f *formula) *graph.Node { return ops.Sum(f.matrix(f.x), -1).Node }, narrow},
	{"layer-norm", 8, nil,
		func(f *formula) *graph.Node {
			return ops.LayerNorm(f.matrix(f.x), f.vector(f.y), f.vector(f.z), epsilon).Node
		}, usual},
	{"rms-norm", 8, nil,
		func(f *formula) *graph.Node {
			return ops.RMSNorm(f.matrix(f.x), f.vector(f.y), epsilon).Node
		}, usual},
	{"softmax-grad", 12, nil,
		func(f *formula) *graph.Node { // reads the softmax, for which x may stand
			return gradient(f.keep(ops.Softmax(f.matrix(f.z)), f.x), f.matrix(f.y))
		}, usual},
	{"layer-norm-grad", 12, nil,
		func(f *formula) *graph.Node {
			return gradient(ops.LayerNorm(f.matrix(f.x), f.vector(f.y), f.vector(f.z), epsilon),
				f.matrix(f.z))
		}, usual},
	{"rms-norm-grad", 12, nil,
		func(f *formula) *graph.Node {
			return gradient(ops.RMSNorm(f.matrix(f.x), f.vector(f.y), epsilon), f.matrix(f.z))
		}, usual},
	{"cross-entropy", 4, nil,
		func(f *formula) *graph.Node {
			return ops.CrossEntropy(f.matrix(f.x), f.labels(), smoothing).Node
		}, usual},
	{"cross-entropy-grad", 8, nil,
		func(f *formula) *graph.Node {
			return gradient(ops.CrossEntropy(f.matrix(f.x), f.labels(), smoothing), f.losses(f.y))
		}, usual},
	{"adam", 28, func(a arrays) {
		vec.Adam(a.d, a.y, a.z, a.x, learningRate, beta1, beta2, small, 1-beta1, 1-beta2)
	},
		func(f *formula) *graph.Node {
			return ops.Adam(f.state(f.d), f.state(f.y), f.state(f.z), f.matrix(f.x),
				f.scalar(learningRate), f.scalar(1), beta1, beta2, small)
		}, squares},
	{"sgd", 12, func(a arrays) { vec.SGD(a.d, a.x, learningRate) },
		func(f *formula) *graph.Node {
			return ops.SGD(f.state(f.d), f.matrix(f.x), f.scalar(learningRate))
		}, usual},
	{"dropout", 8, func(a arrays) { vec.Dropout(a.d, a.x, 1-dropRate, 1, 0) },
		func(f *formula) *graph.Node {
			return ops.Dropout(f.matrix(f.x), f.seed(), dropRate, "x").Node
		}, random},
}

// gradient is the operation that computes the gradient of y's first operand from
// that of y.
func gradient(y, dy graph.Value) *graph.Node {
	return y.Node.Op.VJP(y.Node, []graph.Value{dy})[0].Node
}

func perRow(f func(d, x []float32, i int)) func(a arrays) {
	return func(a arrays) {
		for i := range len(a.x) / columns {
			lo, hi := i*columns, (i+1)*columns
			f(a.d[lo:hi], a.x[lo:hi], i)
		}
	}
}

// formula builds a node, and remembers where its operands are.
type formula struct {
	arrays
	g    *graph.Graph
	data map[graph.NodeID]tensor.View
}

func (f *formula) keep(v graph.Value, data []float32) graph.Value {
	f.data[v.Node.ID] = view(v.Type(), data)
	return v
}

func (f *formula) name() string { return fmt.Sprint("x", f.g.Len()) }

// shape is rows of all the elements.
func (f *formula) shape() graph.Type { return tensor.Of(graph.F32, len(f.x)/columns, columns) }

func (f *formula) matrix(x []float32) graph.Value {
	return f.keep(f.g.Input(f.name(), f.shape()), x)
}

func (f *formula) state(x []float32) graph.Value {
	return f.keep(f.g.Variable(f.name(), f.shape(), graph.Init{}), x)
}

func (f *formula) vector(x []float32) graph.Value {
	return f.keep(f.g.Input(f.name(), tensor.Of(graph.F32, columns)), x[:columns])
}

func (f *formula) scalar(x float32) graph.Value {
	return f.keep(f.g.Input(f.name(), tensor.Of(graph.F32)), []float32{x})
}

// losses is a number for every row.
func (f *formula) losses(x []float32) graph.Value {
	t := tensor.Of(graph.F32, len(x)/columns)
	return f.keep(f.g.Input(f.name(), t), x[:t.Elems()])
}

// labels are those of the rows: 0, 1, … and again.
func (f *formula) labels() graph.Value {
	ids := make([]int32, len(f.x)/columns)
	for i := range ids {
		ids[i] = int32(i % columns)
	}
	v := f.g.Input(f.name(), tensor.Of(graph.I32, len(ids)))
	f.data[v.Node.ID] = tensor.FromI32(ids, len(ids))
	return v
}

func (f *formula) seed() graph.Value {
	v := f.g.Input(f.name(), tensor.Of(graph.I32, 2))
	f.data[v.Node.ID] = tensor.FromI32([]int32{1, 1}, 2)
	return v
}

// view is memory as an operand of a kernel.
func view(t graph.Type, x []float32) tensor.View {
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
	return tensor.View{Type: t, Data: data[:t.Bytes()]}
}

// kernel is the operation as the CPU device launches it.
func (b *bench) kernel(v vector, a arrays) (launch func(), result []float32, err error) {
	f := &formula{arrays: a, g: graph.New(), data: map[graph.NodeID]tensor.View{}}
	n := v.operation(f)
	if err := f.g.Err(); err != nil {
		return nil, nil, err
	}
	fn, err := kernel.Lookup(kernel.CPU, n.Op)
	if err != nil {
		return nil, nil, err
	}
	call := &kernel.Call{Pool: b.pool}
	var in []graph.Type
	for _, x := range n.In {
		call.In, in = append(call.In, f.data[x.Node.ID]), append(in, x.Type())
	}
	result = a.d
	for _, t := range n.Out {
		call.Out = append(call.Out, view(t, a.d))
		result = a.d[:t.Elems()]
	}
	call.Scratch = make([]byte, n.Op.Cost(in, n.Out).Scratch)
	if err := fn(n.Op, call); err != nil {
		return nil, nil, err
	}
	a.reset()
	return func() { err = fn(n.Op, call) }, result, err
}

// newArrays has the contents of the peer's.
func newArrays(n int) arrays {
	x := operands(n, n, n, n)
	return arrays{x[0], x[1], x[2], x[3]}
}

// reset gives the arrays the contents that they started with. Those of Adam's
// second moment are not negative.
func (a arrays) reset() {
	for i, x := range [][]float32{a.d, a.x, a.y, a.z} {
		fill(x, uint32(i))
	}
}

// problem is an operation on n elements: the primitive, if there is one and it
// is wanted, or else the operation's kernel.
func (b *bench) problem(v vector, n int, primitive bool, c *peer) (comparison, error) {
	a := newArrays(n)
	p := comparison{name: v.name, work: v.bytes * float64(n)}
	p.rivals = []rival{{peer: c, question: fmt.Sprint(v.name, " ", n, columns), same: true}}
	if primitive && v.primitive != nil {
		p.launch, p.result = func() { v.primitive(a) }, a.d
		if v.kind == narrow {
			p.result = a.d[:n/columns]
		}
	} else {
		var err error
		if p.launch, p.result, err = b.kernel(v, a); err != nil {
			return p, err
		}
		p.rivals[0].same = v.kind != random
	}
	if v.kind == squares {
		vec.Abs(a.z, a.z)
	}
	return p, nil
}

// vectors is the table of everything but products and convolutions.
func vectors(ctx context.Context, b *bench) error {
	c := b.start(ctx, plainC)
	if b.threads == 1 {
		if err := inCache(ctx, b, c); err != nil {
			return err
		}
	}
	return inMemory(ctx, b, c)
}

// inCache compares the primitives with C, which is the limit there.
func inCache(ctx context.Context, b *bench, c *peer) error {
	const n = 4096
	fmt.Fprintf(b.w, "\nIn cache: %d elements. Nanoseconds for an element; C is the compiler's "+
		"vectorisation of plain loops with -ffast-math. The norms are the operations' kernels. "+
		"In brackets, the target.\n", n)
	header(b.w, "operation", "gomem ns", "C ns", "gomem / C, speed", "best / best")
	for _, v := range vectorOps {
		p, err := b.problem(v, n, true, c)
		if err != nil {
			return err
		}
		err = b.measure(ctx, p, func(o outcome) []string {
			ns := func(rate float64) string { return fmt.Sprintf("%.3f", v.bytes/rate*1e9) }
			other := "missing"
			if !c.missing {
				other = ns(o.rates[1])
			}
			return []string{ns(o.rates[0]), other, against(o.ratios[0], 0.7), number(o.best[0])}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inMemory compares the operations with copying, which is the limit there, and
// with C that negates: the traffic of a copy by ordinary stores, which read a
// line before they write it, where a copy's do not.
func inMemory(ctx context.Context, b *bench, c *peer) error {
	const n = 16 << 20
	a, negate := newArrays(n), b.again(ctx, plainC)
	limit := func() { b.pool.For(n, 1, func(lo, hi int) { copy(a.d[lo:hi], a.x[lo:hi]) }) }
	fmt.Fprintf(b.w, "\nIn memory: operands of %d MiB. GB/s read and written. Copy is Go's, "+
		"whose stores bypass the caches; negate is a loop in C with ordinary stores; both in the "+
		"same rounds. In brackets, the target.\n", 4*n>>20)
	header(b.w, "operation", "gomem GB/s", "C GB/s", "gomem / C", "copy GB/s", "gomem / copy",
		"best / best", "negate GB/s", "gomem / negate")
	for _, v := range vectorOps {
		p, err := b.problem(v, n, false, c)
		if err != nil {
			return err
		}
		p.rivals = append(p.rivals,
			rival{launch: limit, work: 8 * n},
			rival{peer: negate, question: fmt.Sprint("negate ", n, columns), work: 8 * n})
		err = b.measure(ctx, p, func(o outcome) []string {
			return []string{
				number(o.rates[0] / 1e9), number(o.rates[1] / 1e9), number(o.ratios[0]),
				number(o.rates[2] / 1e9), against(o.ratios[1], 0.8), number(o.best[1]),
				number(o.rates[3] / 1e9), number(o.ratios[2]),
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
