package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// AddTo is the application that adds a product, or an embedding's gradient, to a sum,
// in the sum's memory, where c is the addition, v one of its operands, and p what makes
// v. If c is a product and the addition in one, v is no value, and p is not looked at.
// The first operand of what is returned is the sum. ok is false if there is no such
// operation with the bits of the two.
func AddTo(p, c Application, v graph.Value) (added Application, ok bool) {
	var sum graph.Value
	switch o := c.Op.(type) {
	case binary:
		i := slices.Index(c.In, v)
		if o.Kind != add || i < 0 {
			return added, false
		}
		sum = c.In[1-i]
	case matMulChain:
		if v.Valid() || o.Chain.N != 1 || o.Chain.Operands != 2 ||
			o.Chain.Code[0].Op != elementwise(binary{add}) {
			return added, false
		}
		p, sum = Application{o.MatMul, c.In[:2]}, c.In[2]
	default:
		return added, false
	}
	op, ok := adds(p)
	if !ok || !sum.Type().Equal(p.Type()) {
		return added, false
	}
	return Application{op, append([]graph.Value{sum}, p.In...)}, true
}

// adds is the operation that adds what another makes to a sum, its first operand.
func adds(p Application) (graph.Op, bool) {
	switch o := p.Op.(type) {
	case matMul:
		return matMulPart{MatMul: o, Add: true}, o.once(p.In[0].Type(), p.In[1].Type())
	case embeddingGrad:
		return embeddingAdd{o}, true
	}
	return nil, false
}

// once reports whether a product of these operands visits its result once.
func (o matMul) once(a, b graph.Type) bool {
	p, err := o.geometry([]graph.Type{a, b})
	if err != nil {
		return false
	}
	x := gemm.Product{M: p.m, N: p.n, K: p.k}
	x.A.Trans, x.B.Trans = o.TransA, o.TransB
	switch {
	case o.Reduce && o.TransA && !o.TransB:
		x.K *= p.batch
	case o.Reduce && p.batch > 1:
		return false
	case p.sharedB && !o.TransA:
		x.M *= p.batch
	}
	return x.Once()
}
