package lower

import (
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// Prices are a machine's for a graph, each asked for once: thousands of timelines ask.
type Prices struct {
	machine.Model
	graph *graph.Graph
	nodes [2][]time.Duration // by space, the device or the host, and node
}

// NewPrices asks a machine for its prices of a graph's nodes.
func NewPrices(m machine.Model, g *graph.Graph) *Prices {
	p := &Prices{Model: m, graph: g}
	for id := range p.nodes {
		p.nodes[id] = make([]time.Duration, g.Len())
		for i, n := range g.Nodes() {
			if n.Executes() {
				p.nodes[id][i] = m.Time(n, space.ID(id))
			}
		}
	}
	return p
}

// Node is what an execution of a node takes on the device or on the host, in nanoseconds; nothing
// of a node that does not execute.
func (p *Prices) Node(at space.ID, id graph.NodeID) time.Duration { return p.nodes[at][id] }

// event is what an event of a schedule takes.
func (p *Prices) event(s *program.Schedule, e *program.Event) time.Duration {
	engine := s.Streams[e.Stream].Engine
	if e.Copies() {
		_, bytes := common(s, e)
		return p.Copy(engine.Reads(), engine.Writes(), bytes)
	}
	if engine.Copies() { // an exchange
		return p.Copy(engine.Reads(), engine.Writes(), s.Stays[e.Out[0]].Bytes)
	}
	return p.nodes[engine.Reads()][e.Node]
}

// common is the bytes that both stays of a copy have: from which of the value, and how
// many.
func common(s *program.Schedule, e *program.Event) (from, bytes int64) {
	src, dst := &s.Stays[e.Src], &s.Stays[e.Dst]
	from = max(src.Off, dst.Off)
	return from, min(src.Off+src.Bytes, dst.Off+dst.Bytes) - from
}
