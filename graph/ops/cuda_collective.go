package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// sentCUDA gives the operand on, of a gather to every part.
func sentCUDA(o sent, c *cuda.Call) ([]cuda.Command, error) {
	if o.How.Fold == graph.Gather {
		return sendPartCUDA(sendPart{Parts: o.Parts}, c)
	}
	return passCUDA(o, c)
}

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
