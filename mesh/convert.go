package mesh

import (
	"slices"
	"strconv"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// change is one step of a conversion along axis m of the mesh: from dividing one axis of
// the value to dividing another, where -1 is none, or from terms of a sum, or one place.
type change struct {
	kind        ConversionKind
	m, from, to int
	at          int32 // of a Send: 1 + the process that the value comes to
	// some are the rows that are exchanged by a Join or a Scatter among processes; nil: all.
	some *routed
}

// kinds are the changes that there are, by which comes first: what makes pieces smaller does,
// and what joins them comes last.
var kinds = [...]ConversionKind{Slice, Scatter, Move, Reduce, Send, Copy, Join}

// next is the first change on the way from one form to another. Where there are two processes
// the other one is all others.
func (p *Propagation) next(have, want spread) (c change, ok bool) {
	best := len(kinds)
	for m := range maxAxes {
		x := change{m: m, from: slices.Index(have.axis, int8(m+1)),
			to: slices.Index(want.axis, int8(m+1))}
		free := x.to >= 0 && have.axis[x.to] == 0
		switch {
		case have.place[m] > 0 && have.place[m] != want.place[m]:
			if x.kind, x.to = Copy, -1; want.place[m] > 0 && p.spec.Mesh.Cluster[m] > 2 {
				x.kind, x.at = Send, want.place[m]
			}
		case have.part[m] && !want.part[m]:
			if x.kind = Reduce; free {
				x.kind = Scatter
			} else if x.to >= 0 {
				continue // another one must leave first
			}
		case x.from == x.to || x.from < 0 && !free:
			continue
		case x.from < 0:
			x.kind = Slice
		case free:
			x.kind = Move
		default:
			x.kind, x.to = Join, -1
		}
		if k := slices.Index(kinds[:], x.kind); k < best {
			best, c = k, x
		}
	}
	return c, best < len(kinds)
}

// apply is the form after a change.
func (c change) apply(have spread) spread {
	have.axis = slices.Clone(have.axis)
	if c.from >= 0 {
		have.axis[c.from] = 0
	}
	if c.to >= 0 {
		have.axis[c.to] = int8(c.m + 1)
	}
	have.place[c.m], have.part[c.m] = c.at, false
	return have
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

// spreads is among how many processes a value is divided, and how many there are for each that
// has it where it is at one place along other axes than m.
func (p *Propagation) spreads(m int, have spread) (divided, placed int64) {
	divided, placed = 1, 1
	in := used(have.axis)
	for k, n := range p.spec.Mesh.Cluster {
		if in[k] {
			divided *= int64(n)
		} else if k != m && have.place[k] > 0 {
			placed *= int64(n)
		}
	}
	return divided, placed
}

// wire is how many bytes a process sends for a change of a value, by which changes are chosen:
// on a ring, the mean over the processes. Those that lie elsewhere along other axes than a
// value that is at one place send nothing.
func (p *Propagation) wire(c change, t graph.Type, have spread) int64 {
	parts := int64(p.spec.Mesh.Cluster[c.m])
	if parts < 2 {
		return 0
	}
	divided, placed := p.spreads(c.m, have)
	shares := divided * placed
	others := parts - 1
	if c.some != nil {
		others = c.some.most(parts)
	}
	switch bytes := t.Bytes(); c.kind {
	case Join:
		return bytes * others / shares
	case Reduce:
		return 2 * bytes * (parts - 1) / (parts * shares)
	case Move, Scatter, Copy:
		return bytes * others / (parts * shares)
	case Send:
		return bytes / (parts * shares)
	}
	return 0
}

// cost is what a conversion sends, and what it copies, in bytes.
func (p *Propagation) cost(t graph.Type, have, want spread) (sent, copied int64) {
	for {
		c, ok := p.next(have, want)
		if !ok {
			return sent, copied
		}
		sent, copied = sent+p.wire(c, t, have), copied+c.bytes(t)
		have = c.apply(have)
	}
}

// convert is a value in the wanted form: one that there is, or one made of that from which
// the fewest bytes are sent, and then copied. What is made on the way is kept for others. A
// value that is wanted at one place may be at others too.
func (l *lowerer) convert(v graph.Value, want spread) *form {
	if l.err != nil {
		return nil
	}
	best, _, _ := l.nearest(v, want)
	if best == nil {
		return nil
	}
	for {
		c, ok := l.next(best.spread, want)
		if !ok || l.err != nil {
			l.use(best)
			return best
		}
		best = l.change(v, best, c)
	}
}

// nearest is the form of a value from which the fewest bytes are sent to make the wanted one,
// and then copied, and how many; nil if there is none.
func (l *lowerer) nearest(v graph.Value, want spread) (best *form, sent, copied int64) {
	for _, f := range l.forms[l.number(v)] {
		if want.parted() && f.part != want.part {
			continue
		}
		if s, c := l.cost(v.Type(), f.spread, want); best == nil || s < sent ||
			s == sent && c < copied {
			best, sent, copied = f, s, c
		}
	}
	return best, sent, copied
}

// change makes another form of a value by one change.
func (l *lowerer) change(v graph.Value, f *form, c change) *form {
	out := &form{spread: c.apply(f.spread), needs: f.needs}
	for _, other := range l.forms[l.number(v)] {
		if other.equal(out.spread) {
			return other
		}
	}
	l.enter(v, out)
	if c.kind == Slice {
		out.routed = f.routed
	} else if f.rowwise(v.Type(), c) {
		c.some = f.routed
	}
	if parts := l.spec.Mesh.Cluster[c.m]; parts > 1 && c.kind != Slice {
		l.exchange(v, f, out, c)
		return out
	}
	l.note(v, c.kind, c.m, c.bytes(v.Type()), 0)
	if !l.here(f.place) {
		return out
	}
	axes := used(out.axis)
	l.each(axes, func(k coords) {
		suffix := l.suffix(axes, k)
		if c.from < 0 {
			out.put(l, k, l.block(v, c, l.global(c.m, k[c.m]), l.spec.Mesh.Size(c.m),
				f.at(l, k), suffix))
			return
		}
		var parts []graph.Value
		from := k
		for from[c.m] = range l.spec.Mesh.Device[c.m] {
			x := f.at(l, from)
			if c.to >= 0 {
				x = l.block(v, c, k[c.m], l.spec.Mesh.Size(c.m), x, suffix)
			}
			parts = append(parts, x)
		}
		out.put(l, k, l.join(v, c.from, suffix, parts))
	})
	return out
}

// join joins pieces of a value along an axis; one is what it is.
func (l *lowerer) join(v graph.Value, axis int, suffix string, parts []graph.Value) graph.Value {
	if len(parts) == 1 {
		return parts[0]
	}
	return l.make(title(v)+"/join"+suffix, l.phase(v), ops.JoinedAlong(axis), parts...)
}

// block is one of so many equal blocks of a piece along the axis that a change comes to.
func (l *lowerer) block(v graph.Value, c change, i, parts int, x graph.Value,
	suffix string) graph.Value {
	if l.err != nil {
		return graph.Value{}
	}
	if parts == 1 {
		return x
	}
	size := x.Type().Size(c.to) / parts
	op := ops.Sliced(c.to, i*size, (i+1)*size)
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
func (l *lowerer) note(v graph.Value, kind ConversionKind, m int, copied, sent int64) {
	l.res.Conversions = append(l.res.Conversions, Conversion{Value: v.String(), Type: v.Type(),
		Kind: kind, Axis: l.spec.Mesh.Axes[m], Bytes: copied, Wire: sent, For: l.now.Name})
}
