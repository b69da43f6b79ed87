package planner

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
)

// TestWhatIsPlannedIsKnown: of plans that were made already, the least and the remedies are
// those of the graph, by the same options and by others.
func TestWhatIsPlannedIsKnown(t *testing.T) {
	draws(t, 1, 40, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		if rapid.Bool().Draw(t, "unfused") {
			o.NoFusion = true
		}
		p, err := Plan(ctx, g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		asked := o
		if rapid.Bool().Draw(t, "by other options") {
			asked = anyOptions(t)
		}
		asked.DeviceBytes = p.Peak(space.Device)
		if rapid.Bool().Draw(t, "chosen alone") {
			p = p.Chosen()
		}
		have, errHave := p.LeastOf(ctx, asked, space.Device)
		want, errWant := LeastOf(ctx, g, asked, space.Device, targets...)
		if have != want || errHave != nil || errWant != nil {
			t.Fatalf("the least is %d, %v, want %d, %v", have, errHave, want, errWant)
		}
		small, errHave := p.Smaller(ctx, asked, have)
		other, errWant := whole(p.Graph, p.Targets).Smaller(ctx, asked, have)
		if small != other || errHave != nil || errWant != nil {
			t.Fatalf("with smaller partitions %+v, %v, want %+v, %v", small, errHave, other,
				errWant)
		}
	})
}

// TestOtherNumbersAreNotKnown: of plans in f32 nothing is known in bfloat16, nor the other way
// round.
func TestOtherNumbersAreNotKnown(t *testing.T) {
	g := graph.New()
	y := g.Input("x", tensor.Of(graph.F32, 256, 64))
	for _, name := range []string{"u", "v", "w"} {
		y = ops.Tanh(ops.MatMul(y, g.Variable(name, tensor.Of(graph.F32, 64, 64), graph.Init{})))
	}
	targets, ctx := []Target{{Name: "eval", Fetches: []graph.Value{y}}}, context.Background()
	least := map[precision.Precision]int64{}
	for _, x := range []precision.Precision{precision.F32, precision.BF16} {
		var err error
		if least[x], err = LeastOf(ctx, g, Options{Precision: x}, space.Device,
			targets...); err != nil {
			t.Fatal(err)
		}
	}
	if least[precision.F32] == least[precision.BF16] {
		t.Fatalf("in any numbers it takes %d bytes", least[precision.F32])
	}
	for from := range least {
		p, err := Plan(ctx, g, Options{Precision: from}, targets...)
		if err != nil {
			t.Fatal(err)
		}
		for to, want := range least {
			have, err := p.LeastOf(ctx, Options{Precision: to}, space.Device)
			if err != nil || have != want {
				t.Errorf("of plans in %s, in %s it takes %d bytes, want %d; %v", from, to, have,
					want, err)
			}
		}
	}
}
