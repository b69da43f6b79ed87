package swap_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/swap"
)

// TestAroundPeak: nothing is swapped within the budget; beyond it absences are
// between neighbouring uses, in order, and lower the estimate.
func TestAroundPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Synthetic(rapid.IntRange(20, 300).Draw(t, "nodes"))
		estimated := func(budget int64) *program.Program {
			p := program.New(m.Graph, m.Fetches, m.Updates)
			passes := []program.Pass{program.DeadCode(), partition.Pass(partition.BreadthFirst, 0),
				placement.Pass(false), swap.AroundPeak(budget)}
			if _, err := program.Run(context.Background(), p, passes); err != nil {
				t.Fatal(err)
			}
			return p
		}
		free := estimated(1 << 40)
		for v, gaps := range free.Away {
			if len(gaps) > 0 {
				t.Fatalf("value %d is away within the budget", v)
			}
		}
		tight := estimated(free.Estimate * int64(rapid.IntRange(1, 99).Draw(t, "percent")) / 100)
		if tight.Estimate > free.Estimate {
			t.Errorf("the estimate rises from %d to %d", free.Estimate, tight.Estimate)
		}
		uses := tight.Uses()
		for v, gaps := range tight.Away {
			for i, g := range gaps {
				if g.After >= g.Before || i > 0 && g.After < gaps[i-1].Before ||
					!neighbours(uses[v], g) {
					t.Errorf("value %d is away %v between uses at %v", v, gaps, uses[v])
				}
			}
		}
	})
}

func neighbours(uses []int32, g program.Gap) bool {
	for i := 1; i < len(uses); i++ {
		if uses[i-1] == g.After && uses[i] == g.Before {
			return true
		}
	}
	return false
}
