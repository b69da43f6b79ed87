package fuse

import "github.com/gomem/gomem/graph"

// readiness has the answers to questions.
type readiness map[question]bool

// question asks whether a value is there whenever another is computed, because
// that depends on it.
type question struct{ value, computed graph.Value }

// askReadiness asks, for every candidate there is now, about those other operands
// of its reader that were created before it: no others can be there.
func (r *rewrite) askReadiness() readiness {
	var asked []question
	for _, n := range r.g.Nodes() {
		in := r.now[n.ID].In
		for _, v := range in {
			if !r.candidate(v, n) {
				continue
			}
			for _, u := range in {
				if !u.Node.Leaf() && u.Node.ID < v.Node.ID {
					asked = append(asked, question{u, v})
				}
			}
		}
	}
	answers := readiness{}
	for len(asked) > 0 {
		batch := asked[:min(64, len(asked))]
		asked = asked[len(batch):]
		r.answer(batch, answers)
	}
	return answers
}

// answer follows up to 64 questions through the graph at once, each in a bit.
func (r *rewrite) answer(batch []question, answers readiness) {
	depends := make([]uint64, r.g.Len())
	first, last := batch[0].value.Node.ID, batch[0].computed.Node.ID
	for i, q := range batch {
		depends[q.value.Node.ID] |= 1 << i
		first, last = min(first, q.value.Node.ID), max(last, q.computed.Node.ID)
	}
	for _, n := range r.g.Nodes()[first : last+1] {
		for _, v := range n.In {
			depends[n.ID] |= depends[v.Node.ID]
		}
	}
	for i, q := range batch {
		answers[q] = depends[q.computed.Node.ID]>>i&1 == 1
	}
}
