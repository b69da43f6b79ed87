package gomem

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/sim"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/space"
)

// Sim begins the names of simulated devices; a profile's name or the path of one as
// JSON follows: "sim:titanx".
const Sim = "sim:"

// Computes reports whether a device computes anything; the others keep count.
func Computes(device string) bool { return device == "" || device == CPU }

// Simulated is the machine that a device's name says, or nil if it is not simulated.
func Simulated(device string) (*machine.Profile, error) {
	name, ok := strings.CutPrefix(device, Sim)
	if !ok {
		return nil, nil
	}
	if p, err := machine.Named(name); err == nil || !strings.HasSuffix(name, ".json") {
		return p, err
	}
	data, err := regular.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", device, err)
	}
	p, err := machine.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", device, err)
	}
	return p, nil
}

// Prices are those of a machine for plans: what a step takes is that of the targets
// with updates. Model is its name, such as "moe".
func Prices(m machine.Machine, model string, p *Planned) machine.Model {
	var updates []graph.NodeID
	for _, t := range p.Targets {
		if len(t.Updates) > 0 {
			updates = append(updates, t.Updates...)
			for _, v := range t.Fetches {
				updates = append(updates, v.Node.ID)
			}
		}
	}
	var nodes []*graph.Node
	for id, live := range p.Graph.Ancestors(updates) {
		if live {
			nodes = append(nodes, p.Graph.Node(graph.NodeID(id)))
		}
	}
	return m.For(model, nodes)
}

// openSim makes a simulated device for plans, with the budgets as its limits.
func (o Options) openSim(profile *machine.Profile, p *Planned) device.Device {
	prices := Prices(profile, o.Model, p)
	nodes := map[string]*graph.Node{}
	for _, n := range p.Graph.Nodes() {
		nodes[n.Name] = n
	}
	s := sim.Options{Copy: prices.Copy, Launch: func(l device.Launch) time.Duration {
		return prices.Time(nodes[l.Name], l.Engine.Reads())
	}}
	s.Limits[space.Device], s.Limits[space.Host] = o.DeviceBytes, o.HostBytes
	if o.Trace != nil {
		s.Listener = o.Trace.Listen
	}
	return sim.Open(s)
}

// Clock is how long the session has been open, by the clock of its device: that of a
// simulated one stands still but for its steps.
func (s *Session) Clock() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.device.(*sim.Device); ok {
		return d.Now()
	}
	return time.Since(s.opened)
}
