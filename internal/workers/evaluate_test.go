package workers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/train"
)

// heldOut are batches that tell when a held-out one is made.
type heldOut struct {
	data.Batches
	made func(i int)
}

func (h heldOut) HeldOut(i int) data.Batch {
	h.made(i)
	return h.Batches.HeldOut(i)
}

// TestEvaluationDivides: workers have equal bits after they have settled, and divide an
// evaluation, where these are those of owners or sums; elsewhere as many as do.
// Every batch is evaluated once.
func TestEvaluationDivides(t *testing.T) {
	names := Schemes()
	alike := []string{"ring", "ps", "hybrid", "bsp", "ssp", "bosen"}
	for _, scheme := range slices.DeleteFunc(names, func(n string) bool { return n == "factors" }) {
		var mu sync.Mutex
		made := map[distrib.NodeID]int{}
		c := &course{site: newSite(4), scheme: scheme}
		c.own = func(id distrib.NodeID, o *train.Options) {
			o.Steps, o.EvalEvery = 8, 4
			o.Loader = heldOut{o.Loader, func(int) { mu.Lock(); defer mu.Unlock(); made[id]++ }}
		}
		for id, e := range c.all(t, 4) {
			if e.err != nil {
				t.Fatalf("%s: worker %d: %v", scheme, id, e.err)
			}
		}
		have := fmt.Sprint(made)
		if slices.Contains(alike, scheme) && have != "map[0:2 1:2 2:2 3:2]" ||
			made[0]+made[1]+made[2]+made[3] != 8 || made[0] < 2 {
			t.Errorf("%s: batches %s by workers", scheme, have)
		}
	}
}

// TestLossInAnEvaluation: workers that lose one while they evaluate evaluate again, and have
// the bits that they would have had without the loss.
func TestLossInAnEvaluation(t *testing.T) {
	evaluations := func(lost distrib.NodeID, batch int) (out []*ended, shown []string) {
		c := &course{site: newSite(3), scheme: "ring", least: 2}
		c.own = func(id distrib.NodeID, o *train.Options) {
			o.Steps, o.EvalEvery = 12, 4
			if left := batch; id == lost {
				o.Loader = heldOut{o.Loader, func(int) {
					if left--; left == 0 {
						c.kill(lost)
					}
				}}
			}
		}
		out = c.all(t, 3)
		first := out[0]
		if lost == 0 {
			first = out[1]
		}
		for _, e := range first.events {
			if e.Kind == train.Eval {
				shown = append(shown, fmt.Sprintf("%d: %x", e.Step, e.Loss))
			}
		}
		return out, shown
	}
	_, want := evaluations(3, 0) // nobody is
	for _, row := range []struct {
		lost  distrib.NodeID
		batch int // of the lost one: worker 0 has the first and the last of four
		steps []string
		same  string // the evaluation that was harmed
	}{{0, 2, []string{"4", "8", "12"}, want[0]}, {0, 5, []string{"12"}, want[2]},
		{2, 1, []string{"4", "8", "12"}, want[0]}, {2, 3, []string{"4", "8", "12"}, want[2]}} {
		out, have := evaluations(row.lost, row.batch)
		var steps []string
		for _, line := range have {
			step, _, _ := strings.Cut(line, ":")
			steps = append(steps, step)
		}
		if !slices.Equal(steps, row.steps) || !slices.Contains(have, row.same) {
			t.Errorf("worker %d is lost: %v, want %v of steps %v", row.lost, have, row.same,
				row.steps)
		}
		for id, e := range out {
			if distrib.NodeID(id) != row.lost && (e.err != nil || e.Steps != 12 || e.Workers != 2) {
				t.Errorf("worker %d: %v, %+v", id, e.err, e.Summary)
			}
		}
	}
}
