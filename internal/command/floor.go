package command

import (
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/bound"
)

// floor is what no plan of the same graph in the same order does better, in bytes of
// the device. Another graph may: one whose operations are cut smaller, or that runs in
// another order.
type floor struct {
	// Operation is what the neediest operation of a training step takes alone, and At its
	// name.
	Operation int64  `json:"operation_bytes"`
	At        string `json:"operation"`
	// Overlapped is what one takes while the operands of the next are on their way.
	Overlapped int64 `json:"overlapped_bytes"`
	// Absent is how much of what is needed before and after some operation is at least
	// not on the device while it runs: it is swapped or computed again.
	Absent int64 `json:"absent_bytes"`
}

// bytes is the floor in words.
func (f floor) bytes() string {
	return fmt.Sprintf("%s, %s with the next operation's operands", size(f.Operation),
		size(f.Overlapped))
}

// away is what the budget keeps from the device in words; nothing if it keeps nothing.
func (f floor) away() string {
	if f.Absent == 0 {
		return ""
	}
	return size(f.Absent) + " at least, swapped or computed again"
}

// bounds are the lower bounds of the plans of a model's objectives, whatever is on the host.
// An entry is nil if they are not known.
func (p planned) bounds(b *built) []*bound.Bounds {
	all := make([]*bound.Bounds, len(b.model.Objectives))
	for i := range all {
		r := p.Results[i]
		free := *r.Program
		if err := placement.Pass(true).Run(&free); err == nil {
			all[i] = bound.New(&free, r.Model)
		}
	}
	return all
}

// rounding is by how much bounds are above bytes: they count whole units of alignment,
// of which the last slot needs a part.
func rounding(p planned, objective int) int64 {
	return p.Results[objective].Plan.Spaces[space.Device].Align - 1
}

// floorOf is the floor of a training step of some bounds within a device budget, or none if
// that is 0.
func floorOf(p planned, bounds []*bound.Bounds, budget int64) floor {
	var f floor
	for i, of := range bounds {
		if of == nil {
			continue
		}
		less := rounding(p, i)
		if least := of.Least(); least.Node != nil && least.Bytes-less > f.Operation {
			f.Operation, f.At = least.Bytes-less, least.Node.Name
		}
		f.Overlapped = max(f.Overlapped, of.Overlapped().Bytes-less)
		if budget > 0 {
			f.Absent = max(f.Absent, of.Absent(budget+less))
		}
	}
	return f
}

// lowerBound is what no plan of a device budget, or of none, makes a training step
// shorter than, by the same prices and in the order of these plans, whatever is on the
// host. It is 0 if it is not known, and with several streams, which have no order.
func lowerBound(b *built, p planned, bounds []*bound.Bounds, budget int64) time.Duration {
	if budget == 0 {
		budget = math.MaxInt64 / 2
	}
	var total time.Duration
	for i, of := range bounds {
		if of == nil || p.Results[i].Options.Streams > 1 {
			return 0
		}
		least := of.Time(budget + rounding(p, i))
		if least == bound.Never {
			return 0
		}
		total += time.Duration(b.model.Objectives[i].Times) * least
	}
	return total
}
