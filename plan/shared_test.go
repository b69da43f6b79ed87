package plan_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// newSharing is a step that updates two variables that workers share, one of which the
// device reads, and exchanges an input.
func newSharing() bench {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 2))
	v, w := g.Variable("v", tensor.Of(graph.F32, 2), graph.Init{}),
		g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	g.Share(v, graph.How{})
	g.Share(w, graph.How{Fold: graph.Sum, Via: "ps"})
	sum := ops.Await(ops.Send(x, "x", graph.How{}))
	loss := g.Apply(rigid{"loss", 1, 0}, v).Value(0)
	a := g.Update(rigid{"sgd", 0, 0}, []graph.Value{v}, sum)
	b := g.Update(rigid{"sgd", 0, 0}, []graph.Value{w}, sum)
	return bench{g, []graph.Value{loss}, []graph.NodeID{a.ID, b.ID}}
}

// sharing is its plan.
const sharing = `plan by hand
graph DIGEST
parts 1
space device 72 of 100 align 64
space host 328 of 400 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream host runs in host
stream send copies host to network
stream await copies network to host
slot 0 host+0 8 fixed f32[2] : v
slot 1 host+64 8 fixed f32[2] : w
slot 2 host+128 8 0-1 f32[2] : x
slot 3 host+192 8 1-8 f32[2] : send
slot 4 device+0 8 3-4 f32[2] : v
slot 5 device+64 8 4-5 f32[2] : loss
slot 6 host+320 8 5-10 f32[2] : loss
feed #0 2 : x
variable #1 0 : v
variable #2 1 : w
step 0 p0 await #1 await 0 8 : v
step 1 p0 send #3 send 3 8 mean <- 2 : send
step 2 p0 await #4 await 3 8 wait 1 : await
step 3 p0 in #1 copy 4 <- 0 8 stage wait 0 : v
step 4 p0 compute0 #5 launch loss 5 <- 4 wait 3 : loss
step 5 p0 out #5 copy 6 <- 5 8 fetch wait 4 : loss
step 6 p0 host #6 launch sgd <- 0 3 mutates 1 wait 2 3 : sgd
step 7 p0 await #2 await 1 8 : w
step 8 p0 host #7 launch sgd <- 1 3 mutates 1 wait 7 : sgd_2
step 9 p0 send #1 send 0 8 mean <- 0 wait 6 : v
step 10 p0 send #2 send 1 8 sum/ps <- 1 wait 8 : w
fetch 6 f32[2] : loss
`

// TestShared: a variable that workers share is awaited before anything reads it, and sent
// after its update; every promise that is broken is noticed, in these words.
func TestShared(t *testing.T) {
	b := newSharing()
	b.broken(t, sharing, []promise{
		{"", "", ""},
		{"step 0 p0 await #1 await 0 8 : v", "step 0 p0 in #0 copy 4 <- 2 8 feed : x",
			"step 0 (x): slot 4 (v) is live from step 3 to 4 only"},
		{"await #2 await 1 8 : w", "await #1 await 0 8 wait 6 : v",
			"step 7 (v): awaits v in slot 0, which holds v"},
		{"await #2 await 1 8 : w", "await #2 await 3 8 : w",
			"step 7 (w): exchanges slot 3 (send), which is no variable's"},
		{"await #2 await 1 8 : w", "await #2 await 1 4 : w",
			"step 7 (w): awaits 4 bytes of f32[2]"},
		{"in #1 copy 4 <- 0 8", "in #2 copy 4 <- 1 8",
			"step 3 (v): is of node 2, which is called w"},
		{"in #1 copy 4 <- 0 8 stage wait 0 : v", "in #2 copy 4 <- 1 8 stage wait 0 : w",
			"step 3 (w): copies w, which the network has"},
		{"await #2 await 1 8 : w|sgd_2", "await #4 await 3 8 wait 1 : await|sgd_2",
			"step 7 (await): awaits send in slot 3, which holds await"},
		{"send #1 send 0 8 mean <- 0 wait 6 : v", "send #2 send 1 8 sum/ps <- 1 wait 8 : w",
			"step 10 (w): sends w, which is not updated in slot 1"},
		{"send #1 send 0 8 mean <- 0 wait 6 : v\nstep 10 p0 send #2 send 1 8 sum/ps <- 1 " +
			"wait 8 : w",
			"send #2 send 1 8 sum/ps <- 1 wait 8 : w\nstep 10 p0 send #1 send 0 8 mean <- 0 " +
				"wait 6 : v",
			"step 10 (v): sends after w, which comes later in the graph"},
		{"send #1 send 0 8 mean <- 0", "send #1 send 0 8 sum <- 0",
			"step 9 (v): sends 8 bytes for their sum: the variable is f32[2], for their mean"},
		{"send #1 send 0 8 mean <- 0", "send #1 send 0 8 mean <- 1",
			"step 9 (v): sends 8 bytes for their mean: the variable is f32[2], for their mean"},
		{"send 0 8 mean <- 0 wait 6", "send 0 8 mean <- 0",
			"step 9 (v): does not wait for step 6, which writes slot 0 (v)"},
		{"host #6 launch sgd <- 0 3 mutates 1 wait 2 3 : sgd| wait 6 : v",
			"send #1 send 0 8 mean <- 0 wait 3 : v| : v",
			"step 6 (v): sends v, which is not updated in slot 0"},
		{"step 10 p0 send #2 send 1 8 sum/ps <- 1 wait 8 : w\n", "",
			"loss: slot 6 has no life: 8 bytes of f32[2] at 320 in host, live from step 5 to 10"},
		{"5-10|step 10 p0 send #2 send 1 8 sum/ps <- 1 wait 8 : w\n", "5-9|",
			"w: is updated and not sent when the step ends"},
	})
}
