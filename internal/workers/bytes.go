package workers

import (
	"maps"
	"slices"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/train"
)

// Bytes is the most host memory that the workers' exchange takes for a model's graph,
// beside the plan's: buffers, and between steps what variables were, replicas, outboxes.
func (m *Member) Bytes(g *graph.Graph) (int64, error) {
	if m.scheme.Plan == nil {
		return m.buffers(g)
	}
	vars, err := Shared(g, train.Learnt(g))
	if err != nil {
		return 0, err
	}
	return m.most(func(n int) (int64, error) {
		bytes, err := m.rehearse(vars, n)
		return bytes + m.logging(g, n), err
	})
}

// Bytes is what [Member.Bytes] of so many workers is, before there are any, for a graph without
// a mesh.
func Bytes(s Scheme, workers int, g *graph.Graph) (int64, error) {
	m := &Member{scheme: s, options: Options{Elastic: &Elastic{Least: workers, Most: workers}}}
	return m.Bytes(g)
}

// buffers is what exchanges within steps take, along all axes.
func (m *Member) buffers(g *graph.Graph) (sum int64, err error) {
	specs, rows := map[string][]collective.Spec{}, int64(0)
	for _, n := range g.Nodes() {
		if x, sends := n.Sends(); sends {
			via, _ := viaOf(x.How, m.scheme.Via) // checked when it is sent
			if rows += 4 * int64(x.Rows*x.Each); x.How.Fold == graph.SwapSome {
				rows += 4 * int64(2*x.Parts)
			}
			specs[x.How.Along] = append(specs[x.How.Along],
				collective.Spec{Size: int(n.Out[0].Bytes()), Via: via})
		}
	}
	of := func(list []collective.Spec) func(n int) (int64, error) {
		return func(n int) (int64, error) {
			return collective.Bytes(list, n, collective.Options{}, collective.ExchangerOptions{})
		}
	}
	if sum, err = m.most(of(specs[""])); err != nil {
		return 0, err
	}
	sum += rows
	delete(specs, "")
	for _, axis := range slices.Sorted(maps.Keys(specs)) {
		l, err := m.at().along(axis)
		if err != nil {
			return 0, err
		}
		bytes, err := of(specs[axis])(l.size)
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
}

// most is the most that exchanging takes of any number of workers that there may be.
func (m *Member) most(of func(n int) (int64, error)) (most int64, err error) {
	least, last := m.Size(), m.Size()
	if e := m.options.Elastic; e != nil {
		least, last = min(e.Least, least), max(e.Most, last)
	}
	for n := least; n <= last; n++ {
		bytes, err := of(n)
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}

// rehearse asks what an engine may come to hold that has these variables and nobody to listen to
// it. What each variable was is kept beside it.
func (m *Member) rehearse(vars []graph.Value, workers int) (int64, error) {
	again, err := ParseScheme(m.scheme.Name, m.scheme.options)
	if err != nil {
		return 0, err
	}
	rehearsal := &Member{scheme: again}
	p := &part{}
	if at := m.at(); at != nil && workers == m.Size() {
		p.view = at.view
	} else {
		for i := range workers {
			p.view.Nodes = append(p.view.Nodes, distrib.Node{ID: distrib.NodeID(i)})
		}
	}
	params, bases := Params(vars), int64(0)
	for _, p := range params {
		p.Data = make([]float32, p.Rows*p.Cols)
		bases += 4 * int64(len(p.Data))
	}
	c := rehearsal.engine(p, vars)
	c.Transport = nowhere(p.view.Self)
	bound, err := distrib.Bound(c, params...)
	parts, copies := m.scheme.held(bases)
	return bases + bound.Total() + parts + copies, err
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
