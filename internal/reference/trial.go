package reference

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Trial executes a step of a graph twice and returns all that it leaves behind: both times
// the fetches, and then the variables. Leaves have values that are made of where they are and
// of an element's number; those of whole numbers are below ids. It is for rewritings, whose
// graphs must come to the same.
func Trial(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID, ids int32) ([]byte,
	error) {
	roots := slices.Clone(updates)
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	live, leaves := g.Ancestors(roots), slices.Concat(g.Inputs(), g.Variables())
	for _, n := range leaves {
		live[n.ID] = true
	}
	m, err := New(g, live, nil)
	if err != nil {
		return nil, err
	}
	for k, n := range leaves {
		m.fill(n.Value(0), k, ids)
	}
	var out []byte
	for range 2 {
		if err := m.Step(); err != nil {
			return nil, err
		}
		for _, v := range fetches {
			out = append(out, m.Value(v).Data...)
		}
	}
	for _, n := range g.Variables() {
		out = append(out, m.Value(n.Value(0)).Data...)
	}
	return out, nil
}

// fill gives leaf number k its value.
func (m *Machine) fill(v graph.Value, k int, ids int32) {
	x := m.Value(v)
	rounded := tensor.New(tensor.Of(graph.F32, x.Type.Elems()))
	for i := range x.Type.Elems() {
		number := float64(float64((i*37+k*11)%23)/8) - 1
		if x.Type.Rank() == 0 {
			number = 1
		}
		switch x.Type.DType {
		case graph.I32:
			x.I32()[i] = int32(7*i) % ids
		case graph.F64:
			x.F64()[i] = number
		case graph.U8:
			x.Data[i] = uint8(7*i + k)
		default:
			rounded.F32()[i] = float32(number)
			tensor.Convert(x, rounded, i, i+1)
		}
	}
}
