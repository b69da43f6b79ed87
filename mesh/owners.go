package mesh

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
)

// Owned is a block of a variable, and the processes that have it: a variable of each one's
// graph, of the piece's name.
type Owned struct {
	Piece
	Ranks []int // ascending
}

// Owners are the blocks that a variable is in, in row-major order of their coordinates, which
// make it up; the only one of a variable that is whole has no cuts, and its name. Every
// process finds the same. The zero list is no variable's of the first graph.
func (p *Propagation) Owners(variable string) []Owned {
	i := slices.IndexFunc(p.graph.Nodes(), func(n *graph.Node) bool {
		return n.Kind == graph.KindVariable && n.Name == variable
	})
	if i < 0 {
		return nil
	}
	return p.owners(p.graph.Node(graph.NodeID(i)))
}

// Apart are the variables of which some process has not all blocks, by name: see
// [Propagation.Owners].
func (p *Propagation) Apart() map[string][]Owned {
	n := p.spec.Mesh.Processes()
	if n == 1 {
		return nil
	}
	apart := map[string][]Owned{}
	for _, v := range p.graph.Variables() {
		list := p.owners(v)
		if slices.ContainsFunc(list, func(o Owned) bool { return len(o.Ranks) < n }) {
			apart[v.Name] = list
		}
	}
	return apart
}

func (p *Propagation) owners(n *graph.Node) (list []Owned) {
	s := newSpread(n.Out[0].Rank())
	if p.live[n.ID] {
		s.axis, s.place = p.Of(n.Value(0)).Axis, p.processes(p.Of(n.Value(0)).At)
	}
	axes := used(s.axis)
	p.everyBlock(axes, func(at coords) {
		o := Owned{Piece: Piece{Name: n.Name}}
		if axes != [maxAxes]bool{} {
			o.Piece = p.piece(n, s.axis, at)
		}
		for rank := range p.spec.Mesh.Processes() {
			if p.has(rank, s, at) {
				o.Ranks = append(o.Ranks, rank)
			}
		}
		list = append(list, o)
	})
	return list
}

// has reports whether a process has the block of a value at some coordinates of the whole
// mesh.
func (p *Propagation) has(rank int, s spread, at coords) bool {
	for m, c := range p.spec.Mesh.coords(rank) {
		if s.place[m] > 0 && int(s.place[m])-1 != c {
			return false
		}
		if slices.Contains(s.axis, int8(m+1)) && at[m]/p.spec.Mesh.Device[m] != c {
			return false
		}
	}
	return true
}

// everyBlock visits the coordinates along axes of the whole mesh, the first one the slowest.
func (p *Propagation) everyBlock(axes [maxAxes]bool, visit func(at coords)) {
	count := 1
	for m := range p.spec.Mesh.Axes {
		if axes[m] {
			count *= p.spec.Mesh.Size(m)
		}
	}
	for i := range count {
		var at coords
		for m := len(p.spec.Mesh.Axes) - 1; m >= 0; m-- {
			if axes[m] {
				at[m] = i % p.spec.Mesh.Size(m)
				i /= p.spec.Mesh.Size(m)
			}
		}
		visit(at)
	}
}

// piece is the block of a variable at some coordinates of the whole mesh.
func (p *Propagation) piece(n *graph.Node, axis []int8, at coords) Piece {
	piece, list := Piece{Cut: make([]graph.Part, len(axis))}, []string(nil)
	for j, a := range axis {
		if a > 0 {
			piece.Cut[j] = graph.Part{N: p.spec.Mesh.Size(int(a - 1)), I: at[a-1]}
		}
	}
	for m, in := range used(axis) {
		if in {
			list = append(list, strconv.Itoa(at[m]))
		}
	}
	piece.Name = p.names.Free(n.Name + "@" + strings.Join(list, "."))
	return piece
}
