package gomem

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/sim"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// Sim begins the names of simulated devices; a profile's name or the path of one as
// JSON follows: "sim:titanx".
const Sim = "sim:"

// Computes reports whether a device computes anything, or those of a list; the others keep count.
func Computes(device string) bool {
	devices, err := Several(device)
	if err != nil {
		return false
	}
	_, gpu := GPU(devices[0])
	return gpu || devices[0] == "" || devices[0] == CPU
}

// Simulated is the machine that a device's name says, or nil if it is not simulated.
func Simulated(device string) (*machine.Profile, error) {
	name, ok := strings.CutPrefix(device, Sim)
	if !ok {
		return nil, nil
	}
	p, err := machine.Named(name)
	if err != nil && strings.HasSuffix(name, ".json") {
		var data []byte
		if data, err = regular.ReadFile(name); err == nil {
			p, err = machine.Parse(data)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("device %.200q: %w", device, regular.Bare(err))
	}
	return p, nil
}

// Profile is the machine that the device's name says, at its rates in the options' precision, or
// nil if it is not simulated.
func (o Options) Profile() (*machine.Profile, error) {
	p, err := Simulated(o.Device)
	return o.inPrecision(p), err
}

// inPrecision is a profile, if it is one, at its rates in the options' precision.
func (o Options) inPrecision(p *machine.Profile) *machine.Profile {
	if p != nil && o.Precision == precision.TF32 {
		return p.InTF32()
	}
	return p
}

// machine is what has the prices that plans are made by; nil if nothing says.
func (o Options) machine() machine.Machine {
	if o.Machine != nil {
		return o.Machine
	}
	p, err := o.Profile()
	if number, ok := GPU(o.Device); ok {
		p, err = gpuPrices(number)
		p = o.inPrecision(p)
	}
	if err != nil || p == nil {
		return nil
	}
	return p
}

// openSim makes a simulated device for plans, with the budgets as its limits.
func (o Options) openSim(profile *machine.Profile, p *Planned) device.Device {
	model := planner.Prices(profile, o.Model, p.Graph, p.Targets...)
	nodes := map[string]*graph.Node{}
	for _, n := range p.Graph.Nodes() {
		nodes[n.Name] = n
	}
	s := sim.Options{Limits: map[space.ID]int64{space.Device: o.DeviceBytes,
		space.Host: o.Planning().HostBytes, space.Disk: o.DiskBytes}, Copy: model.Copy,
		Launch: func(l device.Launch) time.Duration {
			return model.Time(nodes[l.Name], l.Engine.Reads())
		}}
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
