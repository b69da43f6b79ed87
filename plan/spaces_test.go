package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
)

// deep keeps a variable on a disk: it comes to the device by way of the host, is
// updated there, and goes back by the same way; so does what is swapped out.
const deep = `plan by hand
graph DIGEST
parts 1
space device 80 of 80 align 64
space host 80 of 80 align 64
space disk 4112 of 9000 align 4096
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream load copies disk to host
stream store copies host to disk
slot 0 disk+0 16 fixed f32[4] : w
slot 1 host+0 16 0-9 f32[4] : w
slot 2 device+0 16 1-8 f32[4] : w
slot 3 device+64 16 2-3 f32[4] : norm
slot 4 host+64 16 3-4 f32[4] : norm
slot 5 disk+4096 16 4-5 f32[4] : norm
slot 6 host+64 16 5-9 f32[4] : norm
slot 7 device+64 16 6-7 f32[4] : norm
variable #0 0 : w
step 0 p0 load #0 copy 1 <- 0 16 stage : w
step 1 p0 in #0 copy 2 <- 1 16 stage wait 0 : w
step 2 p0 compute0 #1 launch norm 3 <- 2 wait 1 : norm
step 3 p0 out #1 copy 4 <- 3 16 swap-out wait 2 : norm
step 4 p0 store #1 copy 5 <- 4 16 swap-out wait 3 : norm
step 5 p0 load #1 copy 6 <- 5 16 swap-in wait 4 : norm
step 6 p0 in #1 copy 7 <- 6 16 swap-in wait 3 5 : norm
step 7 p0 compute0 #2 launch sgd <- 2 7 mutates 1 wait 6 : sgd
step 8 p0 out #0 copy 1 <- 2 16 write-back wait 1 7 : w
step 9 p0 store #0 copy 0 <- 1 16 write-back wait 8 : w
fetch 6 f32[4] : norm
`

// TestThirdSpace: a plan may have more spaces, each with streams of its own; what
// goes outwards and inwards is told from their order.
func TestThirdSpace(t *testing.T) {
	g := graph.New()
	w := g.Variable("w", tensor.Of(graph.F32, 4), graph.Init{})
	norm := g.Apply(rigid{"norm", 1, 0}, w).Value(0)
	n := g.Update(rigid{"sgd", 0, 0}, []graph.Value{w}, norm)
	b := bench{g, []graph.Value{norm}, []graph.NodeID{n.ID}}
	for _, c := range []struct {
		edits []string
		want  string
	}{
		{nil, "<nil>"},
		{[]string{"disk+4096", "disk+64", "disk 4112", "disk 80"},
			"plan: norm: slot 5 is not aligned: 16 bytes of f32[4] at 64 in disk, live from " +
				"step 4 to 5"},
		{[]string{"of 9000", "of 4111"}, "plan: disk: needs 4112 bytes of a budget of 4111"},
		{[]string{"store copies host to disk", "store copies device to disk"},
			"plan: step 4 (norm): slot 4 (norm) is in host memory: the engine needs it in " +
				"device memory"},
		{[]string{"load copies disk to host", "load copies disk to device"},
			"plan: step 0 (w): slot 1 (w) is in host memory: the engine needs it in device memory"},
		{[]string{"copy 5 <- 4 16 swap-out", "copy 5 <- 4 16 swap-in"},
			"plan: step 4 (norm): copies norm as swap-in"},
		{[]string{"copy 6 <- 5 16 swap-in", "copy 6 <- 5 16 swap-out"},
			"plan: step 5 (norm): copies norm as swap-out"},
		{[]string{"copy 1 <- 0 16 stage", "copy 1 <- 0 16 write-back"},
			"plan: step 0 (w): copies w as write-back"},
		{[]string{"copy 0 <- 1 16 write-back wait 8", "copy 0 <- 1 16 write-back"},
			"plan: step 9 (w): does not wait for step 8, which writes slot 1 (w)"},
		{[]string{"step 9 p0 store #0 copy 0 <- 1 16 write-back wait 8 : w\n", "", "5-9", "5-8",
			"0-9", "0-8"},
			"plan: w: slot 0 has the variable from before its update when the step ends"},
		{[]string{"fetch 6", "fetch 5", "4-5 f32", "4-9 f32"},
			"plan: norm: fetch 0 is not in host memory when the step ends"},
		{[]string{"runs in device", "runs in disk"},
			"plan: step 2 (norm): slot 2 (w) is in device memory: the engine needs it in disk " +
				"memory"},
	} {
		text := strings.Replace(deep, "DIGEST", g.Digest(), 1)
		for i := 0; i < len(c.edits); i += 2 {
			if !strings.Contains(text, c.edits[i]) {
				t.Fatalf("nothing to replace: %q", c.edits[i])
			}
			text = strings.Replace(text, c.edits[i], c.edits[i+1], 1)
		}
		text = ended(text)
		p := parse(t, text)
		if err := b.verify(p); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		if got := printed(t, p); got != text {
			t.Errorf("reads back as %s", got)
		}
	}
	p := parse(t, ended(strings.Replace(deep, "DIGEST", g.Digest(), 1)))
	if tr := p.Traffic(); tr.In() != 64 || tr.Out() != 64 || tr[space.WriteBack] != 32 {
		t.Errorf("traffic is %v", tr)
	}
	read := p.Copied(space.Copier(space.Disk, space.Host))
	written := p.Copied(space.Copier(space.Host, space.Disk))
	if beside := p.Copied(space.Copier(space.Disk, space.Device)); read != 32 || written != 32 ||
		beside != 0 {
		t.Errorf("%d bytes read, %d written, %d past the host", read, written, beside)
	}
}
