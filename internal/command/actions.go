package command

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// actions are what becomes of the values that operations make for others of the
// step, in bytes. Every value counts once, by the first of these that is done to it.
type actions struct {
	Swapped    int64 `json:"swapped"`    // leave the device and come back
	Recomputed int64 `json:"recomputed"` // are made again
	Compressed int64 `json:"compressed"` // saved in fewer bytes: none is, it does not pay
	Split      int64 `json:"split"`      // made in parts
	Kept       int64 `json:"kept"`       // stay where they are made while they are needed
}

// actionsOf sums the actions of a plan of a graph that was made of a model's.
func actionsOf(p *plan.Plan, g, model *graph.Graph) actions {
	var a actions
	parts := split.Parts(g, model)
	made := map[graph.NodeID][]plan.Ref{} // where the results are
	done := map[graph.Value]bool{}        // counted as swapped or recomputed
	move := func(to *int64, v graph.Value) {
		if !done[v] {
			done[v] = true
			*to += v.Type().Bytes()
			a.Kept -= v.Type().Bytes()
		}
	}
	for _, s := range p.Steps {
		n := g.Node(s.Node)
		switch do := s.Do.(type) {
		case plan.Copy:
			i := slices.Index(made[s.Node], do.Src)
			if do.Why == space.SwapOut && i >= 0 {
				move(&a.Swapped, n.Value(i))
			}
		case plan.Launch:
			if do.Mutates > 0 {
				continue
			}
			for i := range do.Out {
				if made[s.Node] == nil {
					a.Kept += n.Value(i).Type().Bytes()
				} else {
					move(&a.Recomputed, n.Value(i))
				}
			}
			made[s.Node] = do.Out
		}
	}
	for _, n := range g.Nodes() {
		for i := range made[n.ID] {
			if parts[n.ID] {
				move(&a.Split, n.Value(i))
			}
		}
	}
	return a
}
