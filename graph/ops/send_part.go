package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// SendPart is [Send] of x, f32[a …], as this worker's part of a whole: Await gives all
// parts, by rank, one after the other, f32[parts·a …], of a scalar f32[parts]. parts is
// how many workers there are. Where no exchange happens all parts are x.
func SendPart(x graph.Value, name string, parts int, gate ...Gate) (pending graph.Value) {
	if !x.Valid() {
		return graph.Value{}
	}
	op, in := sendPart{Label: name, Parts: parts}, []graph.Value{x}
	for _, g := range gate {
		if g.Every != 0 {
			op.Every, in = g.Every, append(in, g.Step)
		}
	}
	x.Graph().InPhase(graph.Update, func() { pending = apply(op, in...) })
	return pending
}

type sendPart struct {
	Label string
	Parts int
	Every int
}

func (sendPart) Name() string { return "send-part" }

// Exchange is what is sent.
func (o sendPart) Exchange() graph.Exchange {
	return graph.Exchange{Name: o.Label, How: graph.How{Fold: graph.Gather}, Every: o.Every,
		Parts: o.Parts}
}

func (o sendPart) Infer(in []graph.Type) ([]graph.Type, error) {
	if _, err := (send{Label: o.Label, Every: o.Every}).Infer(in); err != nil {
		return nil, err
	}
	if o.Parts < 1 {
		return nil, fmt.Errorf("one of %d parts, want 1 or more", o.Parts)
	}
	t, err := o.Exchange().Pending(in[0])
	if err != nil {
		return nil, err
	}
	return []graph.Type{t}, nil
}

// Cost is that of a copy to each part.
func (sendPart) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

func (sendPart) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func sendPartCPU(o sendPart, c *kernel.Call) error { return givenCPU(o.Exchange(), c) }

func init() {
	kernel.Register(kernel.CPU, sendPartCPU)
	scalar := tensor.Of(graph.F32)
	register(
		Sample{Op: sendPart{Label: "w", Parts: 3},
			In: []graph.Type{tensor.Of(graph.F32, 5, 17)}, NoGrad: []int{0}},
		Sample{Op: sendPart{Label: "w", Parts: 2, Every: 2},
			In: []graph.Type{scalar, scalar}, NoGrad: []int{0, 1}})
}
