package planner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
)

// TestPlansGather: in a plan for a network that gathers, every await is after the sends before it,
// which its text says and verifying proves; without one of the waits that see to it, it is refused.
// Other plans wait for less.
func TestPlansGather(t *testing.T) {
	missed := 0
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Exchanging(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "p") },
			20)
		o := randomOptions(t)
		freely := made(t, m, o)
		o.Gathers = true
		p := made(t, m, o)
		if read, err := plan.Parse(strings.NewReader(text(t, p))); err != nil ||
			read.Gathers != m.Graph.Exchanges() {
			t.Fatalf("%v: it does not gather as a text", err)
		}
		if freely.Gathers {
			t.Fatal("a plan gathers unasked")
		}
		if !m.Graph.Exchanges() {
			return
		}
		freely.Gathers = true
		if plan.Verify(freely, m.Graph, m.Fetches, m.Updates) != nil {
			missed++ // it is possible that nothing is sent before the first await
		}
		sent := -1
		for i, s := range p.Steps {
			switch s.Do.(type) {
			case plan.Send:
				sent = i
			case plan.Await:
				at := slices.Index(s.Wait, sent)
				if at < 0 {
					continue // it follows from other waits
				}
				p.Steps[i].Wait = slices.Delete(slices.Clone(s.Wait), at, at+1)
				if err := plan.Verify(p, m.Graph, m.Fetches, m.Updates); err == nil {
					t.Fatalf("step %d need not wait for step %d", i, sent)
				}
				p.Steps[i].Wait = s.Wait
			}
		}
	})
	if missed == 0 {
		t.Error("no plan that does not gather was refused as one that does")
	}
}

func text(t *rapid.T, p *plan.Plan) string {
	var b strings.Builder
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func made(t *rapid.T, m *randgraph.Model, o Options) *plan.Plan {
	r, err := Compile(context.Background(), m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}
