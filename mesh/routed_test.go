package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// mixture is a step of a layer with sparse experts, whose choices are fed.
type mixture struct {
	g                              *graph.Graph
	tokens, experts, width, hidden int
	stacked                        bool
	x, first, second, rate         graph.Value
	loss                           graph.Value
	updates                        []graph.NodeID
	choices                        []int32 // by token two
	extra                          []graph.Value
	more                           int  // what else there is: see ending
	blocks                         int  // that tokens are divided into
	reversed                       bool // experts are at processes in the opposite order
}

// kindsOfEndings is how many there are.
const kindsOfEndings = 10

// ending is what the layer's output and tokens become before they are added up: what is linear
// leaves rows where they are, or does not.
func (m *mixture) ending(out, x graph.Value) graph.Value {
	switch m.more {
	case 1:
		sizes := []int{m.blocks, m.tokens / m.blocks, m.width}
		inner := m.g.Variable("inner", graph.Named(graph.F32, graph.Dim{Name: "inner",
			Size: sizes[1]}, graph.Dim{Size: m.width}), graph.Init{Dist: graph.Normal, Scale: 0.5})
		out = ops.Neg(ops.ReshapeSizes(out, sizes...))
		x = ops.Add(ops.ReshapeSizes(x, sizes...), inner)
	case 2:
		out = ops.Neg(ops.Scale(out, 2))
	case 3: // as many rows as columns
		out = ops.Transpose(out, 1, 0)
	case 4:
		out, x = ops.Sum(out, 1), ops.Sum(x, 1)
	case 5:
		out, x = ops.Sum(out, 0), ops.Sum(x, 0)
	case 6: // two tokens a row
		out = ops.ReshapeSizes(out, m.tokens/m.blocks, m.blocks*m.width)
		x = ops.ReshapeSizes(x, m.tokens/m.blocks, m.blocks*m.width)
	}
	return ops.Add(out, x)
}

// build makes the graph: gates and experts read what a matrix makes of tokens, to which the
// layer's output is added.
func (m *mixture) build(fail func(error)) {
	m.g = graph.New()
	named := func(name string, n int) graph.Dim { return graph.Dim{Name: name, Size: n} }
	variable := func(name string, dims ...graph.Dim) graph.Value {
		return m.g.Variable(name, graph.Named(graph.F32, dims...),
			graph.Init{Dist: graph.Normal, Scale: 0.5})
	}
	m.x = m.g.Input("x", graph.Named(graph.F32, named("batch", m.tokens), named("", m.width)))
	m.first = m.g.Input("first", tensor.Of(graph.I32, m.tokens))
	m.second = m.g.Input("second", tensor.Of(graph.I32, m.tokens))
	m.rate = m.g.Input("rate", tensor.Of(graph.F32))
	in := variable("in", named("", m.width), named("wide", m.width))
	gate := variable("gate", named("", m.width), named("", 2))
	weights := []graph.Value{in, gate}
	layer := func(name string, x, offsets graph.Value, from, to int) graph.Value {
		if m.stacked {
			w := variable(name, named("experts", m.experts), named("", from), named("", to))
			weights = append(weights, w)
			return ops.GroupedMatMul(x, w, offsets)
		}
		var own []graph.Value
		for e := range m.experts {
			w := variable(fmt.Sprint(name, e), named("", from), named("", to))
			at := e
			if m.reversed {
				at = m.experts - 1 - e
			}
			m.g.Place(w, "experts", at, m.experts)
			own = append(own, w)
		}
		weights = append(weights, own...)
		return ops.ExpertMatMul(x, own, offsets)
	}
	x := ops.Tanh(ops.MatMul(m.x, in))
	gates := ops.Softmax(ops.MatMul(x, gate))
	rows, inv, offsets := ops.Route(m.first, m.second, m.experts)
	if m.more == 7 { // experts take the rows of others
		_, _, offsets = ops.Route(m.second, m.first, m.experts)
	}
	packed := ops.GatherRows(x, rows, inv)
	y := ops.Relu(layer("w0/", packed, offsets, m.width, m.hidden))
	y = layer("w1/", y, offsets, m.hidden, m.width)
	out := ops.CombineRows(y, gates, inv, rows)
	m.extra = []graph.Value{packed, out, x}
	if m.more == 8 { // the sum of two layers whose tokens are routed otherwise
		rows, inv, offsets := ops.Route(m.second, m.first, m.experts)
		z := ops.Relu(layer("v0/", ops.GatherRows(x, rows, inv), offsets, m.width, m.hidden))
		z = layer("v1/", z, offsets, m.hidden, m.width)
		out = ops.Add(out, ops.CombineRows(z, gates, inv, rows))
	}
	end := m.ending(out, x)
	if m.more != 9 { // else gradients do not need what comes of the layer
		end = ops.Square(end)
	}
	m.loss = ops.Mean(end)
	for i, d := range autodiff.Grad(m.loss, weights...) {
		m.updates = append(m.updates, ops.SGD(weights[i], d, m.rate).ID)
	}
	if err := m.g.Err(); err != nil {
		fail(err)
	}
}

// route draws choices: of all experts, of some, or of one; a token may have no second one, or
// none at all.
func (m *mixture) route(t *rapid.T) {
	lo := rapid.IntRange(0, m.experts-1).Draw(t, "first expert")
	hi := rapid.IntRange(lo, m.experts-1).Draw(t, "last expert")
	if rapid.Bool().Draw(t, "all experts") {
		lo, hi = 0, m.experts-1
	}
	for range m.tokens {
		a, b := rapid.IntRange(lo, hi).Draw(t, "a"), rapid.IntRange(lo, hi).Draw(t, "b")
		switch rapid.IntRange(0, 9).Draw(t, "choices") {
		case 0:
			a, b = -1, -1
		case 1, 2, 3:
			b = -1
		}
		m.choices = append(m.choices, int32(a), int32(b))
	}
}

func (m *mixture) feeds() map[graph.Value]tensor.View {
	feeds := map[graph.Value]tensor.View{}
	for _, v := range []graph.Value{m.x, m.first, m.second, m.rate} {
		feeds[v] = tensor.New(v.Type())
	}
	for i := range feeds[m.x].F32() {
		feeds[m.x].F32()[i] = float32(i*7%11)/8 - 0.5
	}
	for t := range m.tokens {
		feeds[m.first].I32()[t], feeds[m.second].I32()[t] = m.choices[2*t], m.choices[2*t+1]
	}
	feeds[m.rate].F32()[0] = 0.1
	return feeds
}

// wanted is how many rows of tokens, and of choices, experts want that are of other processes
// than the tokens, of so many.
func (m *mixture) wanted(n int) (tokens, choices int) {
	for t := range m.tokens {
		seen := map[int]bool{t / (m.tokens / n): true}
		for _, e := range m.choices[2*t : 2*t+2] {
			if e < 0 {
				continue
			}
			at := int(e) / (m.experts / n)
			if at != t/(m.tokens/n) {
				choices++
			}
			if !seen[at] {
				seen[at], tokens = true, tokens+1
			}
		}
	}
	return tokens, choices
}

func drawMixture(t *rapid.T, more int) (m *mixture, n, slices int) {
	n, slices = rapid.IntRange(2, 4).Draw(t, "processes"), rapid.IntRange(1, 2).Draw(t, "slices")
	m = &mixture{width: rapid.IntRange(1, 3).Draw(t, "width") * 2,
		hidden:  rapid.IntRange(1, 5).Draw(t, "hidden"),
		tokens:  n * slices * rapid.IntRange(1, 4).Draw(t, "tokens"),
		experts: n * slices * rapid.IntRange(1, 2).Draw(t, "experts"),
		stacked: rapid.Bool().Draw(t, "stacked"), more: more, blocks: n * slices,
		reversed: more >= 4 && rapid.Bool().Draw(t, "reversed")}
	switch more {
	case 1:
		m.tokens *= 2
	case 3:
		m.tokens *= 2
		m.width = m.tokens
	}
	m.build(func(err error) { t.Fatal(err) })
	m.route(t)
	return m, n, slices
}

// TestRoutedRows: with experts and the batch along one axis, processes send the rows that
// experts elsewhere want, and no others, forward and backward, with the gates of choices that
// are made elsewhere and the gradients of these, however unevenly tokens are routed; and results
// are those of the whole.
func TestRoutedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n, each := drawMixture(t, rapid.IntRange(0, 2).Draw(t, "more"))
		spec, err := mesh.Parse(fmt.Sprintf("x:%dx%d", n, each), "batch=x,experts=x")
		if err != nil {
			t.Fatal(err)
		}
		all := target{[]graph.Value{m.loss}, m.updates}
		w := compare(t, m.g, *spec, []target{{all.fetches, nil}, all}, m.feeds())
		m.apart(t, w)
		tokens, choices := m.wanted(n)
		row, choice := float64(tokens*m.width*4), float64(choices*4)
		for fold, want := range map[graph.Fold]float64{graph.GatherSome: 2*row + choice,
			graph.ScatterSome: 2*row + choice, graph.Gather: 0, graph.Scatter: 0} {
			if w.sent[fold] != want {
				t.Fatalf("%s: %s of %g bytes, want %g", spec, fold, w.sent[fold], want)
			}
		}
	})
}

// apart wants every process to have packed rows of its own experts, and zeros elsewhere.
func (m *mixture) apart(t *rapid.T, w *world) {
	var places []int32 // by packed row
	for e := range m.experts {
		for _, choice := range m.choices {
			if int(choice) == e {
				places = append(places, int32(e/(m.experts/len(w.ranks))))
			}
		}
	}
	for rank, p := range w.ranks {
		x := p.values[p.res.Node(m.extra[0].Node.ID).Value(0)]
		for i, v := range x.F32() {
			row := i / m.width
			if mine := row < len(places) && int(places[row]) == rank; !mine && v != 0 {
				t.Fatalf("rank %d has packed row %d", rank, row)
			}
		}
	}
}

// TestRoutedLayouts: whatever else is divided or fetched, results are those of the whole: packed
// rows that are fetched, or wanted in other ways than by experts, are there as well.
func TestRoutedLayouts(t *testing.T) {
	some := 0
	rapid.Check(t, func(t *rapid.T) {
		m, n, each := drawMixture(t, rapid.IntRange(0, kindsOfEndings-1).Draw(t, "more"))
		axes := fmt.Sprintf("x:%dx%d", n, each)
		layout := []string{"batch=x", "experts=x"}
		switch rapid.IntRange(0, 3).Draw(t, "more") {
		case 1:
			axes, layout = axes+",b:2x1", append(layout, "in:1=b")
		case 2:
			axes, layout = "b:2x1,"+axes, append(layout, "in:1=b")
		case 3:
			if m.more == 1 {
				axes, layout = axes+",b:2x1", append(layout, "inner=b")
				break
			}
			layout = layout[rapid.IntRange(0, 1).Draw(t, "one"):][:1]
		}
		spec, err := mesh.Parse(axes, strings.Join(layout, ","))
		if err != nil {
			t.Fatal(err)
		}
		all := target{[]graph.Value{m.loss}, m.updates}
		for _, v := range m.extra {
			if rapid.Bool().Draw(t, "fetched") {
				all.fetches = append(all.fetches, v)
			}
		}
		w := compare(t, m.g, *spec, []target{all, {all.fetches, nil}, {nil, m.updates}}, m.feeds())
		if len(w.rows) > 0 {
			some++
		}
	})
	if some == 0 {
		t.Error("no rows were exchanged")
	}
}

// TestPrivateRows: what each process has of tokens that others have not is no form of them:
// who wants all of them, later, gathers them.
func TestPrivateRows(t *testing.T) {
	m := &mixture{tokens: 8, experts: 4, width: 8, hidden: 3}
	m.build(func(err error) { t.Fatal(err) })
	m.choices = slices.Repeat([]int32{3, -1}, m.tokens)
	whole := ops.MatMul(m.extra[2], m.extra[2]) // wants all tokens once
	w := compare(t, m.g, parse(t, "x:4x1", "batch=x,experts=x"),
		[]target{{[]graph.Value{m.loss, whole}, m.updates}}, m.feeds())
	if w.sent[graph.Gather] == 0 || w.sent[graph.GatherSome] == 0 {
		t.Errorf("sent %v", w.sent)
	}
	// Nobody adds up packed rows: who wants them all packs all tokens.
	sums := w.sent[graph.Sum]
	w = compare(t, m.g, parse(t, "x:4x1", "batch=x,experts=x"),
		[]target{{[]graph.Value{m.loss, whole, m.extra[0]}, m.updates}}, m.feeds())
	if w.sent[graph.Sum] != sums {
		t.Errorf("%g bytes of sums, %g with packed rows", sums, w.sent[graph.Sum])
	}
}

// TestTransposedRows: where rows of what is scattered are no tokens any more, all are sent.
func TestTransposedRows(t *testing.T) {
	m := &mixture{tokens: 8, experts: 4, width: 8, hidden: 3, more: 3}
	m.build(func(err error) { t.Fatal(err) })
	for i := range int32(8) {
		m.choices = append(m.choices, i%3, -1)
	}
	w := compare(t, m.g, parse(t, "x:4x1", "batch=x,experts=x"),
		[]target{{[]graph.Value{m.loss}, nil}}, m.feeds())
	if want := 3.0 * 8 * 8 * 4; w.sent[graph.Scatter] != want || w.sent[graph.ScatterSome] > 0 {
		t.Errorf("sent %v, want %g to be scattered", w.sent, want)
	}
}
