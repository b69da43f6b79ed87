package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Machine is what can be bound to a model's operations: a [Profile] or a [Local].
type Machine interface {
	// For is the machine's prices for one model, such as "moe", of which a training
	// step executes the nodes.
	For(model string, nodes []*graph.Node) Model
}

// Device is what a device is that is not the reference: which operations it runs, to which bits,
// and what they need there. What they take is a [Machine]'s to say.
type Device interface {
	// Runs reports whether the device can run an operation.
	Runs(op graph.Op) bool
	// Exact reports whether the device computes an operation to the bits of the reference.
	Exact(op graph.Op) bool
	// Computing is how the device computes the nodes, and those like them that graphs have which
	// are made of theirs. The answers are those of the device that is there, if one is; the error
	// says why it cannot be asked.
	Computing(nodes []*graph.Node) (Computing, error)
}

// Computing is how a device computes nodes, decided before there are plans.
type Computing struct {
	// Library is which of the device's libraries computes a node; "" is the device's own kernels.
	Library func(n *graph.Node) string
	// Scratch is the bytes of workspace that executing a node takes, wherever a plan has
	// it executed.
	Scratch func(n *graph.Node) int64
	// Align is what values' addresses are to be multiples of; 0 is as the host has them.
	Align space.Align
}

// Signature says all of a node that its time depends on, save for what its operands
// hold: the operation with its attributes, and the types of operands and results
// without the names of their axes. Nodes of one signature are measured once.
func Signature(n *graph.Node) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%#v", n.Op)
	for _, t := range n.InTypes() {
		writeType(&s, ' ', t)
	}
	for i, t := range n.Out {
		writeType(&s, ">,"[min(i, 1)], t)
	}
	return s.String()
}

func writeType(s *strings.Builder, before byte, t graph.Type) {
	s.WriteByte(before)
	s.WriteString(t.DType.String())
	for _, d := range t.Shape {
		fmt.Fprintf(s, " %d", d.Size)
	}
}

// Local is a machine that was measured: a time for every signature that was timed,
// and a profile for all else. Its host computes as its device does, if they are the same
// processor.
type Local struct {
	Profile  *Profile
	Measured map[string]time.Duration // by Signature
	// Host is what the host's processor was measured to take, where the device is another:
	// a GPU. nil is the same processor.
	Host *Local
	// Shared is what part of a copy's time operations lose that run beside it, where the device is
	// the host's processor.
	Shared float64
}

// Slow has copies be no faster than so many bytes a second, by waiting: what operations lose to
// them stays as it is.
func (l *Local) Slow(rate float64) {
	p := *l.Profile
	if slowest := min(p.In, p.Out); rate < slowest {
		l.Shared *= rate / slowest
	}
	p.In, p.Out = min(p.In, rate), min(p.Out, rate)
	l.Profile = &p
}

// measured is a Local bound to nodes.
type measured struct {
	Model
	times  map[*graph.Node]time.Duration
	host   Model // nil: the device is the host's processor
	shared float64
}

// For looks up all nodes of the graph that the nodes are of; what is measured later does
// not change the prices. The model's name makes no difference.
func (l *Local) For(model string, nodes []*graph.Node) Model {
	m := measured{Model: l.Profile.For(model, nodes), times: map[*graph.Node]time.Duration{},
		shared: l.Shared}
	if l.Host != nil {
		m.host = l.Host.For(model, nodes)
	}
	if len(nodes) > 0 {
		nodes = nodes[0].Graph().Nodes()
	}
	for _, n := range nodes {
		if !n.Executes() || n.Exchanges() {
			continue
		}
		if t, ok := l.Measured[Signature(n)]; ok {
			m.times[n] = t
		}
	}
	return m
}

// Time is the measured time where there is one.
func (m measured) Time(n *graph.Node, in space.ID) time.Duration {
	if in != space.Device && m.host != nil {
		return m.host.Time(n, space.Device)
	}
	if t, ok := m.times[n]; ok {
		return t
	}
	return m.Model.Time(n, space.Device)
}

// Shared is as measured.
func (m measured) Shared() float64 { return m.shared }

// Copy is the host's own where the device has no part in it.
func (m measured) Copy(from, to space.ID, bytes int64) time.Duration {
	if from != space.Device && to != space.Device && m.host != nil {
		return m.host.Copy(from, to, bytes)
	}
	return m.Model.Copy(from, to, bytes)
}
