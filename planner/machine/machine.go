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
	// Kappa is the inner dimension of a matrix product that computes for as long as
	// a copy of its result takes: achieved FLOP/s · 4 bytes / (2 · bytes/s of the
	// link).
	Kappa() float64
}
