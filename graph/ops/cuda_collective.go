package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// givenCUDA gives operand 0 on, of a gather, of some rows or all, to every part.
func givenCUDA(x graph.Exchange, c *cuda.Call) ([]cuda.Command, error) {
	if f := x.How.Fold; f == graph.Gather || f == graph.GatherSome {
		return sendPartCUDA(sendPart{Parts: x.Parts}, c)
	}
	return passCUDA(x, c)
}

func sentCUDA(o sent, c *cuda.Call) ([]cuda.Command, error) { return givenCUDA(o.Exchange(), c) }

// arriveCUDA has the first block of the operand, unless it is in place already.
func arriveCUDA(_ arrive, c *cuda.Call) ([]cuda.Command, error) {
	if c.In[0].Addr == c.Out[0].Addr {
		return nil, nil
	}
	w := cudaWalk{axes: []strided{{elems(c.Out[0]), each{1, 1}}}}
	return only(w.copied(c.Out[0], c.In[0]))
}

func init() {
	cuda.Register(sentCUDA, nil)
	cuda.Register(arriveCUDA, nil)
}
