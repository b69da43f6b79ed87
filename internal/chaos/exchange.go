package chaos

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// send reads the first part of what it sends at once and the second in the end. From then
// on the bytes are the network's, which has junk in them.
func (m *Machine) send(n *graph.Node, do plan.Send) func() error {
	size := do.Bytes
	if n.Shared == nil {
		size = n.In[0].Type().Bytes()
	}
	in, out := m.at(do.In[0], size), m.at(do.Out, do.Bytes)
	more := make([][]byte, len(do.In))
	for k, r := range do.In[1:] {
		more[k+1] = m.at(r, n.In[k+1].Type().Bytes())
	}
	value := slices.Clone(in)
	cut := m.cut(len(in))
	if do.In[0] == do.Out {
		cut = len(in)
	} else {
		fill(out)
	}
	return func() error {
		copy(value[cut:], in[cut:])
		fill(out)
		value = append(value, make([]byte, len(out)-len(value))...)
		exchange, _ := n.Sends()
		exchange.Alone(value)
		if exchange.How.Fold == graph.SwapSome {
			counts := tensor.View{Type: n.In[1].Type(), Data: more[1]}.I32()
			if err := exchange.AloneSome(n.Out[0], value, counts); err != nil {
				return err
			}
		}
		m.sent[n.ID] = value
		return nil
	}
}

// await gives back, in the end, what the network has, unless somebody has written over
// its bytes meanwhile.
func (m *Machine) await(n *graph.Node, do plan.Await) func() error {
	at := m.at(do.At, do.Bytes)
	return func() error {
		sender := n.ID
		if n.Shared == nil {
			sender = n.In[0].Node.ID
		}
		value, ok := m.sent[sender]
		if !ok {
			return fmt.Errorf("%s awaits what nobody has sent", n.Name)
		}
		delete(m.sent, sender)
		for _, b := range at {
			if b != junk {
				return fmt.Errorf("%s finds its bytes written", n.Name)
			}
		}
		copy(at, value)
		return nil
	}
}

// peer reads the first part of its operand at once and the second in the end, as the others may.
func (m *Machine) peer(n *graph.Node, do plan.Peer) func() error {
	in, out := m.at(do.In[0], n.In[0].Type().Bytes()), m.at(do.Out, do.Bytes)
	cut := m.cut(len(in))
	early := slices.Clone(in[:cut])
	fill(out)
	return func() error {
		copy(out[cut:len(in)], in[cut:])
		copy(out, early)
		exchange, _ := n.Peers()
		exchange.Alone(out)
		return nil
	}
}

// share gives the network the variables that workers share, as a step before this one has
// left them.
func (m *Machine) share() {
	clear(m.sent)
	for _, b := range m.plan.Variables {
		if m.graph.Node(b.Node).Shared != nil {
			m.sent[b.Node] = slices.Clone(m.Slot(b.Slot))
			fill(m.Slot(b.Slot))
		}
	}
}

// unshare has the variables back.
func (m *Machine) unshare() {
	for _, b := range m.plan.Variables {
		if value, ok := m.sent[b.Node]; ok {
			copy(m.Slot(b.Slot), value)
		}
	}
}
