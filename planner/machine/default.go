package machine

import "github.com/gomem/gomem/graph"

// Default is the machine to plan for if nothing is known of it: a few cores, whose
// device is a part of the same memory. It is equal to itself.
func Default() Machine { return standard{} }

// standard is the default machine.
type standard struct{}

// For is the same for all models.
func (standard) For(model string, nodes []*graph.Node) Model {
	p := Profile{Name: "cpu",
		Device: Rates{FLOPs: 100e9, Bytes: 10e9, Launch: 2000},
		Host:   Rates{FLOPs: 20e9, Bytes: 5e9, Launch: 2000},
		In:     5e9, Out: 5e9, DiskRead: 1e9, DiskWrite: 1e9, ElementBytes: 4,
	}
	return p.For(model, nodes)
}

// Concurrent reports whether a machine is known to have a host that computes while its device
// does: by a profile, or by what was measured of two processors.
func Concurrent(m Machine) bool {
	switch m := m.(type) {
	case *Profile:
		return true
	case *Local:
		return m.Host != nil
	}
	return false
}
