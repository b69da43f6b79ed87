package plan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// rigid is an operation that is only a shape: results of the type of operand 0,
// and scratch.
type rigid struct {
	Kind    string
	Results int
	Scratch int64
}

func (f rigid) Name() string { return f.Kind }

func (f rigid) Infer(in []graph.Type) ([]graph.Type, error) {
	return slices.Repeat(in[:1], f.Results), nil
}

func (f rigid) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{Scratch: f.Scratch} }

func (f rigid) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

// supple is one whose result 0 may take the bytes of operand 0.
type supple struct{ rigid }

func (supple) InPlace(_, _ []graph.Type) []int { return []int{0} }

// halves is a view: the two halves of its operand.
type halves struct{}

func (halves) Name() string { return "halves" }

func (halves) Infer(in []graph.Type) ([]graph.Type, error) {
	return slices.Repeat([]graph.Type{tensor.Of(graph.F32, in[0].Elems()/2)}, 2), nil
}

func (halves) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

func (halves) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func (halves) View(in, _ []graph.Type) []int64 { return []int64{0, in[0].Bytes() / 2} }

// bench is a small target with a plan made by hand.
type bench struct {
	g       *graph.Graph
	fetches []graph.Value
	updates []graph.NodeID
}

// newBench is a step with an input, a variable of which half is staged, a
// constant, scratch, two results, work in place, a reader of the variable on the
// host, an update, and a fetched half.
func newBench() bench {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 2))
	w := g.Variable("w", tensor.Of(graph.F32, 2, 2), graph.Init{})
	k := g.Constant("k", tensor.FromF32([]float32{1, 2}, 2))
	split := g.Apply(halves{}, w)
	mix := g.Apply(rigid{"mix", 2, 80}, x, split.Value(1), k)
	relu := g.Apply(supple{rigid{"relu", 1, 8}}, mix.Value(0))
	add := g.Apply(supple{rigid{"add", 1, 0}}, relu.Value(0), mix.Value(1))
	sgd := g.Update(rigid{"sgd", 0, 0}, []graph.Value{w}, add.Value(0))
	half := g.Apply(halves{}, add.Value(0))
	norm := g.Apply(rigid{"norm", 1, 0}, w)
	return bench{g, []graph.Value{add.Value(0), half.Value(1), norm.Value(0)},
		[]graph.NodeID{sgd.ID}}
}

// text is the bench's plan without its end; DIGEST stands for its graph's.
const text = `plan by hand
graph DIGEST
parts 3
window 2
space device 400 of 500 align 64
space host 208 of 500 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream host runs in host
slot 0 host+0 16 fixed f32[2 2] : w
slot 1 host+64 8 fixed f32[2] : k
slot 2 host+128 8 0-0 f32[2] : x
slot 3 device+0 8 0-3 f32[2] : x
slot 4 device+64 8 1-3 u8[8] : w
slot 5 device+128 8 2-3 f32[2] : k
slot 6 device+192 8 3-5 f32[2] : mix
slot 7 device+256 8 3-5 f32[2] : mix:1
slot 8 device+320 80 3-3 u8[80] : scratch of mix
slot 9 device+64 8 4-4 u8[8] : scratch of relu
slot 10 device+0 8 5-6 f32[2] : add
slot 11 host+128 8 6-8 f32[2] : add
slot 12 host+192 16 7-8 f32[2 2] : norm
feed #0 2 : x
variable #1 0 : w
variable #2 1 : k
step 0 p0 in #0 copy 3 <- 2 8 feed : x
step 1 p0 in #1 copy 4 <- 0+8 8 stage : w
step 2 p0 in #2 copy 5 <- 1 8 stage : k
step 3 p0 compute0 #4 launch mix 6 7 <- 3 4 5 scratch 8 wait 2 : mix
step 4 p1 compute0 #5 launch relu 6 <- 6 scratch 9 : relu
step 5 p2 compute0 #6 launch add 10 <- 6 7 : add
step 6 p2 out #6 copy 11 <- 10 8 gradient wait 5 : add
step 7 p2 host #9 launch norm 12 <- 0 wait 5 : norm
step 8 p2 host #7 launch sgd <- 0 11 mutates 1 wait 6 : sgd
fetch 11 f32[2] : add
fetch 11+4 f32[1] : halves_2:1
fetch 12 f32[2 2] : norm
`

// more stages the constant again where relu's result was, one step later.
var more = []string{
	"6-8 f32[2] : add", "6-9 f32[2] : add", "7-8 f32[2 2] : norm", "7-9 f32[2 2] : norm",
	"feed #0", "slot 13 device+192 8 9-9 f32[2] : k\nfeed #0",
	"fetch 11 f32", "step 9 p2 in #2 copy 13 <- 1 8 stage wait 5 : k\nfetch 11 f32",
}

// flat is all in one partition: only what the steps touch orders them.
var flat = []string{"parts 3", "parts 1", "step 4 p1", "step 4 p0", "step 5 p2", "step 5 p0",
	"step 6 p2", "step 6 p0", "step 7 p2", "step 7 p0", "step 8 p2", "step 8 p0"}

// flatMore is both.
var flatMore = slices.Concat(more, []string{"step 9 p2", "step 9 p0"}, flat)

// again runs mix once more, at the end, where all the operands still are.
var again = []string{
	"0-3 f32[2] : x", "0-9 f32[2] : x", "1-3 u8", "1-9 u8", "2-3 f32[2] : k", "2-9 f32[2] : k",
	"slot 9 device+64", "slot 9 device+384", "slot 10 device+0", "slot 10 device+320",
	"6-8 f32[2] : add", "6-9 f32[2] : add", "7-8 f32[2 2] : norm", "7-9 f32[2 2] : norm",
	"feed #0", `slot 13 device+192 8 9-9 f32[2] : mix
slot 14 device+256 8 9-9 f32[2] : mix:1
slot 15 device+320 80 9-9 u8[80] : scratch of mix
feed #0`,
	"fetch 11 f32", "step 9 p2 compute0 #4 launch mix 13 14 <- 3 4 5 scratch 15 wait 6 : mix\n" +
		"fetch 11 f32",
}

// back updates the variable on the device, in the copy that mix reads too, and
// writes it back.
var back = []string{
	"slot 4 device+64 8 1-3 u8[8]", "slot 4 device+448 16 1-9 f32[2 2]",
	"copy 4 <- 0+8 8", "copy 4 <- 0 16",
	"mix 6 7 <- 3 4 5", "mix 6 7 <- 3 4+8 5",
	"host #7 launch sgd <- 0 11", "compute0 #7 launch sgd <- 4 10",
	"device+0 8 5-6", "device+0 8 5-8",
	"device 400", "device 464",
	"6-8 f32[2] : add", "6-9 f32[2] : add", "7-8 f32[2 2] : norm", "7-9 f32[2 2] : norm",
	"fetch 11 f32", "step 9 p2 out #1 copy 0 <- 4 16 write-back wait 7 8 : w\nfetch 11 f32",
}

// text is the plan's text with some of it replaced, pairs of old and new.
func (b bench) text(t testing.TB, edits ...string) string {
	t.Helper()
	s := strings.Replace(text, "DIGEST", b.g.Digest(), 1)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(s, edits[i]) {
			t.Fatalf("nothing to replace: %q", edits[i])
		}
		s = strings.Replace(s, edits[i], edits[i+1], 1)
	}
	return ended(s)
}

func (b bench) plan(t *testing.T, edits ...string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse(strings.NewReader(b.text(t, edits...)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b bench) verify(p *plan.Plan) error { return plan.Verify(p, b.g, b.fetches, b.updates) }

// TestVerify: the plan made by hand keeps every promise, and survives its text;
// so do some changes of it.
func TestVerify(t *testing.T) {
	b := newBench()
	for name, edits := range map[string][]string{
		"as it is": nil, "longer": more, "flat": flat, "both": flatMore,
		"recomputed": again, "written back": back,
		"one partition in flight": {"window 2", "window 1"}, "all in flight": {"window 2\n", ""},
		"over the end of scratch": slices.Concat(more,
			[]string{"slot 13 device+192", "slot 13 device+384"}),
		"over the start of scratch": slices.Concat(more,
			[]string{"slot 13 device+192", "slot 13 device+320"}),
		"partitions left out": {"parts 3", "parts 10", "step 4 p1", "step 4 p4", "step 5 p2",
			"step 5 p9", "step 6 p2", "step 6 p9", "step 7 p2", "step 7 p9", "step 8 p2",
			"step 8 p9"},
	} {
		p := b.plan(t, edits...)
		if err := b.verify(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var out bytes.Buffer
		if _, err := p.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.text(t, edits...), out.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
