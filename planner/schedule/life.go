package schedule

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// life is where the bytes of one value are in the course of a step. Positions
// are in the program's order.
type life struct {
	value      graph.Value
	producedAt int32        // where it is computed; -1 for an input
	stays      []stay       // times on the device, in order
	hostCopy   bool         // it needs a copy in host memory
	onHost     bool         // it is made in host memory, and never leaves it
	fetched    bool         // the host's copy must survive the step
	why        space.Reason // of the copy to the host
}

// stay is a time on the device from its first to its last use.
type stay struct{ first, last int32 }

// lives works out the lives of all live values that operations compute and of
// the inputs, by value index; other entries are nil.
func lives(p *program.Program) []*life {
	out := make([]*life, p.Values())
	uses := p.Uses()
	all, room := make([]life, p.Values()), make([]stay, p.Values()+absences(p))
	fetched := map[graph.Value]bool{}
	for _, v := range p.Fetches {
		root, _ := v.Resolve()
		fetched[root] = true
	}
	for _, n := range p.Graph.Nodes() {
		if !p.Live[n.ID] || n.Kind != graph.KindInput && !n.Executes() {
			continue
		}
		for i := range n.Out {
			v := p.ValueIndex(n.Value(i))
			out[v] = &all[v]
			out[v].live(p, n.Value(i), uses[v], room)
			out[v].fetched = fetched[n.Value(i)]
			out[v].reason()
			room = room[len(out[v].stays):]
		}
	}
	return out
}

// absences is how many there are of all values.
func absences(p *program.Program) int {
	n := 0
	for _, away := range p.Away {
		n += len(away)
	}
	return n
}

// live works out where a value is from its uses and absences. There is room for its stays.
func (l *life) live(p *program.Program, v graph.Value, uses []int32, room []stay) {
	l.value, l.producedAt = v, -1
	if !v.Node.Leaf() {
		l.producedAt = p.Pos(v.Node.ID)
		l.onHost = p.Place[v.Node.ID] == space.Host
	}
	var away []program.Gap
	if p.Away != nil {
		away = p.Away[p.ValueIndex(v)]
	}
	l.stays = room[:0:min(len(away)+1, len(uses))]
	for _, u := range uses {
		if p.Place[p.Order[u]] == space.Host {
			l.hostCopy = true
			continue
		}
		back := len(away) > 0 && away[0].Before == u
		if back {
			away = away[1:]
		}
		if k := len(l.stays); k > 0 && !back {
			l.stays[k-1].last = u
		} else {
			l.stays = append(l.stays, stay{u, u})
		}
	}
}

// reason decides whether the value is copied to the host, and what for.
func (l *life) reason() {
	switch {
	case l.producedAt < 0:
	case len(l.stays) > 1:
		l.hostCopy, l.why = true, space.SwapOut
	case l.hostCopy:
		l.why = space.Gradient
	case l.fetched:
		l.hostCopy, l.why = true, space.Result
	}
}
