package planner

import (
	"context"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// crossing is a graph with exchanges between devices, or, for the same values, over the network.
func crossing(t *testing.T, peers bool) (*graph.Graph, Target) {
	t.Helper()
	g := graph.New()
	v := g.Input("x", tensor.Of(graph.F32, 4, 8))
	how := graph.How{Fold: graph.Swap, Along: "a"}
	add := func(name string, op graph.Op, in graph.Value) graph.Value {
		n, err := g.Copy(&graph.Node{Name: name, Kind: graph.KindCompute, Op: op}, op, in)
		if err != nil {
			t.Fatal(err)
		}
		return n.Value(0)
	}
	for _, name := range []string{"a", "b"} {
		v = ops.Tanh(v)
		if peers {
			x := graph.Exchange{Name: name, How: how, Parts: 2}
			v = add(name, ops.Peered(x), v)
		} else {
			v = add(name, ops.Awaited(how, 2), add(name+"/send", ops.Sent(name, how, 2, 0), v))
		}
	}
	return g, Target{Name: "all", Fetches: []graph.Value{ops.Tanh(v)}}
}

// TestPeersAreProven: a plan has an exchange between devices as one step, which its text has too.
// One in another way, of another length, over what others copy or on another engine is refused, and
// so is one of devices that do not reach each other.
func TestPeersAreProven(t *testing.T) {
	g, target := crossing(t, true)
	apart, other := crossing(t, false)
	for _, policy := range []Policy{Thesis, Auto} {
		r, err := Compile(context.Background(), g, target, Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		p := r.Plan
		var b strings.Builder
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if p, err = plan.Parse(strings.NewReader(b.String())); err != nil {
			t.Fatal(err)
		}
		var at []int
		for i, s := range p.Steps {
			if _, ok := s.Do.(plan.Peer); ok {
				at = append(at, i)
			}
		}
		if err := plan.Verify(p, g, target.Fetches, nil); err != nil || len(at) != 2 {
			t.Fatalf("%s: %v; exchanges are %v", policy, err, at)
		}
		refused := func(want string, change func(s *plan.Step, do *plan.Peer)) {
			t.Helper()
			was := p.Steps[at[0]]
			now, do := was, was.Do.(plan.Peer)
			change(&now, &do)
			now.Do = do
			p.Steps[at[0]] = now
			err := plan.Verify(p, g, target.Fetches, nil)
			if p.Steps[at[0]] = was; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: want %q", policy, err, want)
			}
		}
		refused("for their copy", func(_ *plan.Step, do *plan.Peer) { do.How.Fold = graph.Copy })
		refused("127 bytes", func(_ *plan.Step, do *plan.Peer) { do.Bytes-- })
		refused("on a stream that", func(s *plan.Step, _ *plan.Peer) { s.Stream, s.Wait = 0, nil })
		refused("what the others copy", func(_ *plan.Step, do *plan.Peer) { do.Out = do.In[0] })
		p.Digest = apart.Digest()
		if err := plan.Verify(p, apart, other.Fetches, nil); err == nil {
			t.Errorf("%s: devices that do not reach each other exchange", policy)
		}
	}
}
