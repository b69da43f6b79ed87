package mesh

import (
	"slices"
	"strconv"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// change is one step of a conversion: along axis m of the mesh, from dividing one axis of
// the value to dividing another; -1 is none.
type change struct{ m, from, to int }

// next is the first change on the way from one form to another. What makes pieces smaller
// comes first, and what joins them last.
func next(have, want []int8) (c change, ok bool) {
	best := 0
	for m := range maxAxes {
		x := change{m, slices.Index(have, int8(m+1)), slices.Index(want, int8(m+1))}
		if x.from == x.to {
			continue
		}
		free := x.to >= 0 && have[x.to] == 0
		rank := 1
		switch {
		case free && x.from < 0:
			rank = 3
		case free:
			rank = 2
		case x.from < 0:
			continue // another one must leave first
		default:
			x.to = -1
		}
		if rank > best {
			best, c = rank, x
		}
	}
	return c, best > 0
}

// apply is the form after a change.
func (c change) apply(have []int8) []int8 {
	out := slices.Clone(have)
	if c.from >= 0 {
		out[c.from] = 0
	}
	if c.to >= 0 {
		out[c.to] = int8(c.m + 1)
	}
	return out
}

// kind is what a change is called.
func (c change) kind() ConversionKind {
	switch {
	case c.from < 0:
		return Slice
	case c.to < 0:
		return Join
	}
	return Move
}

// bytes is how much a change of a value copies. Slices along the first axis are views.
func (c change) bytes(t graph.Type) (n int64) {
	if c.from >= 0 {
		n += t.Bytes()
	}
	if c.to > 0 {
		n += t.Bytes()
	}
	return n
}

// cost is how many bytes a conversion copies.
func cost(t graph.Type, have, want []int8) (n int64) {
	for {
		c, ok := next(have, want)
		if !ok {
			return n
		}
		n += c.bytes(t)
		have = c.apply(have)
	}
}

// convert is a value in the wanted form: one that there is, or one made of that from which
// the fewest bytes are copied. What is made on the way is kept for others.
func (l *lowerer) convert(v graph.Value, want []int8) *form {
	forms := l.forms[int(l.first[v.Node.ID])+v.Index]
	if l.err != nil || len(forms) == 0 {
		return nil
	}
	var best *form
	var least int64
	for _, f := range forms {
		if slices.Equal(f.axis, want) {
			return f
		}
		if n := cost(v.Type(), f.axis, want); best == nil || n < least {
			best, least = f, n
		}
	}
	for {
		c, ok := next(best.axis, want)
		if !ok || l.err != nil {
			return best
		}
		best = l.change(v, best, c)
	}
}

// change makes another form of a value by one change.
func (l *lowerer) change(v graph.Value, f *form, c change) *form {
	out := &form{axis: c.apply(f.axis)}
	for _, other := range l.forms[int(l.first[v.Node.ID])+v.Index] {
		if slices.Equal(other.axis, out.axis) {
			return other
		}
	}
	l.note(v, c.kind(), c.m, c.bytes(v.Type()))
	axes := used(out.axis)
	l.each(axes, func(k coords) {
		suffix := l.suffix(axes, k)
		if c.from < 0 {
			out.put(l, k, l.block(v, c, k, f.at(l, k), suffix))
			return
		}
		var parts []graph.Value
		from := k
		for from[c.m] = range l.spec.Mesh.Device[c.m] {
			x := f.at(l, from)
			if c.to >= 0 {
				x = l.block(v, c, k, x, suffix)
			}
			parts = append(parts, x)
		}
		out.put(l, k, l.make(title(v)+"/join"+suffix, l.phase(v), ops.JoinedAlong(c.from),
			parts...))
	})
	l.enter(v, out)
	return out
}

// block is the part of a piece that belongs to a coordinate along the axis of a change.
func (l *lowerer) block(v graph.Value, c change, k coords, x graph.Value,
	suffix string) graph.Value {
	if l.err != nil {
		return graph.Value{}
	}
	size := x.Type().Size(c.to) / l.spec.Mesh.Device[c.m]
	op := ops.Sliced(c.to, k[c.m]*size, (k[c.m]+1)*size)
	return l.make(title(v)+"/slice"+suffix, l.phase(v), op, x)
}

// title is what nodes are named after that are made of a value.
func title(v graph.Value) string {
	if v.Index == 0 {
		return v.Node.Name
	}
	return v.Node.Name + "/" + strconv.Itoa(v.Index)
}

// phase is that of a conversion of a value: its own, or that of what wants a leaf.
func (l *lowerer) phase(v graph.Value) graph.Phase {
	if v.Node.Leaf() {
		return l.now.Phase
	}
	return v.Node.Phase
}

// note counts a conversion.
func (l *lowerer) note(v graph.Value, kind ConversionKind, m int, bytes int64) {
	l.res.Conversions = append(l.res.Conversions, Conversion{Value: v.String(), Type: v.Type(),
		Kind: kind, Axis: l.spec.Mesh.Axes[m], Bytes: bytes, For: l.now.Name})
}
