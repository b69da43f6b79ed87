package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// LinearCrossEntropy is [CrossEntropy] of the product of x f32[… d] and w f32[d v], or f32[v d] if
// it is transposed, as embeddings are: labels i32[…] → f32[…]. The logits, which are the largest
// value of a language model, are computed some hundred rows at a time and never whole, and so is
// their gradient. A gradient that does not depend on the losses, as that of a mean, is computed
// with them: three products. Bits are those of MatMul and CrossEntropy, and of their gradients, but
// where the logits of 512 rows take more than 128 MiB: there a sum over rows has shorter runs.
// Planners take both apart where that needs less memory, or where they are divided over a mesh,
// computed in bfloat16 or by a GPU. Where nobody wants the gradient of w, they leave it out.
func LinearCrossEntropy(x, w, labels graph.Value, transposed bool, smoothing float32) graph.Value {
	return apply(linearLoss{Trans: transposed, Smoothing: smoothing}, x, w, labels)
}

// linearLoss is the cross-entropy of a product.
type linearLoss struct {
	Trans     bool // w is f32[v d]
	Smoothing float32
}

func (linearLoss) Name() string { return "linear-cross-entropy" }

// logits is the product, dx that of logits' gradients and w, and dw that which sums over rows.
func (o linearLoss) logits() matMul { return matMul{TransB: o.Trans} }

func (o linearLoss) dx() matMul { return matMul{TransB: !o.Trans} }

func (o linearLoss) dw() matMul { return matMul{TransA: true} }

// factors are the operands of dw, whichever they are.
func factorsOfW[T any](o linearLoss, x, gradient T) (a, b T) {
	if o.Trans {
		return gradient, x
	}
	return x, gradient
}

func (o linearLoss) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if in[0].Rank() < 2 || in[1].Rank() != 2 {
		return nil, fmt.Errorf("rows %s by a matrix %s: want two axes or more, and two", in[0],
			in[1])
	}
	logits, err := o.logits().Infer(in[:2])
	if err != nil {
		return nil, err
	}
	return crossEntropy{Smoothing: o.Smoothing}.Infer([]graph.Type{logits[0], in[2]})
}

// Cost is that of the product and of the losses.
func (o linearLoss) Cost(in, out []graph.Type) graph.Cost {
	b := o.blocks(in)
	return graph.Cost{FLOPs: b.flops(2) + 14*int64(b.n)*int64(b.v), Bytes: bytes(in, out),
		Scratch: b.logits(b.rows).Bytes()}
}

func (o linearLoss) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	all := applyN(3, linearLossGrad(o), n.In[0], n.In[1], n.In[2], dout[0])
	return []graph.Value{all[1], all[2], {}}
}

// CheckData wants labels that are classes.
func (o linearLoss) CheckData(in []tensor.View) error {
	return checkIDs(known(in[2]), o.blocks([]graph.Type{in[0].Type, in[1].Type}).v)
}

// mostLogits is how many bytes of logits there are at a time, unless those of leastRows are more.
const (
	mostLogits = 128 << 20
	leastRows  = 16
)

// lossBlocks says how rows are taken, which depends on shapes alone.
type lossBlocks struct {
	n, d, v int
	rows    int // at a time
	// run is the length of the runs that the sum over rows has; 0: those of the whole product.
	run int
}

func (o linearLoss) blocks(in []graph.Type) lossBlocks {
	lead := graph.Type{Shape: in[0].Shape[:in[0].Rank()-1]}
	b := lossBlocks{n: lead.Elems(), d: in[0].Size(-1)}
	_, b.v = flip(in[1], o.Trans)
	b.rows = max(1, b.n)
	ta, tb := factorsOfW(o, tensor.Of(graph.F32, b.n, b.d), tensor.Of(graph.F32, b.n, b.v))
	whole := []graph.Type{ta, tb}
	cut, ok := o.dw().Cut(whole, in[1:2])
	if !ok {
		return b // a sum that cannot be made in parts
	}
	if cut.Align > 1 {
		b.rows = cut.Align
	}
	if most := mostRows(b.v); b.rows > most {
		b.rows, b.run = most, most
	}
	return b
}

// mostRows is how many rows may have their logits of so many classes at a time.
func mostRows(v int) int { return max(leastRows, mostLogits/4/max(1, v)&^(leastRows-1)) }

func (b lossBlocks) logits(rows int) graph.Type { return tensor.Of(graph.F32, rows, b.v) }

// flops are those of an element of the matrix for every row.
func (b lossBlocks) flops(each int64) int64 { return each * int64(b.n) * int64(b.d) * int64(b.v) }

// someRows is the type of some rows of an operand whose rows have so many elements, and how many
// bytes one has; without a number it is a vector.
func someRows(of graph.DType, rows int, each []int) (t graph.Type, row int) {
	row = int(of.Size())
	for _, n := range each {
		row *= n
	}
	return tensor.Of(of, append([]int{rows}, each...)...), row
}

// rowBlock is some rows of an operand.
func rowBlock(v tensor.View, lo, hi int, each ...int) tensor.View {
	t, row := someRows(v.Type.DType, hi-lo, each)
	return tensor.View{Type: t, Data: v.Data[lo*row : hi*row]}
}

// each calls f with the logits of every block of rows, which it may overwrite.
func (o fixedLoss) each(c *kernel.Call, b lossBlocks,
	f func(lo, hi int, logits tensor.View) error) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	for lo := 0; lo < b.n; lo += b.rows {
		hi := min(b.n, lo+b.rows)
		t := b.logits(hi - lo)
		logits := tensor.View{Type: t, Data: c.Scratch[:t.Bytes()]}
		product := kernel.Call{In: []tensor.View{rowBlock(c.In[0], lo, hi, b.d), c.In[1]},
			Out: []tensor.View{logits}, Pool: c.Pool,
			Scratch: c.Scratch[min(b.beside(), int64(len(c.Scratch))):]}
		if err := o.multiply(&product, b.n, false); err != nil {
			return err
		}
		losses := kernel.Call{In: []tensor.View{logits, rowBlock(c.In[2], lo, hi)},
			Out: []tensor.View{rowBlock(c.Out[0], lo, hi)}, Pool: c.Pool}
		if err := crossEntropyCPU(crossEntropy{o.Of.Smoothing}, &losses); err != nil {
			return err
		}
		if err := f(lo, hi, logits); err != nil {
			return err
		}
	}
	return nil
}

func linearLossCPU(o linearLoss, c *kernel.Call) error {
	b := o.blocks([]graph.Type{c.In[0].Type, c.In[1].Type})
	return fixedLoss{Of: o}.each(c, b, func(int, int, tensor.View) error { return nil })
}

func init() {
	kernel.Register(kernel.CPU, linearLossCPU)
	for _, s := range linearLossSamples() {
		register(s)
	}
}

// linearLossSamples are of both forms of the matrix, of the loss and of its gradient.
func linearLossSamples() (list []Sample) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	add := func(o linearLoss, x, w, labels graph.Type) {
		_, v := flip(w, o.Trans)
		fill := fills{2: below(v)}
		in := []graph.Type{x, w, labels}
		list = append(list,
			Sample{Op: o, In: in, Fill: fill, NoGrad: []int{2}, Second: true},
			Sample{Op: linearLossGrad(o), In: append(in[:3:3], f(labels.Sizes()...)), Fill: fill,
				NoGrad: []int{2}, Second: true, Tol: 2e-2})
	}
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	add(linearLoss{}, f(3, 4), f(4, 5), ids(3))
	add(linearLoss{Trans: true}, f(2, 3, 4), f(5, 4), ids(2, 3))
	add(linearLoss{Trans: true, Smoothing: 0.1}, f(4, 3), f(17, 3), ids(4))
	return list
}
