package mesh

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// exchange makes another form of a value by what processes along an axis of the mesh send
// each other. All of them on a line take part, with zeros if one has nothing of the value, so
// that they have the same exchanges in the same order; lines on which nobody has any do not.
// What is exchanged is along the first axis: pieces along another are put there, and back, by
// copies.
func (l *lowerer) exchange(v graph.Value, f, out *form, c change) {
	kind, _ := c.among()
	axes := used(out.axis)
	axes[c.m] = false
	pieces := int64(0)
	l.each(axes, func(coords) { pieces++ })
	sent := l.onWire(c, v.Type(), f.spread, pieces)
	l.note(v, kind, c.m, c.bytes(v.Type()), sent)
	l.each(axes, func(k coords) {
		suffix := l.suffix(axes, k)
		name := l.labels.Take(title(v) + "/" + string(kind) + suffix)
		out.needs = append(slices.Clip(out.needs), len(l.res.exchanges))
		l.res.exchanges = append(l.res.exchanges, exchange{name: name, kind: kind,
			sent: sent / pieces, users: map[graph.NodeID]bool{}, fetches: map[graph.Value]bool{}})
		if !l.online(f, c.m) {
			return
		}
		x := l.given(v, f, c, k, suffix)
		if c.to > 0 {
			x = l.stacked(v, c, x, suffix)
		}
		x = l.swap(v, f, c, name, x)
		if l.err != nil || !l.here(out.place) {
			return
		}
		if c.from > 0 {
			x = l.unstacked(v, c, x, suffix)
		}
		if c.to < 0 {
			out.put(l, k, x)
			return
		}
		for k[c.m] = range l.spec.Mesh.Device[c.m] {
			out.put(l, k, l.block(v, c, k[c.m], l.spec.Mesh.Device[c.m], x,
				l.suffix(used(out.axis), k)))
		}
	})
}

// among is what a change is called among several processes, and what an exchange for it makes
// of values.
func (c change) among() (kind ConversionKind, fold graph.Fold) {
	switch {
	case c.some != nil && c.kind == Join:
		return GatherSome, graph.GatherSome
	case c.some != nil:
		return ScatterSome, graph.ScatterSome
	}
	switch c.kind {
	case Join:
		return Gather, graph.Gather
	case Move:
		return Swap, graph.Swap
	case Scatter:
		return Scatter, graph.Scatter
	case Copy:
		return Copy, graph.Copy
	case Send:
		return Send, graph.Permute
	}
	return Reduce, graph.Sum
}

// given is what this process has of a value at some coordinates, joined along the axis of
// the mesh; zeros if that is nothing.
func (l *lowerer) given(v graph.Value, f *form, c change, k coords, suffix string) graph.Value {
	if !l.here(f.place) {
		axis := slices.Clone(f.axis)
		t := l.typeOf(v.Type(), axis)
		if c.from >= 0 {
			t.Shape[c.from].Size *= l.spec.Mesh.Device[c.m]
		}
		return l.zeros(v, t, suffix)
	}
	if c.from < 0 {
		return f.at(l, k)
	}
	var parts []graph.Value
	for k[c.m] = range l.spec.Mesh.Device[c.m] {
		parts = append(parts, f.at(l, k))
	}
	return l.join(v, c.from, suffix, parts)
}

// zeros stand for a value that is not here.
func (l *lowerer) zeros(v graph.Value, t graph.Type, suffix string) graph.Value {
	name := title(v) + "/absent" + suffix
	if t.DType == graph.F32 {
		return l.make(name, l.phase(v), ops.Filled(t, 0))
	}
	c := l.copy(&graph.Node{Kind: graph.KindConstant, Pos: l.now.Pos, Out: []graph.Type{t},
		Data: tensor.New(t)}, l.names.Take(name), nil)
	if c == nil {
		return graph.Value{}
	}
	return c.Value(0)
}

// stacked puts the blocks along the axis that a change comes to one after the other along the
// first.
func (l *lowerer) stacked(v graph.Value, c change, x graph.Value, suffix string) graph.Value {
	parts := l.spec.Mesh.Cluster[c.m]
	blocks := make([]graph.Value, parts)
	for i := range blocks {
		blocks[i] = l.block(v, c, i, parts, x, suffix)
	}
	return l.join(v, 0, suffix, blocks)
}

// unstacked joins the blocks along the first axis along the one that a change comes from.
func (l *lowerer) unstacked(v graph.Value, c change, x graph.Value, suffix string) graph.Value {
	parts := l.spec.Mesh.Cluster[c.m]
	blocks := make([]graph.Value, parts)
	for i := range blocks {
		blocks[i] = l.block(v, change{m: c.m, to: 0}, i, parts, x, suffix)
	}
	return l.join(v, c.from, suffix, blocks)
}

// online reports whether this process is on a line along an axis of the mesh that a value is
// on, which may be at one place along others.
func (l *lowerer) online(f *form, m int) bool {
	place := f.place
	place[m] = 0
	return l.here(place)
}

// swap sends a piece under a name, and awaits what becomes of it.
func (l *lowerer) swap(v graph.Value, f *form, c change, name string,
	x graph.Value) graph.Value {
	if l.err != nil {
		return graph.Value{}
	}
	_, fold := c.among()
	how := graph.How{Fold: fold, Along: l.spec.Mesh.Axes[c.m]}
	parts, root := l.spec.Mesh.Cluster[c.m], max(0, int(f.place[c.m])-1)
	to := []int(nil)
	if c.kind == Send {
		to = slices.Repeat([]int{-1}, parts)
		to[root] = int(c.at) - 1
	}
	if c.peers(l.spec, l.phase(v)) {
		return c.between(l, v, graph.Exchange{Name: name, How: how, Parts: parts, Root: root,
			To: to}, x)
	}
	op, in := ops.Sent(name, how, parts, root), []graph.Value{x}
	switch {
	case c.kind == Send:
		op = ops.Permuted(name, how.Along, to)
	case c.some != nil:
		ranks := l.ranks(c.some)
		if l.err != nil {
			return graph.Value{}
		}
		op, in = ops.SentSome(name, how, parts, ranks.Type()), append(in, ranks)
	}
	x = l.make(name+"/send", l.phase(v), op, in...)
	x = l.make(name, l.phase(v), ops.Awaited(how, parts), x)
	l.res.exchanges[len(l.res.exchanges)-1].awaits = x.Node
	return x
}

// peers reports whether a change in a phase goes from device to device.
func (c change) peers(s Spec, in graph.Phase) bool {
	adds := c.kind == Reduce || c.kind == Scatter
	return s.Peers && in != graph.Update && c.some == nil && (!adds || s.Mesh.Cluster[c.m] == 2)
}

// between is what becomes of a piece by an exchange between devices. A sum of two is that of one's
// own and the other's, in the order of the ranks, which has the bits that any order has.
func (c change) between(l *lowerer, v graph.Value, x graph.Exchange,
	own graph.Value) graph.Value {
	sum := x.How.Fold.Adds()
	switch c.kind {
	case Send:
		x.Root = 0
	case Reduce:
		x.How.Fold, x.Root, x.To = graph.Permute, 0, []int{1, 0}
	case Scatter:
		x.How.Fold, x.Root = graph.Swap, 0
	case Move, Join:
		x.Root = 0
	}
	name := x.Name
	if sum {
		name += "/peer"
	}
	y := l.make(name, l.phase(v), ops.Peered(x), own)
	if !y.Valid() {
		return y
	}
	l.res.exchanges[len(l.res.exchanges)-1].awaits = y.Node
	if !sum {
		return y
	}
	terms := []graph.Value{own, y}
	if c.kind == Scatter {
		for i := range terms {
			half := y.Type().Size(0) / 2
			terms[i] = l.make(fmt.Sprintf("%s/term%d", x.Name, i), l.phase(v),
				ops.Sliced(0, i*half, (i+1)*half), y)
		}
	} else if l.process[c.m] > 0 {
		slices.Reverse(terms)
	}
	return l.make(x.Name, l.phase(v), ops.Added(), terms...)
}

// use notes who needs the exchanges that a form was made by.
func (l *lowerer) use(f *form) {
	for _, i := range f.needs {
		if x := l.res.exchanges[i]; l.fetched.Valid() {
			x.fetches[l.fetched] = true
		} else {
			x.users[l.now.ID] = true
		}
	}
}
