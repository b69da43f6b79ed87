package plan_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// newScattering is a step in which a result leaves the device to be added up, and this
// worker's block of the sum comes back to it.
func newScattering() bench {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	y := g.Apply(rigid{"made", 1, 0}, x).Value(0)
	block := ops.ReduceScatter(y, "y", "a", 2)
	z := g.Apply(rigid{"used", 1, 0}, block).Value(0)
	return bench{g, []graph.Value{z}, nil}
}

// scattering is its plan: the slot that was sent has twice the bytes of what is awaited.
const scattering = `plan by hand
graph DIGEST
parts 1
space device 136 of 200 align 64
space host 136 of 200 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream send copies host to network
stream await copies network to host
slot 0 host+0 16 0-0 f32[4] : x
slot 1 device+0 16 0-1 f32[4] : x
slot 2 device+64 16 1-2 f32[4] : made
slot 3 host+64 16 2-5 f32[4] : made
slot 4 device+0 8 5-6 f32[2] : arrive
slot 5 device+128 8 6-7 f32[2] : used
slot 6 host+128 8 7-7 f32[2] : used
feed #0 0 : x
step 0 p0 in #0 copy 1 <- 0 16 feed : x
step 1 p0 compute0 #1 launch made 2 <- 1 wait 0 : made
step 2 p0 out #1 copy 3 <- 2 16 gradient wait 1 : made
step 3 p0 send #2 send 3 16 scatter@a <- 3 wait 2 : send-scatter
step 4 p0 await #3 await 3 8 wait 3 : arrive
step 5 p0 in #3 copy 4 <- 3 8 swap-in wait 1 4 : arrive
step 6 p0 compute0 #4 launch used 5 <- 4 wait 5 : used
step 7 p0 out #4 copy 6 <- 5 8 fetch wait 6 : used
fetch 6 f32[2] : used
`

// TestBrokenBlocks: a block of a sum is where the whole was sent, and no more of it is
// there; what is sent goes along the axis that the graph says.
func TestBrokenBlocks(t *testing.T) {
	newScattering().broken(t, scattering, []promise{
		{"", "", ""},
		{"scatter@a", "scatter@b", "step 3 (send-scatter): sends 1 operands for their scatter@b: " +
			"the node is send-scatter of 1, for their scatter@a"},
		{"scatter@a", "swap@a", "step 3 (send-scatter): sends 1 operands for their swap@a: " +
			"the node is send-scatter of 1, for their scatter@a"},
		{"send 3 16", "send 3 8", "step 3 (send-scatter): sends 8 bytes of f32[4]"},
		{"await 3 8", "await 3 16", "step 4 (arrive): awaits 16 bytes of f32[2]"},
		{"copy 4 <- 3 8 swap-in", "copy 4 <- 3+8 8 swap-in",
			"step 5 (arrive): copies undefined bytes of slot 3"},
		{"copy 4 <- 3 8 swap-in wait 1 4", "copy 4 <- 3 8 swap-in wait 1",
			"step 5 (arrive): does not wait for step 4, which writes slot 3 (made)"},
	})
}
