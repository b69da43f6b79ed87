package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// spread is where a value of the first graph is. It is the same for all processes, whichever
// of its pieces are on one of them, and all that is decided depends on it alone.
type spread struct {
	axis  []int8         // as Sharding.Axis
	place [maxAxes]int32 // by axis of the mesh: 1 + the only process along it that has it
	part  [maxAxes]bool  // every process along the axis has a term of a sum, not added up yet
}

// newSpread is that of a value which every process has, whole.
func newSpread(rank int) spread { return spread{axis: make([]int8, rank)} }

func (s spread) equal(o spread) bool {
	return slices.Equal(s.axis, o.axis) && s.place == o.place && s.part == o.part
}

// parted reports whether there are sums that have not been added up.
func (s spread) parted() bool { return s.part != [maxAxes]bool{} }

// form is a value of the first graph in pieces: divided along some axes of the mesh, and
// the same at all coordinates of the others.
type form struct {
	spread
	pieces []graph.Value // by index of the coordinates along axes that divide it
	needs  []int         // exchanges that it was made by
	rows   *packing      // of terms of a sum: which rows are in which
	routed *routed       // of terms of a sum: which rows are zero in which
}

// index is where the piece at some coordinates is.
func (f *form) index(l *lowerer, k coords) int {
	i := 0
	for _, a := range f.axis {
		if a > 0 {
			i += k[a-1] * l.strides[a-1]
		}
	}
	return i
}

// at is the piece at some coordinates, if this process has it.
func (f *form) at(l *lowerer, k coords) graph.Value {
	if f == nil || len(f.pieces) == 0 {
		return graph.Value{}
	}
	return f.pieces[f.index(l, k)]
}

// put enters the piece at some coordinates.
func (f *form) put(l *lowerer, k coords, v graph.Value) {
	i := f.index(l, k)
	for len(f.pieces) <= i {
		f.pieces = append(f.pieces, graph.Value{})
	}
	f.pieces[i] = v
}

// number is where a value is in lists by value.
func (p *Propagation) number(v graph.Value) int { return int(p.first[v.Node.ID]) + v.Index }

// processes are, by axis of the mesh, 1 + the process that has a place, of 1 + that place; 0
// along axes with one process.
func (p *Propagation) processes(at [maxAxes]int32) (place [maxAxes]int32) {
	for m, c := range p.spec.Mesh.Cluster {
		if at[m] > 0 && c > 1 {
			place[m] = (at[m]-1)/int32(p.spec.Mesh.Device[m]) + 1
		}
	}
	return place
}

// here reports whether this process is where something is.
func (l *lowerer) here(place [maxAxes]int32) bool {
	for m, c := range place {
		if c > 0 && int(c-1) != l.process[m] {
			return false
		}
	}
	return true
}

// natural is the form in which a value was computed.
func (l *lowerer) natural(v graph.Value) *form {
	if forms := l.forms[l.number(v)]; len(forms) > 0 {
		return forms[0]
	}
	return &form{spread: newSpread(v.Type().Rank())} // after an error
}
