package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// rooms are the caches of a decoder that translates: state variables that what is
// computed of texts is kept in.
type rooms struct {
	g         *graph.Graph
	sentences int // source texts
	beams     int // rows for each of them
	length    int
	source    graph.Value      // f32[sentences 1 1 length]: the mask of the source's padding
	self      [][2]graph.Value // by layer, keys and values f32[sentences·beams heads length size]
	cross     [][2]graph.Value // by layer, those of the source, f32[sentences heads length size]
}

// newRooms makes the caches of so many layers.
func newRooms(g *graph.Graph, sentences, beams, length, layers, heads, size int) *rooms {
	r := &rooms{g: g, sentences: sentences, beams: beams, length: length}
	defer g.Scope("cache")()
	r.source = g.State("source", tensor.Of(graph.F32, sentences, 1, 1, length), graph.Init{})
	pair := func(name string, rows int) [2]graph.Value {
		t := tensor.Of(graph.F32, rows, heads, length, size)
		return [2]graph.Value{g.State(name+"/keys", t, graph.Init{}),
			g.State(name+"/values", t, graph.Init{})}
	}
	for i := range layers {
		r.self = append(r.self, pair(fmt.Sprintf("%d/self", i), sentences*beams))
		r.cross = append(r.cross, pair(fmt.Sprintf("%d/cross", i), sentences))
	}
	return r
}

// rows is how many texts are written at once.
func (r *rooms) rows() int { return r.sentences * r.beams }

// encoding makes the execution that fills the source's caches: keysValues are those
// of a layer.
func (r *rooms) encoding(source, padding graph.Value,
	keysValues func(layer int) [2]graph.Value) *Encoding {
	e := &Encoding{Source: source, Updates: []*graph.Node{ops.Assign(r.source, padding)}}
	for i, room := range r.cross {
		for k, v := range keysValues(i) {
			e.Updates = append(e.Updates, ops.Assign(room[k], v))
		}
	}
	return e
}

// stepping is the building of one step.
type stepping struct {
	*rooms
	DecodeStep
	mask graph.Value // f32[tokens length]: what is later than a token
}

// stepping makes the inputs of a step of so many tokens.
func (r *rooms) stepping(tokens int) *stepping {
	s := &stepping{rooms: r}
	s.Tokens = r.g.Input("tokens", tensor.Of(graph.I32, r.rows(), tokens))
	s.Position = r.g.Input("position", tensor.Of(graph.I32))
	s.Parent = r.g.Input("parent", tensor.Of(graph.I32, r.rows()))
	s.mask = ops.CausalMaskAt(s.Position, tokens, r.length)
	return s
}

// past is the keys and values of a layer with those of the new tokens, f32[rows heads
// tokens size], which it also keeps.
func (s *stepping) past(layer int, keys, values graph.Value) (graph.Value, graph.Value) {
	var all [2]graph.Value
	for k, fresh := range []graph.Value{keys, values} {
		room := s.self[layer][k]
		all[k] = ops.PutAt(ops.Reorder(room, s.Parent), fresh, s.Position, 2)
		s.Updates = append(s.Updates, ops.ReorderWriteAt(room, s.Parent, fresh, s.Position, 2))
	}
	return all[0], all[1]
}

// bySource is x, f32[rows tokens width], with a row for each source: to attend to a
// source, its beams are as good as one text.
func (s *stepping) bySource(x graph.Value) graph.Value {
	return s.resized(x, s.sentences, s.beams*s.Size())
}

// byRow is bySource undone.
func (s *stepping) byRow(x graph.Value) graph.Value { return s.resized(x, s.rows(), s.Size()) }

func (s *stepping) resized(x graph.Value, rows, tokens int) graph.Value {
	if !x.Valid() {
		return x
	}
	return ops.ReshapeSizes(x, rows, tokens, x.Type().Size(-1))
}

// last is the last token of each row of x, f32[rows tokens width]: f32[rows width].
func (s *stepping) last(x graph.Value) graph.Value {
	if !x.Valid() {
		return x
	}
	return ops.ReshapeSizes(ops.Slice(x, 1, s.Size()-1, s.Size()), s.rows(), x.Type().Size(-1))
}

// attended is softmax(q·kᵀ + mask)·v, for heads beside each other: q is f32[n heads
// queries size], k and v are f32[n heads keys size], and the result is f32[n queries
// heads·size].
func attended(q, k, v, mask graph.Value) graph.Value {
	a := ops.Softmax(ops.Add(ops.MatMulT(q, k, false, true), mask))
	y := ops.Transpose(ops.MatMul(a, v), 0, 2, 1, 3)
	if !y.Valid() {
		return y
	}
	t := y.Type()
	return ops.ReshapeSizes(y, t.Size(0), t.Size(1), t.Size(2)*t.Size(3))
}

// headsOf takes x, f32[n length heads·size], apart into f32[n heads length size].
func headsOf(x graph.Value, heads int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	x = ops.ReshapeSizes(x, t.Size(0), t.Size(1), heads, t.Size(2)/heads)
	return ops.Transpose(x, 0, 2, 1, 3)
}

// checkDecoding refuses numbers of texts that nothing can be made for.
func checkDecoding(texts, beams int) error {
	return within(limit{"texts at once", texts, 1, maxBatch}, limit{"beams", beams, 1, maxBatch})
}
