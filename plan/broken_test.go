package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// broken is a plan with one promise broken, and what Verify says of it.
type broken struct {
	name   string
	edits  []string // of the text
	change func(p *plan.Plan)
	want   string
}

// change changes the copy of a step.
func change(p *plan.Plan, i int, f func(c *plan.Copy)) {
	c := p.Steps[i].Do.(plan.Copy)
	f(&c)
	p.Steps[i].Do = c
}

// TestBrokenPromises: every promise that is broken is noticed, in these words.
func TestBrokenPromises(t *testing.T) {
	b := newBench()
	for _, c := range slices.Concat(formPromises, sensePromises) {
		t.Run(c.name, func(t *testing.T) {
			p := b.plan(t, c.edits...)
			if c.change != nil {
				c.change(p)
			}
			err := b.verify(p)
			want := strings.ReplaceAll(c.want, "HEX", strings.TrimPrefix(b.g.Digest(), "sha256:"))
			if _, ok := errors.AsType[*plan.Error](err); !ok || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// TestDeadNodes: what nobody asked for does not run.
func TestDeadNodes(t *testing.T) {
	b := newBench()
	b.updates = nil
	const want = "plan: step 8 (sgd): runs a dead node"
	if err := b.verify(b.plan(t)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestUpdateReadsItself: an update may not read what it writes.
func TestUpdateReadsItself(t *testing.T) {
	g := graph.New()
	w := g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	n := g.Update(rigid{"sgd", 0, 0}, []graph.Value{w}, w)
	b := bench{g, nil, []graph.NodeID{n.ID}}
	p, err := plan.Parse(strings.NewReader(ended(`plan by hand
graph ` + g.Digest() + `
parts 1
space device 0 of 0 align 64
space host 8 of 8 align 64
stream host runs in host
slot 0 host+0 8 fixed f32[2] : w
variable #0 0 : w
step 0 p0 host #1 launch sgd <- 0 0 mutates 1 : sgd
`)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "plan: step 0 (sgd): reads w while it is updated"
	if err := b.verify(p); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestWrittenBackElsewhere: what an update has made of a variable is not written
// over another.
func TestWrittenBackElsewhere(t *testing.T) {
	g := graph.New()
	g.Variable("v", tensor.Of(graph.F32, 2), graph.Init{})
	w := g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	n := g.Update(rigid{"sgd", 0, 0}, []graph.Value{w})
	b := bench{g, nil, []graph.NodeID{n.ID}}
	for slot, want := range map[string]string{
		"1": "<nil>", "0": "plan: step 2 (w): writes w over v",
	} {
		p, err := plan.Parse(strings.NewReader(ended(`plan by hand
graph ` + g.Digest() + `
parts 1
space device 8 of 8 align 64
space host 72 of 72 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
slot 0 host+0 8 fixed f32[2] : v
slot 1 host+64 8 fixed f32[2] : w
slot 2 device+0 8 0-2 f32[2] : w
variable #0 0 : v
variable #1 1 : w
step 0 p0 in #1 copy 2 <- 1 8 stage : w
step 1 p0 compute0 #2 launch sgd <- 2 mutates 1 wait 0 : sgd
step 2 p0 out #1 copy ` + slot + ` <- 2 8 write-back wait 1 : w
`)))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.verify(p); fmt.Sprint(err) != want {
			t.Errorf("into slot %s: %v, want %s", slot, err, want)
		}
	}
}

// TestVariablesApart: variables may not overlap, even where nothing runs.
func TestVariablesApart(t *testing.T) {
	g := graph.New()
	g.Variable("v", tensor.Of(graph.F32, 2), graph.Init{})
	g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	b := bench{g: g}
	for off, want := range map[string]string{
		"64": "<nil>", "0": "plan: w: slot 1 overlaps slot 0 (v) at step 0",
	} {
		peak := map[string]string{"64": "72", "0": "8"}[off]
		p, err := plan.Parse(strings.NewReader(ended(`plan by hand
graph ` + g.Digest() + `
parts 0
space device 0 of 0 align 64
space host ` + peak + ` of 100 align 64
slot 0 host+0 8 fixed f32[2] : v
slot 1 host+` + off + ` 8 fixed f32[2] : w
variable #0 0 : v
variable #1 1 : w
`)))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.verify(p); fmt.Sprint(err) != want {
			t.Errorf("at %s: %v, want %s", off, err, want)
		}
	}
}
