package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// opening is when an update happens: the count of executions, an address or 0, and of how many
// it must be a multiple. Only the device knows the count, so it is an argument of kernels.
type opening []any

// always is the opening of updates that always happen.
func always() opening { return opening{uint64(0), 1} }

// args are the arguments of a kernel that looks at the gate.
func (g opening) args(more ...any) []any { return append(g[:2:2], more...) }

// gated is an update that can be behind a gate.
type gatedUpdate interface {
	update(c *cuda.Call, gate opening) ([]cuda.Command, error)
}

func updateCUDA[O gatedUpdate](o O, c *cuda.Call) ([]cuda.Command, error) {
	return o.update(c, always())
}

func everyCUDA(o every, c *cuda.Call) ([]cuda.Command, error) {
	inner, ok := o.Op.(gatedUpdate)
	if !ok {
		return nil, fmt.Errorf("no cuda kernel for %s behind a gate", o.Op.Name())
	}
	call, last := *c, len(c.In)-1
	call.In = c.In[:last]
	return inner.update(&call, opening{c.In[last], o.N})
}

func everyScratch(o every, in, out []graph.Type) int64 {
	return cuda.ScratchOf(o.Op, in[:len(in)-1], out)
}

func (sgd) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("sgd", n, gate.args(c.In[0], c.In[1], c.In[2], n)...))
}

func (o momentum) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("momentum", n, gate.args(c.In[0], c.In[1], c.In[2], c.In[3], n, o.Mu,
		false)...))
}

func (o nesterov) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("momentum", n, gate.args(c.In[0], c.In[1], c.In[2], c.In[3], n, o.Mu,
		true)...))
}

func (o lion) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("lion", n, gate.args(c.In[0], c.In[1], c.In[2], c.In[3], n, o.Beta1,
		o.Beta2, o.Decay)...))
}

func (o adam) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	return o.decaying(c, gate, 0)
}

func (o adamW) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	return o.decaying(c, gate, o.Decay)
}

// resident is as many blocks as the largest GPUs have at once, about: those of updates whose blocks
// begin with powers in 64 bits, which are the same for all elements.
const resident = 1 << 10

// overShares launches threads that have several of n elements each, if these are many.
func overShares(name string, n int, list ...any) cuda.Command {
	return launched(name, min((n+threads-1)/threads, resident), list...)
}

func (o adam) decaying(c *cuda.Call, gate opening, decay float32) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overShares("adam", n, gate.args(c.In[0], c.In[1], c.In[2], c.In[3], c.In[4],
		c.In[5], n, o.Beta1, o.Beta2, o.Eps, decay)...))
}

func (o adamW16) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overShares("adam_bf16", n, o.args(c, gate)...))
}

func (o adamW8) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overShares("adam_8bit", n, o.args(c, gate)...))
}

// args are those of the kernels of small moments.
func (o smallAdamW) args(c *cuda.Call, gate opening) []any {
	list := o.Win.walk().args(gate.args()...)
	for _, operand := range c.In {
		list = append(list, operand)
	}
	halves := 0
	if c.In[0].Type.DType == graph.BF16 {
		halves = 1
	}
	if c.In[len(c.In)-3].Type.DType == graph.BF16 {
		halves += 2
	}
	return append(list, elems(c.In[0]), o.Beta1, o.Beta2, o.Eps, o.Decay, int32(halves), o.Salt)
}

func accumulateCUDA(_ accumulate, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("accumulate", n, always().args(c.In[0], c.In[1], n)...))
}

func accumulateUntilCUDA(o accumulateUntil, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("accumulate", n, opening{c.In[2], o.Every}.args(c.In[0], c.In[1],
		n)...))
}

func assignCUDA(_ assign, c *cuda.Call) ([]cuda.Command, error) {
	return only(copiedWhole(c.In[0], c.In[1]))
}

func runningAverageCUDA(o runningAverage, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("running_average", n, c.In[0], c.In[1], n, o.Momentum))
}

func init() {
	cuda.Register(updateCUDA[sgd], nil)
	cuda.Register(updateCUDA[momentum], nil)
	cuda.Register(updateCUDA[nesterov], nil)
	cuda.Register(updateCUDA[lion], nil)
	cuda.Register(updateCUDA[adam], nil)
	cuda.Register(updateCUDA[adamW], nil)
	cuda.Register(updateCUDA[adamW16], nil)
	cuda.Register(updateCUDA[adamW8], nil)
	cuda.Register(everyCUDA, everyScratch)
	cuda.Register(accumulateCUDA, nil)
	cuda.Register(accumulateUntilCUDA, nil)
	cuda.Register(assignCUDA, nil)
	cuda.Register(runningAverageCUDA, nil)
}
