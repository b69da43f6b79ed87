package plan_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// A plan is made by package planner, printed, read back and verified. Each slot is a range of
// bytes with its first and its last step; each step is something that a stream does.
func Example() {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 8, 16))
	w := g.Variable("w", graph.Of(graph.F32, 16, 4), graph.Init{})
	y := ops.MatMul(x, w)
	target := planner.Target{Name: "eval", Fetches: []graph.Value{y}}
	made, err := planner.Compile(context.Background(), g, target, planner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range made.Plan.Steps {
		fmt.Println(made.Plan.StepString(i))
	}
	var text bytes.Buffer
	if _, err := made.Plan.WriteTo(&text); err != nil {
		fmt.Println(err)
		return
	}
	read, err := plan.Parse(&text)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("verified:", plan.Verify(read, g, target.Fetches, target.Updates) == nil)
	// Output:
	// step 0 p0 in #0 copy 2 <- 0 512 feed : x
	// step 1 p0 in #1 copy 3 <- 1 256 stage : w
	// step 2 p0 compute0 #2 launch matmul 4 <- 2 3 wait 1 : matmul
	// step 3 p0 out #2 copy 5 <- 4 128 fetch wait 2 : matmul
	// verified: true
}

// What holds the memory at the worst moment of a step.
func ExamplePlan_Peak() {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 64, 64))
	y := ops.MatMul(ops.Tanh(x), x)
	target := planner.Target{Name: "eval", Fetches: []graph.Value{y}}
	made, err := planner.Compile(context.Background(), g, target, planner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	peak := made.Plan.Peak(space.Device, 2)
	fmt.Printf("%d bytes, in %s\n", peak.Bytes, peak.At)
	for _, h := range peak.Largest {
		fmt.Printf("%d bytes: %s %s\n", h.Bytes, h.Value, h.Type)
	}
	// Output:
	// 49152 bytes, in matmul
	// 16384 bytes: x f32[64 64]
	// 16384 bytes: tanh f32[64 64]
}

// A text that is cut off is no plan.
func ExampleParse() {
	_, err := plan.Parse(bytes.NewBufferString("plan train\nparts 1\n"))
	fmt.Println(err)
	// Output:
	// plan line 2: there is no end line: the text is cut off, or an older gomem's
}
