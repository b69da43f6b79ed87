package plan_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// newGathering is a step that brings together what three workers have of a value.
func newGathering() bench {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 2))
	grad := g.Apply(rigid{"grad", 1, 0}, x).Value(0)
	all := ops.Await(ops.SendPart(grad, "w", 3))
	return bench{g, []graph.Value{all}, nil}
}

// gathering is its plan.
const gathering = `plan by hand
graph DIGEST
parts 1
space device 72 of 100 align 64
space host 152 of 300 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream host runs in host
stream send copies host to network
stream await copies network to host
slot 0 host+0 8 0-0 f32[2] : x
slot 1 device+0 8 0-1 f32[2] : x
slot 2 device+64 8 1-2 f32[2] : grad
slot 3 host+64 8 2-3 f32[2] : grad
slot 4 host+128 24 3-4 f32[6] : send-part
feed #0 0 : x
step 0 p0 in #0 copy 1 <- 0 8 feed : x
step 1 p0 compute0 #1 launch grad 2 <- 1 wait 0 : grad
step 2 p0 out #1 copy 3 <- 2 8 gradient wait 1 : grad
step 3 p0 send #2 send 4 24 gather <- 3 wait 2 : send-part
step 4 p0 await #3 await 4 24 wait 3 : await
fetch 4 f32[6] : await
`

// TestGather: what is sent is a part of what is awaited, and the plan has room for the
// whole; every promise that is broken is noticed, in these words.
func TestGather(t *testing.T) {
	b := newGathering()
	b.broken(t, gathering, []promise{
		{"", "", ""},
		{"gather", "sum", "step 3 (send-part): sends 1 operands for their sum: the node is " +
			"send-part of 1, for their gather"},
		{"send 4 24", "send 4 8", "step 3 (send-part): sends 8 bytes of f32[6]"},
		{"send 4 24 gather <- 3|await 4 24", "send 3 24 gather <- 3|await 3 24",
			"step 3 (send-part): 24 bytes at 0 are outside slot 3 of 8 bytes"},
		{"await 4 24", "await 4 8", "step 4 (await): awaits 8 bytes of f32[6]"},
		{"host+128 24 3-4 f32[6]", "host+128 8 3-4 f32[2]",
			"step 3 (send-part): 24 bytes at 0 are outside slot 4 of 8 bytes"},
		{"host+128 24 3-4", "host+128 24 4-4", "step 3 (send-part): slot 4 (send-part) is live " +
			"from step 4 to 4 only"},
	})
}
