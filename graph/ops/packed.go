package ops

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/fewbits"
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/quant"
)

// PackedType is the type of a matrix whose rows of so many elements are packed in a format of few
// bits: u8[rows bytes], or bf16 or f16[rows elements] in the formats that are called so. The
// formats are q8_0, q4_0, q4_k and q6_k, which are GGUF's, nf4, bf16 and f16.
func PackedType(rows, elements int, format string) (graph.Type, error) {
	f, err := quant.Parse(format)
	if err != nil {
		return graph.Type{}, err
	}
	return packedType(rows, elements, f)
}

func packedType(rows, elements int, f quant.Format) (graph.Type, error) {
	if d := whole16(f); d != tensor.Invalid {
		return tensor.Of(d, rows, elements), nil
	}
	n, err := f.RowBytes(elements)
	if err != nil {
		return graph.Type{}, err
	}
	return tensor.Of(graph.U8, rows, int(n)), nil
}

// whole16 is the element type of a format whose elements are numbers of 16 bits by themselves.
func whole16(f quant.Format) tensor.DType {
	switch f {
	case quant.BF16:
		return graph.BF16
	case quant.F16:
		return graph.F16
	}
	return tensor.Invalid
}

// MatMulPacked is x·Wᵀ, where the rows of W are packed as [PackedType] says: x f32[… k] →
// f32[… rows]. W has no gradient. In q8_0, q4_0, q4_k and q6_k its elements are integers with a
// scale, and are multiplied by integers: of x each 32 elements are rounded to multiples of their
// largest magnitude by 16,383. What is not finite in x is not finite in products of it, and what
// is below 2⁻¹¹² is zero. In other formats W becomes f32, a few rows at a time, as it does for the
// gradient of x, which is that of the product of x as it is.
func MatMulPacked(x, w graph.Value, format string) graph.Value {
	if !x.Valid() || !w.Valid() {
		return graph.Value{}
	}
	f, err := quant.Parse(format)
	if err != nil {
		x.Graph().Fail(err)
		return graph.Value{}
	}
	if x.Type().Rank() == 0 {
		x.Graph().Fail(fmt.Errorf("packed product of %s: want an axis or more", x))
		return graph.Value{}
	}
	return apply(packedMatMul{Format: f, Width: x.Type().Size(-1)}, x, w)
}

// packedMatMul is a product with a packed matrix of rows of Width elements: x·Wᵀ, or, Back, x·W.
type packedMatMul struct {
	Format quant.Format
	Width  int
	Back   bool
	As     gemm.Order // of sums, in a part of a product
}

func (packedMatMul) Name() string { return "packed-matmul" }

// sides are the elements of a row of x, and of one of the result.
func (o packedMatMul) sides(w graph.Type) (in, out int) {
	if o.Back {
		return w.Size(0), o.Width
	}
	return o.Width, w.Size(0)
}

func (o packedMatMul) Infer(in []graph.Type) ([]graph.Type, error) {
	if len(in) != 2 {
		return nil, fmt.Errorf("%d operands, want 2", len(in))
	}
	x, w := in[0], in[1]
	if x.DType != graph.F32 || x.Rank() < 1 {
		return nil, fmt.Errorf("operand 0 is %s, want f32 with an axis or more%s", x,
			convertible(x, graph.F32))
	}
	if err := checkPacked(w, o.Width, o.Format); err != nil {
		return nil, err
	}
	k, n := o.sides(w)
	if x.Size(-1) != k {
		return nil, fmt.Errorf("inner dimensions differ: %d and %d", x.Size(-1), k)
	}
	shape := extended(x.Shape[:x.Rank()-1], graph.Dim{Size: n})
	return []graph.Type{{DType: graph.F32, Shape: shape}}, nil
}

// checkPacked demands a matrix of packed rows.
func checkPacked(w graph.Type, width int, f quant.Format) error {
	if w.Rank() != 2 {
		return fmt.Errorf("packed rows are %s: want two axes", w)
	}
	want, err := packedType(w.Size(0), width, f)
	if err != nil {
		return err
	}
	if want.Equal(tensor.Of(w.DType, w.Sizes()...)) {
		return nil
	}
	how := ", which no Cast makes"
	if d := whole16(f); d != tensor.Invalid {
		how = convertible(w, d)
	}
	return fmt.Errorf("rows of %d elements in %s are %s: want %s%s", width, f, w, want, how)
}

func (o packedMatMul) Cost(in, out []graph.Type) graph.Cost {
	w := in[1]
	elems := int64(w.Size(0)) * int64(o.Width)
	n := int64(in[0].Elems() / max(1, in[0].Size(-1)))
	return graph.Cost{FLOPs: 2 * n * elems, Bytes: bytes(in, out), Scratch: n * o.rounded()}
}

// rounded is the bytes that a row of x takes as integers, or 0 where it is multiplied as it is.
func (o packedMatMul) rounded() int64 {
	if o.Back || !o.Format.Integral() {
		return 0
	}
	return fewbits.RoundedBytes(o.Width)
}

// VJP: the matrix is not trained.
func (o packedMatMul) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	o.Back, o.As = !o.Back, gemm.Order{}
	return []graph.Value{apply(o, dout[0], n.In[1]), {}}
}

// ordered is the product with the order of sums that one of so many rows of x has.
func (o packedMatMul) ordered(rows int, w graph.Type) packedMatMul {
	if o.As == (gemm.Order{}) {
		k, n := o.sides(w)
		o.As = gemm.Product{M: rows, N: n, K: k, B: gemm.Matrix{Trans: !o.Back}}.Order()
	}
	return o
}

// Cut is between rows of x.
func (packedMatMul) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, in[0].Rank()-1, 1)
}

// Part adds up as the whole does.
func (o packedMatMul) Part(in, _ []graph.Type, _, _ int) graph.Op {
	return o.ordered(in[0].Elems()/max(1, in[0].Size(-1)), in[1])
}

func packedMatMulCPU(o packedMatMul, c *kernel.Call) error {
	x, out, w := c.In[0].F32(), c.Out[0].F32(), c.In[1]
	k, n := o.sides(w.Type)
	rows, all := len(x)/max(1, k), w.Type.Size(0)
	if all == 0 || o.Width == 0 {
		clear(out)
		return nil
	}
	of := fewbits.Rows{Format: o.Format, Elements: o.Width, Data: w.Data}
	if size := int(o.rounded()); size > 0 {
		c.Pool.For(rows, max(1, grain/o.Width), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				fewbits.Round(c.Scratch[i*size:(i+1)*size], x[i*k:(i+1)*k])
			}
		})
		timesRounded(c.Pool, of, c.Scratch, out, rows)
		return nil
	}
	p := gemm.Product{Batch: 1, M: rows, N: n, K: k, Alpha: 1, C: out, LDC: n,
		A: gemm.Matrix{F32: x, LD: k}, As: o.ordered(rows, w.Type).As}
	p.B.Rows, p.B.Trans = of, !o.Back
	p.Compute(c.Pool)
	return nil
}

// timesRounded sets out to the products of rounded rows and those of w, of which so many at a time
// are a task.
func timesRounded(p *pool.Pool, w fewbits.Rows, x []byte, out []float32, rows int) {
	const panel = 16
	n := w.Len()
	least := max(1, packedGrain/(panel*w.Elements*rows))
	p.For((n+panel-1)/panel, least, func(lo, hi int) {
		lo, hi = lo*panel, min(hi*panel, n)
		w.Times(out[lo:], n, x, rows, lo, hi-lo)
	})
}

// packedGrain is the least products of elements of a task, some microseconds.
const packedGrain = 1 << 17

// EmbeddingPacked looks rows up in a table whose rows of so many elements are packed as
// [PackedType] says, some rows of a larger one from first on: ids i32[…] → f32[… elements], zeros
// where the id has its row elsewhere. The table has no gradient.
func EmbeddingPacked(table, ids graph.Value, first, elements int, format string) graph.Value {
	if !table.Valid() || !ids.Valid() {
		return graph.Value{}
	}
	f, err := quant.Parse(format)
	if err != nil {
		table.Graph().Fail(err)
		return graph.Value{}
	}
	return apply(packedEmbedding{Format: f, Width: elements, First: first}, table, ids)
}

type packedEmbedding struct {
	Format       quant.Format
	Width, First int
}

func (packedEmbedding) Name() string { return "packed-embedding" }

func (o packedEmbedding) Infer(in []graph.Type) ([]graph.Type, error) {
	if len(in) != 2 {
		return nil, fmt.Errorf("%d operands, want 2", len(in))
	}
	if in[1].DType != graph.I32 {
		return nil, fmt.Errorf("ids are %s, want i32%s", in[1], convertible(in[1], graph.I32))
	}
	if o.First < 0 {
		return nil, fmt.Errorf("the first row is %d, want 0 or more", o.First)
	}
	if err := checkPacked(in[0], o.Width, o.Format); err != nil {
		return nil, err
	}
	shape := extended(in[1].Shape, graph.Dim{Size: o.Width})
	return []graph.Type{{DType: graph.F32, Shape: shape}}, nil
}

func (o packedEmbedding) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

func (packedEmbedding) VJP(*graph.Node, []graph.Value) []graph.Value {
	return []graph.Value{{}, {}}
}

func packedEmbeddingCPU(o packedEmbedding, c *kernel.Call) error {
	table, ids, out := c.In[0], c.In[1].I32(), c.Out[0].F32()
	from := fewbits.Rows{Format: o.Format, Elements: o.Width, Data: table.Data}
	rows := table.Type.Size(0)
	c.Pool.For(len(ids), max(1, grain/max(1, o.Width)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := out[i*o.Width : (i+1)*o.Width]
			if at := int(ids[i]) - o.First; at >= 0 && at < rows {
				from.Read(row, at, 0)
			} else {
				clear(row)
			}
		}
	})
	return nil
}

// packedRows fills bytes with packed rows of normal numbers.
func packedRows(f quant.Format, width int) func(*rand.Rand, any) {
	return func(rng *rand.Rand, x any) {
		data, ok := x.([]uint8)
		if !ok {
			return
		}
		n, err := f.RowBytes(width)
		if err != nil {
			panic(err)
		}
		row := make([]float32, width)
		for at := 0; at < len(data); at += int(n) {
			for i := range row {
				row[i] = float32(rng.NormFloat64())
			}
			f.Pack(data[at:at+int(n)], row)
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, packedMatMulCPU)
	kernel.Register(kernel.CPU, packedEmbeddingCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	const rounding = 4 // a step of differences beside which rounding of x is small
	for _, c := range []struct {
		format      quant.Format
		rows, width int
	}{{quant.Q8_0, 5, 64}, {quant.Q4_0, 3, 32}, {quant.Q4_K, 2, 256}, {quant.Q6_K, 3, 256},
		{quant.NF4, 4, 192}} {
		w, err := packedType(c.rows, c.width, c.format)
		if err != nil {
			panic(err)
		}
		fill := fills{1: packedRows(c.format, c.width)}
		register(
			Sample{Op: packedMatMul{Format: c.format, Width: c.width}, Fill: fill, Eps: rounding,
				In: []graph.Type{f(2, 3, c.width), w}, NoGrad: []int{1}, Second: true},
			Sample{Op: packedMatMul{Format: c.format, Width: c.width, Back: true}, Fill: fill,
				In: []graph.Type{f(4, c.rows), w}, NoGrad: []int{1}, Second: true})
		register(Sample{Op: packedEmbedding{Format: c.format, Width: c.width, First: 1},
			In: []graph.Type{w, tensor.Of(graph.I32, 2, 3)}, NoGrad: []int{0, 1},
			Fill: fills{0: packedRows(c.format, c.width), 1: below(c.rows + 2)}})
	}
	register(Sample{Op: packedMatMul{Format: quant.Q8_0, Width: 320}, Fill: fills{
		1: packedRows(quant.Q8_0, 320)}, In: []graph.Type{f(11, 320), tensor.Of(graph.U8, 9, 340)},
		NoGrad: []int{1}, Eps: rounding})
	register(Sample{Op: packedMatMul{Format: quant.BF16, Width: 7},
		In: []graph.Type{f(3, 7), tensor.Of(graph.BF16, 5, 7)}, NoGrad: []int{1}, Second: true})
}

// Packings are the formats of the packed variables of a graph, by the products and embeddings that
// read them, whole or some rows.
func Packings(g *graph.Graph) map[*graph.Node]string {
	formats := map[*graph.Node]string{}
	eachPacked(g, func(n *graph.Node, f quant.Format, _ int) { formats[n] = f.String() })
	return formats
}

// Parameters is [graph.Graph.Parameters], packed ones counted by the elements of their rows.
func Parameters(g *graph.Graph) int64 {
	total, seen := g.Parameters(), map[*graph.Node]bool{}
	eachPacked(g, func(n *graph.Node, _ quant.Format, width int) {
		if t := n.Out[0]; !seen[n] && !n.State {
			seen[n] = true
			total += int64(t.Size(0)) * int64(width-t.Size(1))
		}
	})
	return total
}

// eachPacked visits the packed variables of a graph, with the format and the elements of their
// rows, as often as they are read.
func eachPacked(g *graph.Graph, visit func(n *graph.Node, f quant.Format, width int)) {
	note := func(v graph.Value, f quant.Format, width int) {
		for v.Node.Kind != graph.KindVariable && len(v.Node.In) > 0 {
			v = v.Node.In[0]
		}
		if v.Node.Kind == graph.KindVariable {
			visit(v.Node, f, width)
		}
	}
	for _, n := range g.Nodes() {
		switch o := n.Op.(type) {
		case packedMatMul:
			note(n.In[1], o.Format, o.Width)
		case packedExpert:
			note(n.In[2], o.Of.Format, o.Of.Width)
		case packedEmbedding:
			note(n.In[0], o.Format, o.Width)
		case fixedLoss:
			o.note(n.In[1], note)
		case fixedLossGrad:
			o.loss().note(n.In[1], note)
		}
	}
}
