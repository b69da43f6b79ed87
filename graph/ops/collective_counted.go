package ops

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// AllToAllV is [AllToAll] of the first rows of blocks, as many as each has: of block i of x,
// [n …] of any type, the first counts[i] rows go to rank i, counts being i32[parts]. Of each
// rank's block that comes in return, by rank, the first came[rank] rows are that rank's, and
// zeros are after them. Only these rows are sent. parts divides n; no count is below 0 or above
// n/parts. Its gradient is an AllToAllV of came rows: rows that did not go have none. Where
// parts is 1 the rows after the counts[0] first are zeros, too.
func AllToAllV(x, counts graph.Value, name, along string, parts int) (y, came graph.Value) {
	if !x.Valid() || !counts.Valid() {
		return graph.Value{}, graph.Value{}
	}
	came = AllToAll(counts, name+"/counts", along, parts)
	how := graph.How{Fold: graph.SwapSome, Along: along}
	return counted(x, counts, came, name, how, parts), came
}

// counted sends rows of x, as many as go, and awaits those that come.
func counted(x, goes, comes graph.Value, name string, how graph.How, parts int) graph.Value {
	if !comes.Valid() {
		return graph.Value{}
	}
	return apply(Awaited(how, parts),
		apply(sentCounted{Label: name, How: how, Parts: parts}, x, goes, comes))
}

// sentCounted hands its first operand to the network, of which as many rows go to each rank, and
// come from there, as the other two say.
type sentCounted struct {
	Label string
	How   graph.How
	Parts int
}

func (o sentCounted) Name() string { return "send-" + o.How.Fold.String() }

// Exchange is what is sent.
func (o sentCounted) Exchange() graph.Exchange {
	return graph.Exchange{Name: o.Label, How: o.How, Parts: o.Parts, Joint: true}
}

func (o sentCounted) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	if err := o.How.Check(); err != nil {
		return nil, err
	}
	switch {
	case o.Label == "":
		return nil, errors.New("what is sent has no name")
	case o.Parts < 1:
		return nil, fmt.Errorf("%d workers, want 1 or more", o.Parts)
	}
	for _, t := range in[1:] {
		if want := tensor.Of(graph.I32, o.Parts); !t.Equal(want) {
			return nil, fmt.Errorf("how many rows go or come is %s, want %s, one for each worker%s",
				t, want, convertible(t, graph.I32))
		}
	}
	t, err := o.Exchange().Pending(in[0])
	return []graph.Type{t}, err
}

// CheckData wants as many rows as a block has, at most.
func (o sentCounted) CheckData(in []tensor.View) error {
	for _, counts := range in[1:] {
		if err := o.Exchange().AloneSome(in[0].Type, nil, known(counts)); err != nil {
			return err
		}
	}
	return nil
}

// Cost is that of a copy; in place there is none.
func (sentCounted) Cost(in, out []graph.Type) graph.Cost { return passed(in[:1], out) }

// InPlace: where x is needed no more, the network has its bytes.
func (sentCounted) InPlace(in, out []graph.Type) []int { return sent{}.InPlace(in, out) }

// VJP sends the gradient of what came to where it came from.
func (o sentCounted) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !dout[0].Valid() {
		return none(3)
	}
	dx := counted(dout[0], n.In[2], n.In[1], gradientOf(n, o.Label), o.How, o.Parts)
	return []graph.Value{dx, {}, {}}
}

// sentCountedCPU is that of a world where nobody exchanges anything.
func sentCountedCPU(o sentCounted, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	copy(c.Out[0].Data, c.In[0].Data)
	return o.Exchange().AloneSome(c.Out[0].Type, c.Out[0].Data, c.In[1].I32())
}

func sentCountedCUDA(o sentCounted, c *cuda.Call) ([]cuda.Command, error) {
	t := c.Out[0].Type
	n := int(t.Bytes())
	return only(overElements("keep_rows", n, c.Out[0], c.In[0], c.In[1], n, n/o.Parts,
		n/max(1, t.Size(0))))
}

func init() {
	kernel.Register(kernel.CPU, sentCountedCPU)
	cuda.Register(sentCountedCUDA, nil)
	cuda.Exact[sentCounted](nil)
	how := graph.How{Fold: graph.SwapSome, Along: "batch"}
	two, three := tensor.Of(graph.I32, 2), tensor.Of(graph.I32, 3)
	register(Sample{Op: sentCounted{"x", how, 3}, NoGrad: []int{0, 1, 2},
		In: []graph.Type{tensor.Of(graph.F32, 6, 17), three, three}})
	register(Sample{Op: sentCounted{"x", how, 2}, NoGrad: []int{0, 1, 2},
		In: []graph.Type{tensor.Of(graph.I32, 6, 2, 5), two, two}})
}
