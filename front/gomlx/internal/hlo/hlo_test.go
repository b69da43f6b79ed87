package hlo

import (
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom/opstest"
	"github.com/gomem/gomem/graph/tensor"
)

// drawnPlaces are indices, some of which are outside.
func drawnPlaces(rng *rand.Rand, v tensor.View) {
	for i := range v.I64() {
		v.I64()[i] = int64(rng.IntN(8) - 2)
	}
}

// words are any bits.
func words(rng *rand.Rand, v tensor.View) {
	for i := range v.Data {
		v.Data[i] = byte(rng.Uint32())
	}
}

// TestOperations holds the operations to what all of gomem's are held to: among others that their
// kernels write all of their results and nothing else, whatever the number of threads and what was
// in memory.
func TestOperations(t *testing.T) {
	f := func(sizes ...int) graph.Type { return graph.Of(graph.F32, sizes...) }
	i64 := func(sizes ...int) graph.Type { return graph.Of(graph.I64, sizes...) }
	moves := Moving{Size: []int{2, 3}, Stride: []int{2, 1}, Dilation: []int{1, 2},
		Lo: []int{1, 0}, Hi: []int{0, 2}}.lists()
	at := map[int]func(*rand.Rand, tensor.View){1: drawnPlaces}
	bits := map[int]func(*rand.Rand, tensor.View){0: words}
	two := listOf([]int{0, 2})
	for name, s := range map[string]opstest.Sample{
		"pad": {Op: pad{Lo: listOf([]int{1, -1}), Hi: listOf([]int{-2, 3}),
			Inner: listOf([]int{2, 0})}, In: []graph.Type{f(3, 4), f()}, NoGrad: []int{0, 1}},
		"fold":  {Op: foldOp{How: Product}, In: []graph.Type{f(5, 7)}, NoGrad: []int{0}},
		"xor":   {Op: foldOp{How: Xor}, In: []graph.Type{i64(5, 7)}, Fill: bits},
		"dot":   {Op: dot{}, In: []graph.Type{i64(2, 3, 5), i64(2, 5, 4)}},
		"count": {Op: count{Zeros: true}, In: []graph.Type{graph.Of(graph.I16, 9)}, Fill: bits},
		"wide":  {Op: wide{Of: Expm1}, In: []graph.Type{graph.Of(graph.F64, 9)}},
		"random": {Op: random{DType: graph.U16, Sizes: listOf([]int{5, 3})},
			In: []graph.Type{graph.Of(graph.U64, 3)}},
		"window": {Op: window{How: Max, Moving: moves}, In: []graph.Type{f(5, 7)},
			NoGrad: []int{0}},
		"select": {Op: selection{Moving: moves}, In: []graph.Type{f(5, 7), f(3, 5)},
			NoGrad: []int{0, 1}},
		"convolve": {Op: convolve{Moving: moves, Groups: 2},
			In: []graph.Type{f(2, 4, 5, 7), f(6, 2, 2, 3)}, NoGrad: []int{0, 1}},
		"gather": {Op: gather{Along: two, Sizes: listOf([]int{2, 3, 1})},
			In: []graph.Type{f(4, 3, 5), i64(6, 2)}, Fill: at, NoGrad: []int{0}},
		"scatter": {Op: scatter{How: Sum, Along: two},
			In: []graph.Type{f(4, 3, 5), i64(6, 2), f(6, 2, 3, 1)}, Fill: at, NoGrad: []int{0, 2}},
		"put": {Op: scatter{How: Put, Along: two},
			In: []graph.Type{f(4, 3, 5), i64(6, 2), f(6, 2, 3, 1)}, Fill: at, NoGrad: []int{0, 2}},
	} {
		t.Run(name, func(t *testing.T) { opstest.Check(t, s) })
	}
}

// TestNeutral: what changes nothing changes nothing, of every type and way.
func TestNeutral(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range tensor.DTypes() {
		for how := Sum; how <= Xor; how++ {
			if numeric(d, how) != nil {
				continue
			}
			x := tensor.New(graph.Of(d, 1))
			words(rng, x)
			if d == graph.Bool {
				x.Data[0] &= 1
			}
			before := string(x.Data)
			folder(how, x, Neutral(how, d))(0, 0)
			if string(x.Data) != before {
				t.Errorf("%s of %s makes % x of % x", how, d, x.Data, before)
			}
		}
	}
}
