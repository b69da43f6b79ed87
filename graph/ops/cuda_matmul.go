package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// multiplied are the commands of C = A·B + beta·C, beta being 0 or 1: none where there is
// nothing to compute.
func multiplied(g cuda.Gemm) []cuda.Command {
	if g.Alpha = 1; g.M*g.N*g.Batch == 0 {
		return nil
	}
	if g.K > 0 {
		return []cuda.Command{g}
	}
	if g.Beta != 0 {
		return nil
	}
	bytes := 4 * int64(g.M*g.N*g.Batch)
	if g.HalfOut {
		bytes /= 2
	}
	return []cuda.Command{launched("wipe_bytes", int((bytes+threads-1)/threads), g.C, int(bytes))}
}

func matMulCUDA(o matMul, c *cuda.Call) ([]cuda.Command, error) {
	return o.commands(c.In[0], c.In[1], c.Out[0], 0)
}

// matMulLikeCUDA is the product: the library's order of sums is its own.
func matMulLikeCUDA(o matMulLike, c *cuda.Call) ([]cuda.Command, error) {
	return o.MatMul.commands(c.In[0], c.In[1], c.Out[0], 0)
}

// commands are those of the product, which is added to out if beta is 1.
func (o matMul) commands(a, b, out cuda.Operand, beta float32) ([]cuda.Command, error) {
	p, err := o.geometry(inF32([]graph.Type{a.Type, b.Type}))
	if err != nil {
		return nil, err
	}
	if p.sharedB && !o.TransA && !o.Reduce { // one tall product instead of many
		p.m, p.batch = p.m*p.batch, 1
	}
	g := cuda.Gemm{A: a.Addr, B: b.Addr, C: out.Addr, TransA: o.TransA, TransB: o.TransB,
		M: p.m, N: p.n, K: p.k, LdA: a.Type.Size(-1), LdB: b.Type.Size(-1), LdC: p.n,
		Batch: p.batch, StrideA: int64(p.m * p.k), StrideB: int64(p.k * p.n),
		StrideC: int64(p.m * p.n), Beta: beta,
		HalfIn: a.Type.DType == graph.BF16, HalfOut: out.Type.DType == graph.BF16}
	if o.Reduce {
		return o.summed(g), nil
	}
	if p.sharedA {
		g.StrideA = 0
	}
	if p.sharedB {
		g.StrideB = 0
	}
	return multiplied(g), nil
}

// summed adds up a batch of products.
func (o matMul) summed(g cuda.Gemm) []cuda.Command {
	batch := g.Batch
	g.Batch = 1
	if o.TransA && !o.TransB || batch == 0 { // the batches are one long inner dimension
		g.K *= batch
		return multiplied(g)
	}
	var list []cuda.Command
	size := uint64(4)
	if g.HalfIn {
		size = 2
	}
	for range batch {
		list = append(list, multiplied(g)...)
		g.A, g.B = g.A+size*uint64(g.StrideA), g.B+size*uint64(g.StrideB)
		g.Beta = 1
	}
	return list
}

// matMulChainCUDA is the product, and the chain over it in place.
func matMulChainCUDA(o matMulChain, c *cuda.Call) ([]cuda.Command, error) {
	list, err := o.MatMul.commands(c.In[0], c.In[1], c.Out[0], 0)
	if err != nil {
		return nil, err
	}
	launch, err := o.Chain.launch(append([]cuda.Operand{c.Out[0]}, c.In[2:]...), c.Out[0])
	return append(list, launch), err
}

// copiedWhole copies a value of as many elements.
func copiedWhole(to, from cuda.Operand) cuda.Command {
	return cudaWalk{axes: []strided{{elems(from), each{1, 1}}}}.copied(to, from)
}

func matMulPartCUDA(o matMulPart, c *cuda.Call) ([]cuda.Command, error) {
	if !o.Add {
		return o.MatMul.commands(c.In[0], c.In[1], c.Out[0], 0)
	}
	var list []cuda.Command
	if c.In[0].Addr != c.Out[0].Addr {
		list = append(list, copiedWhole(c.Out[0], c.In[0]))
	}
	products, err := o.MatMul.commands(c.In[1], c.In[2], c.Out[0], 1)
	return append(list, products...), err
}

// matMulBroadcastCUDA multiplies runs of batches along which the matrices are equally far
// apart.
func matMulBroadcastCUDA(o matMulBroadcast, c *cuda.Call) ([]cuda.Command, error) {
	a, b, out := c.In[0], c.In[1], c.Out[0]
	m, k := flip(a.Type, o.TransA)
	n := out.Type.Size(-1)
	axes := mergeAxes(batchAxes(out.Type), []graph.Type{batchAxes(a.Type), batchAxes(b.Type)})
	last, outer := axes[len(axes)-1], axes[:len(axes)-1]
	runs := cudaWalk{axes: outer}.elements()
	var list []cuda.Command
	for run := range runs {
		from, rest := each{}, run
		for i := len(outer) - 1; i >= 0; i-- {
			at := rest % outer[i].size
			rest /= outer[i].size
			from[0], from[1] = from[0]+at*outer[i].stride[0], from[1]+at*outer[i].stride[1]
		}
		list = append(list, multiplied(cuda.Gemm{
			A: a.Addr + 4*uint64(from[0]*m*k), B: b.Addr + 4*uint64(from[1]*k*n),
			C:      out.Addr + 4*uint64(run*last.size*m*n),
			TransA: o.TransA, TransB: o.TransB, M: m, N: n, K: k, LdA: a.Type.Size(-1),
			LdB: b.Type.Size(-1), LdC: n, Batch: last.size, StrideC: int64(m * n),
			StrideA: int64(last.stride[0] * m * k), StrideB: int64(last.stride[1] * k * n),
		})...)
	}
	return list, nil
}

func init() {
	cuda.Register(matMulCUDA, nil)
	cuda.Register(matMulLikeCUDA, nil)
	cuda.Register(matMulChainCUDA, nil)
	cuda.Register(matMulPartCUDA, nil)
	cuda.Register(matMulBroadcastCUDA, nil)
}

func matMulNumbersCUDA(o matMulNumbers, c *cuda.Call) ([]cuda.Command, error) {
	m, k := flip(c.In[0].Type, o.TransA)
	n, a, b := c.Out[0].Type.Size(-1), c.In[0].Type, c.In[1].Type
	w := broadcastWalk(batchAxes(c.Out[0].Type), []graph.Type{batchAxes(a), batchAxes(b)})
	return only(overElements("multiply_numbers", elems(c.Out[0]), w.args(c.Out[0], c.In[0], c.In[1],
		m, n, k, o.TransA, o.TransB, int32(a.DType), int32(b.DType))...))
}

func init() { cuda.Register(matMulNumbersCUDA, nil) }
