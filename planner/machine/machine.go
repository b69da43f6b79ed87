package machine

import (
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Model answers what things take. Answers never change: passes decide by them, and
// the same question has the same answer in every search.
type Model interface {
	// Name is the profile's: "titanx", or the machine's own.
	Name() string
	// Time is how long one execution of a node takes in a space: on the device's
	// compute units, or on the host's processor.
	Time(n *graph.Node, in space.ID) time.Duration
	// Copy is how long the copy of so many bytes takes.
	Copy(from, to space.ID, bytes int64) time.Duration
	// Shared is what part of a copy's time operations lose that run beside it, since it takes
	// their cores and their memory's bandwidth. 0 is a device with engines of its own. If it is
	// more, the device is the host's processor, and operations of both take turns: see [Work].
	Shared() float64
	// Kappa is the inner dimension of a matrix product that computes for as long as
	// a copy of its result takes: achieved FLOP/s · 4 bytes / (2 · bytes/s of the
	// link).
	Kappa() float64
}

// Work is for how long the engines of a step work, each by itself.
type Work struct{ Device, Host, Copies time.Duration }

// Least is how long that takes at least by a model, however far the engines overlap: no time
// where they share nothing.
func (w Work) Least(m Model) time.Duration {
	shared := m.Shared()
	if shared == 0 {
		return 0
	}
	return w.Device + w.Host + time.Duration(shared*float64(w.Copies))
}

// Add adds the time of an engine's work. Exchanges and a disk take nothing from others.
func (w *Work) Add(e space.Engine, took time.Duration) {
	switch e {
	case space.Compute:
		w.Device += took
	case space.HostCompute:
		w.Host += took
	case space.CopyIn, space.CopyOut:
		w.Copies += took
	}
}
