package workers

import (
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/train"
)

// Bytes is the most host memory that the workers' exchange takes for a model's graph,
// beside the plan's: buffers, and between steps what variables were, replicas, outboxes.
func (m *Member) Bytes(g *graph.Graph) (int64, error) {
	if m.scheme.Plan == nil {
		var specs []collective.Spec
		for _, n := range g.Nodes() {
			if x, sends := n.Sends(); sends {
				s := collective.Spec{Size: int(n.Out[0].Bytes()), Via: m.scheme.Via}
				if x.How.Fold == graph.Gather {
					s.Via = collective.Gathered
				}
				if x.How.Via != "" {
					s.Via, _ = collective.ParseVia(x.How.Via) // checked when it is sent
				}
				specs = append(specs, s)
			}
		}
		return collective.Bytes(specs, m.Size(), collective.Options{},
			collective.ExchangerOptions{})
	}
	vars, err := Shared(g, train.Learnt(g))
	if err != nil {
		return 0, err
	}
	return m.rehearse(vars)
}

// rehearse attaches variables to an engine that nobody listens to, and asks what it may
// come to hold. What each variable was is kept beside it.
func (m *Member) rehearse(vars []graph.Value) (int64, error) {
	again, err := ParseScheme(m.scheme.Name, m.scheme.options)
	if err != nil {
		return 0, err
	}
	rehearsal := &Member{scheme: again, view: m.view}
	if err := rehearsal.start(vars, nowhere(m.view.Self)); err != nil {
		return 0, err
	}
	params, bases := Params(vars), int64(0)
	for _, p := range params {
		p.Data = make([]float32, p.Rows*p.Cols)
		bases += 4 * int64(len(p.Data))
	}
	if err := rehearsal.engine.Attach(params...); err != nil {
		return 0, err
	}
	return bases + rehearsal.engine.Bound().Total(), rehearsal.engine.Close()
}

// nowhere is a transport of a node whose messages all arrive, where nobody is.
type nowhere distrib.NodeID

func (n nowhere) Self() distrib.NodeID { return distrib.NodeID(n) }
func (nowhere) Serve(distrib.Handler)  {}
func (nowhere) Links() []distrib.Link  { return nil }
func (nowhere) Close() error           { return nil }
func (nowhere) Send(_ distrib.NodeID, m *distrib.Msg) {
	if m.Done != nil {
		m.Done(nil)
	}
}
