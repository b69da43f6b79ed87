package nn

import (
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Adapters have linear layers add a product of two small matrices to their own, and those small
// ones trained alone: LoRA (Hu et al. 2021, section 4.1). A layer of weight W has
// x·W + Alpha/Rank·(x·Aᵀ)·Bᵀ, with "lora_A/weight" f32[rank in], drawn from ±1/√in, and
// "lora_B/weight" f32[out rank], which starts at zero: so the network starts as it was. Names and
// axes are those of PEFT, the library of Hugging Face.
type Adapters struct {
	Rank    int
	Alpha   float32 // 0 means Rank
	Dropout float32 // of what A multiplies
	// Targets are the last parts of the scopes of the layers that have adapters: "q_proj", or
	// "self_attn/q_proj". None means all linear layers.
	Targets []string
}

// Scale is by what the products of adapters are multiplied.
func (a Adapters) Scale() float32 {
	if a.Alpha == 0 {
		return 1
	}
	return a.Alpha / float32(a.Rank)
}

// Validate reports the first number that no adapters can have.
func (a Adapters) Validate() error {
	switch {
	case a.Rank < 1 || a.Rank > maxRank:
		return errorf("adapters of rank %d: want 1 to %d", a.Rank, maxRank)
	case !(a.Alpha >= 0) || math.IsInf(float64(a.Alpha), 0):
		return errorf("adapters with alpha %v: want a positive number", a.Alpha)
	case !(a.Dropout >= 0 && a.Dropout < 1):
		return errorf("adapters with dropout %v: want a number from 0, below 1", a.Dropout)
	case slices.Contains(a.Targets, ""):
		return errorf("adapters of a layer without a name")
	}
	return nil
}

const maxRank = 1 << 16

// The scopes of an adapter's matrices, within their layer's.
const (
	adapterA = "lora_A"
	adapterB = "lora_B"
)

// IsAdapter reports whether a parameter of this name is of an adapter.
func IsAdapter(parameter string) bool {
	return strings.HasSuffix(parameter, "/"+adapterA+"/weight") ||
		strings.HasSuffix(parameter, "/"+adapterB+"/weight")
}

// AdapterOf are the parameters of a layer's adapter, by the layer's scope.
func AdapterOf(scope string) (a, b string) {
	return scope + "/" + adapterA + "/weight", scope + "/" + adapterB + "/weight"
}

// adapt adds the adapter of the place's layer, if it has one, to its product y of x.
func adapt(c *Ctx, x, y graph.Value, in, out int) graph.Value {
	m := c.model
	scope := strings.TrimSuffix(c.params, "/")
	if m.layers == nil {
		m.layers = map[string]bool{}
	}
	m.layers[scope] = true
	a := m.Adapters
	if a == nil || !a.of(scope) || !x.Valid() || !y.Valid() {
		return y
	}
	if err := a.Validate(); err != nil {
		m.Graph.Fail(err)
		return graph.Value{}
	}
	left := c.Of(adapterA).Param("weight", Uniform(1/math.Sqrt(float64(in))), a.Rank, in)
	right := c.Of(adapterB).Param("weight", Zeros, out, a.Rank)
	x = Dropout(c, x, a.Dropout, DropoutOptions{Name: "lora_dropout"})
	more := ops.MatMulT(ops.MatMulT(x, left, false, true), right, false, true)
	return ops.Add(y, ops.Scale(more, a.Scale()))
}

// of reports whether the layer of a scope has an adapter.
func (a Adapters) of(scope string) bool {
	return len(a.Targets) == 0 || slices.ContainsFunc(a.Targets, func(target string) bool {
		return endsIn(scope, target)
	})
}

// endsIn reports whether a scope is another, or ends in it.
func endsIn(scope, last string) bool {
	return scope == last || strings.HasSuffix(scope, "/"+last)
}

// adapted demands that there is a layer for every target, and any at all.
func (m *Model) adapted() error {
	if m.Adapters == nil {
		return nil
	}
	for _, target := range m.Adapters.Targets {
		found := false
		for scope := range m.layers {
			found = found || endsIn(scope, target)
		}
		if !found {
			return errorf("no linear layer is called %q, which is to have an adapter: there are %s",
				target, m.layerNames())
		}
	}
	if len(m.layers) == 0 {
		return errorf("the model has no linear layers to have adapters")
	}
	return nil
}

// layerNames are the last names of the model's linear layers.
func (m *Model) layerNames() string {
	var names []string
	for scope := range m.layers {
		names = append(names, scope[strings.LastIndexByte(scope, '/')+1:])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > mostNamed {
		names = append(names[:mostNamed], "…")
	}
	return strings.Join(names, ", ")
}
