package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// StopGradient is x as a constant: no gradient passes. It costs nothing.
func StopGradient(x graph.Value) graph.Value { return apply(stop{}, x) }

// Stops reports whether an operation is that of StopGradient.
func Stops(op graph.Op) bool { return op == stop{} }

type stop struct{}

func (stop) Name() string { return "stop-gradient" }

func (stop) Infer(in []graph.Type) ([]graph.Type, error) { return in, arity(in, 1) }

func (stop) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: the same bytes.
func (stop) View(_, _ []graph.Type) []int64 { return []int64{0} }

func (stop) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func init() {
	register(Sample{Op: stop{}, In: []graph.Type{tensor.Of(graph.F32, 3, 5)}, NoGrad: []int{0}})
}
