package ops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// whole says why operations have no rule.
var whole = map[string]string{
	"normFactor":   "its operand is two numbers",
	"foldIn":       "its operand is two numbers",
	"adafactor":    "its step is limited by the norm of the whole update",
	"route":        "a row's place depends on the choices of all tokens",
	"routeChoices": "a row's place depends on the choices of all tokens",
	"expertMatMul": "it is one expert's, and the rows of the others pass through it: " +
		"experts are placed",
	"expertOuter":     "it is one expert's: experts are placed",
	"expertJoin":      "it is its first operand, and reads nothing else",
	"expertJoinT":     "it is its first operand, and reads nothing else",
	"packedExpert":    "it is one expert's, as expertMatMul is",
	"packedJoin":      "it is its first operand, and reads nothing else",
	"inBF16":          "meshes divide a graph before its precision is chosen",
	"causalMask":      "it has no operands, and costs nothing to speak of",
	"send":            "what workers exchange is a variable's",
	"sendPart":        "what workers exchange is a variable's",
	"keep":            "it has no result",
	"await":           "what workers exchange is a variable's",
	"sent":            "it is made by package mesh, of what has been divided",
	"sentSome":        "it is made by package mesh, of what has been divided",
	"sentCounted":     "it is an all-to-all, and so among workers already",
	"permuted":        "it is made by package mesh, of what has been divided",
	"peer":            "it is made by package mesh, of what has been divided",
	"arrive":          "it is made by package mesh, of what has been divided",
	"routePart":       "it is made by package mesh, of what every process has",
	"sumPart":         "it is a part, which package split makes after all others",
	"lstmInputs":      "it is a part, which package split makes after all others",
	"lstmSteps":       "it is a part, which package split makes after all others",
	"lstmBackSteps":   "it is a part, which package split makes after all others",
	"matMulPart":      "it is a part, which package split makes after all others",
	"convFilterPart":  "it is a part, which package split makes after all others",
	"batchMoments":    "it is a part, which package split makes after all others",
	"batchStatistics": "it is a part, which package split makes after all others",
	"batchApply":      "it is a part, which package split makes after all others",
	"batchSums":       "it is a part, which package split makes after all others",
	"batchEnds":       "it is a part, which package split makes after all others",
	"batchBack":       "it is a part, which package split makes after all others",
	"convFilterEnd":   "it is a part, which package split makes after all others",
	"noiseAt":         "it is a part, which package split makes after all others",
	"embeddingAdd":    "it is a sum in place, which package split makes after all others",
	"linearLoss":      "meshes divide what it stands for", "linearLossGrad": "so they do of it",
	"fixedLoss": "meshes divide what it stands for", "fixedLossGrad": "so they do of it",
	"chain":       "it is made by fusion, which comes after",
	"matMulChain": "it is made by fusion, which comes after",
	"convChain":   "it is made by fusion, which comes after",

	"matMulLike": "it is a part", "sumLike": "it is a part", "noiseWindow": "it is a part",
	"noisePart": "it is a part", "top2Window": "it is a part", "onePlace": "it is a part",
	"groupedMatMulPart": "it is a part", "groupedOuterPart": "it is a part",
}

// kind is an operation's type, without its attributes.
func kind(op graph.Op) string { return strings.TrimPrefix(fmt.Sprintf("%T", op), "ops.") }

// TestWholesHaveNoRule: the table of operations without rules is not longer than it must be.
func TestWholesHaveNoRule(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Samples() {
		name := kind(s.Op)
		seen[name] = true
		if _, ok := s.Op.(graph.Splitter); ok && whole[name] != "" {
			t.Errorf("%s has a rule, and is among those computed whole", name)
		}
	}
	for name := range whole {
		if !seen[name] {
			t.Errorf("there is no operation %s", name)
		}
	}
}

// TestBadParts: attributes of parts that do not fit are errors, and never a panic.
func TestBadParts(t *testing.T) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	win := func(n int8, size, whole, at int32) window {
		return window{N: n, Size: [maxRank]int32{size}, Whole: [maxRank]int32{whole},
			At: [maxRank]int32{at}}
	}
	drop, tall := dropout{Rate: 0.5}, matMul{}
	for _, c := range []struct {
		want string
		op   graph.Op
		in   []graph.Type
	}{
		{"3×5 elements of a product of 2×5", matMulLike{tall, 2, 5},
			[]graph.Type{f(3, 4), f(4, 5)}},
		{"inner dimensions differ", matMulLike{tall, 9, 9}, []graph.Type{f(3, 4), f(3, 5)}},
		{"a sum in 0 blocks", sumLike{sum{0, 1, false}, 0, 1}, []graph.Type{f(3)}},
		{"have more than one element", sumLike{sum{0, 1, false}, 1, 0}, []graph.Type{f(3, 2)}},
		{"want 1 operands", sumLike{sum{0, 1, false}, 1, 1}, nil},
		{"no random operation", noiseWindow{unary{tanh}, window{}}, []graph.Type{f(3), ids(2)}},
		{"a window of 2 axes", noiseWindow{drop, win(2, 3, 9, 0)}, []graph.Type{f(3), ids(2)}},
		{"axis 0 has 3 elements", noiseWindow{drop, win(1, 4, 9, 0)}, []graph.Type{f(3), ids(2)}},
		{"axis 0 has 3 elements", noiseWindow{drop, win(1, 3, 9, 7)}, []graph.Type{f(3), ids(2)}},
		{"axis 0 has 3 elements", noiseWindow{drop, win(1, 3, 9, -1)}, []graph.Type{f(3), ids(2)}},
		{"from element 4 on of a window of 6", noiseAt{noiseWindow{drop, win(1, 6, 9, 0)}, 4},
			[]graph.Type{f(3), ids(2)}},
		{"a window on 8 elements along axis 0", noisePart{noise{Shape: sized([]int{9})},
			win(1, 3, 8, 0)}, []graph.Type{ids(2)}},
		{"a window of 1 axes", top2Window{top2{}, win(1, 3, 9, 0)},
			[]graph.Type{f(3, 4, 5), ids(2)}},
		{"has no places in rows", onePlace{unary{tanh}, 0, 9}, []graph.Type{f(3)}},
		{"5 places from 5 on, of 9", onePlace{putLast{5}, 5, 9}, []graph.Type{ids(2), f(2)}},
		{"offsets are", groupedMatMulPart{groupedMatMul{}, 0, 4, 9},
			[]graph.Type{f(8, 2), f(2, 2, 3), ids(3)}},
		{"of experts from 3 on, of 4", groupedMatMulPart{groupedMatMul{}, 3, 4, 9},
			[]graph.Type{f(8, 2), f(2, 2, 3), ids(5)}},
		{"3 columns of 2", groupedMatMulPart{groupedMatMul{}, 0, 4, 2},
			[]graph.Type{f(8, 2), f(2, 2, 3), ids(5)}},
		{"want weights of 3 experts from 2 on", groupedOuterPart{2, 3, 4, 9, 9},
			[]graph.Type{f(8, 2), f(8, 3), ids(5)}},
	} {
		if _, err := c.op.Infer(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v%v: want %q, have %v", c.op, c.in, c.want, err)
		}
	}
}

// TestWindowsFuse: a random operation on a part is one of a chain, as on the whole.
func TestWindowsFuse(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4, 6))
	seed := g.Input("seed", tensor.Of(graph.I32, 2))
	in, out := []graph.Type{x.Type(), seed.Type()}, []graph.Type{x.Type()}
	r, _ := dropout{Rate: 0.5, Salt: 3}.Split(in, out)
	at := make([]graph.Part, len(r.Factors))
	at[1] = graph.Part{N: 2, I: 1}
	half := Slice(x, 1, 3, 6)
	y := apply(r.Local(at), half, seed)
	fused, ok := Fuse(Application{y.Node.Op, y.Node.In}, Application{unary{tanh}, []graph.Value{y}},
		y)
	if !ok || fused.Op.Name() != "dropout+tanh" || !fused.Type().Equal(y.Type()) {
		t.Errorf("fused to %v: %v", fused, ok)
	}
}
