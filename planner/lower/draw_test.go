package lower

import (
	"context"
	"math"

	"pgregory.net/rapid"

	_ "github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/schedule"
	"github.com/gomem/gomem/swap"
)

// drawModel draws a graph, random or synthetic.
func drawModel(t *rapid.T) *randgraph.Model {
	if rapid.Bool().Draw(t, "synthetic") {
		return randgraph.Synthetic(rapid.IntRange(20, 120).Draw(t, "nodes"))
	}
	return randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
}

// decisions are what the passes before the schedule are told.
type decisions struct {
	by        partition.Strategy
	size      int // of a partition; 0: the graph is not cut
	placed    bool
	swapped   bool
	lookahead int
}

// drawDecisions draws those of the thesis policy and its ablations, or vanilla's.
func drawDecisions(t *rapid.T) decisions {
	if rapid.IntRange(0, 3).Draw(t, "vanilla") == 0 {
		return decisions{by: partition.BreadthFirst, lookahead: 2}
	}
	return decisions{
		by:        rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
		size:      rapid.SampledFrom([]int{1, 2, 3, 5, 20, 200}).Draw(t, "partition"),
		placed:    rapid.IntRange(0, 3).Draw(t, "placement") > 0,
		swapped:   rapid.IntRange(0, 3).Draw(t, "swap") > 0,
		lookahead: rapid.IntRange(1, 4).Draw(t, "lookahead"),
	}
}

// decide runs the passes on a program.
func (d decisions) decide(t rapid.TB, p *program.Program) *program.Program {
	passes := []program.Pass{program.DeadCode(), partition.Pass(d.by, d.size),
		placement.Pass(d.placed)}
	if d.swapped {
		passes = append(passes, swap.LookAhead(d.lookahead))
	}
	if _, err := program.Run(context.Background(), p, passes); err != nil {
		t.Fatal(err)
	}
	return p
}

// drawTuning draws when copies run, and on how many streams operations do.
func (d decisions) drawTuning(t *rapid.T) schedule.Options {
	size := max(1, d.size)
	return schedule.Options{Partition: size, Lookahead: d.lookahead,
		Streams:  rapid.IntRange(1, 3).Draw(t, "streams"),
		Prefetch: rapid.IntRange(0, 2*size).Draw(t, "prefetch"),
		Unshared: rapid.Bool().Draw(t, "unshared")}
}

// drawProgram draws a program about which the passes have decided, and its tuning.
func drawProgram(t *rapid.T) (*program.Program, schedule.Options) {
	m, d := drawModel(t), drawDecisions(t)
	return d.decide(t, program.New(m.Graph, m.Fetches, m.Updates)), d.drawTuning(t)
}

// sketched is the sketch of a program, by the passes that write its schedule.
func sketched(t rapid.TB, p *program.Program, o schedule.Options) *Sketch {
	passes := []program.Pass{schedule.Pass(o)}
	if p.Graph.Exchanges() {
		passes = append(passes, schedule.Share())
	}
	if _, err := program.Run(context.Background(), p, passes); err != nil {
		t.Fatal(err)
	}
	return Of(p)
}

// written is the plan of a program, without waits.
func written(t rapid.TB, p *program.Program, o schedule.Options) *plan.Plan {
	k := sketched(t, p, o)
	k.Pack(Need{}, 0)
	return k.Plan(p, "drawn", Need{math.MaxInt64, math.MaxInt64, math.MaxInt64})
}
