package program

import (
	"fmt"
	"io"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/count"
)

// WriteTo prints the tables that are filled as text, one row a line, in the order in
// which passes fill them: what runs, in which order and partition, where; when values
// are away; and the schedule. It answers why a plan has a step: the row that asks for
// it names the same node.
//
//	order 17 p3 device matmul : enc/0/att/qk
//	away 40-57 : enc/0/att/qk
//	stay 12 device 40-57 made 2048 over 7 : enc/0/att/qk
//	event 17 p3 compute0 runs matmul 12 <- 5 3 : enc/0/att/qk
//	event 18 p3 out copies 31 <- 12 swap-out idle 41 : enc/0/att/qk
func (p *Program) WriteTo(w io.Writer) (int64, error) {
	b := count.NewWriter(w)
	p.writeOrder(b)
	p.writeAway(b)
	if p.Schedule != nil {
		p.Schedule.write(b, p.Graph)
	}
	return b.Done()
}

// writeOrder prints a line for every node that lives, leaves first.
func (p *Program) writeOrder(w io.Writer) {
	place := func(n *graph.Node) string {
		if p.Place == nil {
			return "anywhere"
		}
		return p.Place[n.ID].String()
	}
	for id, live := range p.Live {
		if n := p.Graph.Node(graph.NodeID(id)); live && n.Leaf() {
			fmt.Fprintf(w, "leaf %s %s : %s\n", place(n), n.Kind, n.Name)
		}
	}
	for i, id := range p.Order {
		n := p.Graph.Node(id)
		fmt.Fprintf(w, "order %d p%d %s %s : %s\n", i, p.Part[id], place(n), n.OpName(), n.Name)
	}
}

// writeAway prints a line for every absence.
func (p *Program) writeAway(w io.Writer) {
	if p.Away == nil {
		return
	}
	for _, n := range p.Graph.Nodes() {
		for i := range n.Out {
			v := n.Value(i)
			for _, g := range p.Away[p.ValueIndex(v)] {
				fmt.Fprintf(w, "away %d-%d : %s\n", g.After, g.Before, v)
			}
		}
	}
}

// write prints a line for every stay and every event.
func (s *Schedule) write(w io.Writer, g *graph.Graph) {
	for i, st := range s.Stays {
		life, part, over := fmt.Sprintf("%d-%d", st.From, st.To), "", ""
		if st.Fixed {
			life = "fixed"
		}
		if st.Origin != Workspace && st.Bytes != st.Value.Type().Bytes() {
			part = fmt.Sprintf(" at %d", st.Off)
		}
		if st.Over != NoStay {
			over = fmt.Sprintf(" over %d", st.Over)
		}
		fmt.Fprintf(w, "stay %d %s %s %s %d%s%s : %s\n", i, st.Space, life, st.Origin, st.Bytes,
			part, over, st.Value)
	}
	for i := range s.Events {
		s.writeEvent(w, g, i)
	}
}

func (s *Schedule) writeEvent(w io.Writer, g *graph.Graph, i int) {
	e := &s.Events[i]
	n := g.Node(e.Node)
	fmt.Fprintf(w, "event %d p%d %s ", i, e.Part, s.Streams[e.Stream].Name)
	if e.Copies() {
		idle := ""
		if e.Idle > 0 {
			idle = fmt.Sprintf(" idle %d", e.Idle)
		}
		fmt.Fprintf(w, "copies %d <- %d %s%s : %s\n", e.Dst, e.Src, e.Reason, idle, n.Name)
		return
	}
	scratch := ""
	if e.Scratch != NoStay {
		scratch = fmt.Sprintf(" scratch %d", e.Scratch)
	}
	fmt.Fprintf(w, "runs %s%s <-%s%s : %s\n", n.OpName(), stays(e.Out), stays(e.In), scratch,
		n.Name)
}

// stays is a list of stays, each after a space.
func stays(ids []StayID) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, " %d", id)
	}
	return b.String()
}
