package ops

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// drawRoute is what [Route] makes of random choices of tokens among experts, some of which
// have none, or all.
func drawRoute(t *rapid.T, tokens, experts int) (rows, inv, offsets tensor.View, of []int32) {
	most := rapid.IntRange(1, experts).Draw(t, "experts that are chosen") - 1
	in := []tensor.View{tensor.New(tensor.Of(graph.I32, tokens)),
		tensor.New(tensor.Of(graph.I32, tokens))}
	of = make([]int32, 2*tokens)
	for k, v := range in {
		for i := range v.I32() {
			v.I32()[i] = int32(rapid.IntRange(-k, most).Draw(t, "choice"))
			of[2*i+k] = v.I32()[i]
		}
	}
	out := results(t, route{Experts: experts}, in)
	return out[0], out[1], out[2], of
}

// results computes an operation.
func results(t *rapid.T, op graph.Op, in []tensor.View) []tensor.View {
	types := make([]graph.Type, len(in))
	for i, v := range in {
		types[i] = v.Type
	}
	out, err := (Sample{Op: op, In: types}).results(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRoutedApart: the rank of a choice is the part that has its expert, and every packed row
// is one part's own: that of its choice.
func TestRoutedApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts, each := rapid.IntRange(1, 4).Draw(t, "parts"), rapid.IntRange(1, 3).Draw(t, "each")
		tokens := rapid.IntRange(1, 20).Draw(t, "tokens")
		rows, inv, offsets, of := drawRoute(t, tokens, parts*each)
		for part := range parts {
			out := results(t, routePart{parts, part}, []tensor.View{rows, inv, offsets})
			own := slices.Repeat([]int32{-1}, 2*tokens)
			for choice, expert := range of {
				rank := int32(-1)
				if expert >= 0 {
					rank = expert / int32(each)
				}
				if got := out[0].I32()[choice]; got != rank {
					t.Fatalf("choice %d of expert %d is part %d's", choice, expert, got)
				}
				if rank == int32(part) {
					own[inv.I32()[choice]] = int32(choice / 2)
				}
			}
			if !slices.Equal(out[1].I32(), own) {
				t.Fatalf("part %d has %v, want %v", part, out[1].I32(), own)
			}
		}
	})
}

// TestMovesOf: where every part has, of what an operation that moves rows reads, what has to do
// with its own experts only, and zeros else, the parts' results add up to the whole's; and each
// has zeros in place of what has to do with others only.
func TestMovesOf(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Samples() {
		m, ok := MovesOf(s.Op)
		if !ok || s.In[m.Inv].Size(1) != 2 { // those of Route
			continue
		}
		seen[kind(s.Op)] = true
		rapid.Check(t, func(t *rapid.T) {
			const tokens, parts, each = 4, 3, 2
			rows, inv, offsets, of := drawRoute(t, tokens, parts*each)
			in := s.operands(rapid.Uint64().Draw(t, "operands"))
			in[m.Rows], in[m.Inv] = rows, inv
			want := results(t, s.Op, in)[0].F32()
			sum := make([]float32, len(want))
			for part := range parts {
				share := results(t, routePart{parts, part}, []tensor.View{rows, inv, offsets})
				mine := func(choice int) bool {
					return of[choice] >= 0 && of[choice]/each == int32(part)
				}
				in := restricted(m, in, share[1].I32(), mine)
				if m.Packs {
					in[m.Rows] = share[1]
				}
				out := results(t, s.Op, in)[0].F32()
				has := func(i int) bool { // anything of an element
					switch {
					case m.Packs:
						return share[1].I32()[i*2*tokens/len(out)] >= 0
					case m.Chooses:
						return mine(i)
					}
					token := i * tokens / len(out)
					return mine(2*token) || mine(2*token+1)
				}
				for i, x := range out {
					if sum[i] += x; !has(i) && x != 0 {
						t.Fatalf("%s: part %d has element %d", s.name(), part, i)
					}
				}
			}
			if off := distance(sum, want); off > 1e-6 || m.Packs && off > 0 {
				t.Fatalf("%s: parts are off by %g", s.name(), off)
			}
		})
	}
	if len(seen) != 5 {
		t.Errorf("only %v", seen)
	}
	if _, ok := MovesOf(route{}); ok || !Routes(route{}) || Routes(routePart{}) {
		t.Error("what routes moves rows, or does not route")
	}
}

// restricted is operands of which a part has what has to do with it: by packed row its own are
// not negative.
func restricted(m RowMoves, in []tensor.View, own []int32,
	has func(choice int) bool) []tensor.View {
	out := slices.Clone(in)
	keep := func(k int, row func(i int) bool) {
		x := tensor.New(in[k].Type)
		width := x.Type.Elems() / x.Type.Size(0)
		for i, v := range in[k].F32() {
			if row(i / width) {
				x.F32()[i] = v
			}
		}
		out[k] = x
	}
	for _, k := range m.Tokens {
		keep(k, func(t int) bool { return has(2*t) || has(2*t+1) })
	}
	for _, k := range m.Packed {
		keep(k, func(r int) bool { return own[r] >= 0 })
	}
	for _, k := range m.Choices {
		x := tensor.New(in[k].Type)
		for i, v := range in[k].F32() {
			if has(i) {
				x.F32()[i] = v
			}
		}
		out[k] = x
	}
	return out
}

// TestBadRouteParts: routes that are none, and parts that experts do not make up, are refused.
func TestBadRouteParts(t *testing.T) {
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	for _, c := range []struct {
		want string
		op   graph.Op
		in   []graph.Type
	}{
		{"want 3 operands", routePart{2, 0}, nil},
		{"operand 2 is f32", routePart{2, 0}, []graph.Type{ids(8), ids(4, 2),
			tensor.Of(graph.F32, 5)}},
		{"routing is", routePart{2, 0}, []graph.Type{ids(7), ids(4, 2), ids(5)}},
		{"offsets are", routePart{2, 0}, []graph.Type{ids(8), ids(4, 2), ids(5, 1)}},
		{"offsets are", routePart{1, 0}, []graph.Type{ids(8), ids(4, 2), ids(1)}},
		{"4 experts in 3 parts", routePart{3, 0}, []graph.Type{ids(8), ids(4, 2), ids(5)}},
		{"4 experts in 0 parts", routePart{0, 0}, []graph.Type{ids(8), ids(4, 2), ids(5)}},
		{"part 2 of 2", routePart{2, 2}, []graph.Type{ids(8), ids(4, 2), ids(5)}},
		{"part -1 of 2", routePart{2, -1}, []graph.Type{ids(8), ids(4, 2), ids(5)}},
	} {
		if _, err := c.op.Infer(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v%v: want %q, have %v", c.op, c.in, c.want, err)
		}
	}
}
