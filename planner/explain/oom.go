package explain

import (
	"fmt"
	"strings"

	"github.com/docker/go-units"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
)

// ErrOutOfMemory says that no plan fits a budget.
type ErrOutOfMemory struct {
	Target string
	Space  space.ID // the memory that is short: the device, the host, or space.Disk
	// Need is the smallest budget of Space, in bytes, that works with these options
	// and the other memories' budgets: a byte less is refused. If no budget of Space
	// does, the Remedy is to raise the device's too.
	Need   int64
	Budget int64         // of Space, in bytes
	Beside int64         // bytes of Need, and of Budget, that are not for plans
	At     string        // the operation at which the most bytes are live
	Op     string        // its operation's name
	Live   []plan.Holder // the ten largest holders of Space at that point, workspaces included
	Taken  int64         // what all holders take then; of what is needed, the rest is gaps
	Values int           // how many there are
	Remedy Remedy        // what would help, beside a budget of Need
}

// Error is one line: what is needed, what sets it, what would help.
func (e *ErrOutOfMemory) Error() string { return e.Explain() + "; " + e.Remedy.String() }

// Explain is the line but for the remedy.
func (e *ErrOutOfMemory) Explain() string {
	beside := ""
	if e.Beside > 0 {
		beside = fmt.Sprintf(", %s of both beside the plan", units.BytesSize(float64(e.Beside)))
	}
	text := fmt.Sprintf("%s needs %s (%d bytes) of %s memory, the budget is %s%s; %s (%s) sets it",
		e.Target, units.BytesSize(float64(e.Need)), e.Need, e.Space,
		units.BytesSize(float64(e.Budget)), beside, e.At, e.Op)
	if list := e.holders(); len(list) > 0 {
		text += ": " + strings.Join(list, ", ")
	}
	return text
}

// holders are the three largest holders, and how many more there are, with what they take: all
// that is there adds up to Taken.
func (e *ErrOutOfMemory) holders() []string {
	const most = 3
	var list []string
	rest := e.Taken
	for _, h := range e.Live[:min(most, len(e.Live))] {
		list = append(list, fmt.Sprintf("%s %s %s", h.Value, h.Type,
			units.BytesSize(float64(h.Bytes))))
		rest -= h.Bytes
	}
	if more := e.Values - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more %s", more, units.BytesSize(float64(rest))))
	}
	return list
}

// Refusal explains why no plan fits.
func Refusal(s *candidates.Search) error {
	e, err := shortage(s)
	if err != nil {
		return fmt.Errorf("planner: %w", err)
	}
	return refuse(s, e)
}

// refuse adds to a shortage what would help.
func refuse(s *candidates.Search, e *ErrOutOfMemory) error {
	if e.Remedy.Change == RaiseOther {
		return e
	}
	var err error
	if e.Remedy, err = remedy(s, e); err != nil {
		return fmt.Errorf("planner: %w", err)
	}
	return e
}

// shortage finds the space that is short: the first in which more is enough, of the disk,
// if there is one, since there is most of that, the host and the device, of which there is least.
func shortage(s *candidates.Search) (*ErrOutOfMemory, error) {
	for _, short := range []space.ID{space.Disk, space.Host, space.Device} {
		if short == space.Disk && s.Options.DiskBytes == 0 {
			continue
		}
		l, err := s.Minimum(short)
		if err != nil {
			return nil, err
		}
		if l != nil {
			return describe(s, short, l)
		}
	}
	return bothShort(s)
}

// bothShort is the shortage of the host where the device's budget must be raised
// too.
func bothShort(s *candidates.Search) (*ErrOutOfMemory, error) {
	host, device, err := s.BothShort()
	if err != nil {
		return nil, err
	}
	e, err := describe(s, space.Host, host)
	if err == nil {
		e.Remedy = Remedy{Change: RaiseOther, Space: space.Device, Bytes: device}
	}
	return e, err
}

// describe says what sets the smallest budget.
func describe(s *candidates.Search, short space.ID,
	l *candidates.Minimum) (*ErrOutOfMemory, error) {
	p, err := s.PlanOf(l)
	if err != nil {
		return nil, err
	}
	peak := p.Peak(short, 10)
	n := s.Graph.Node(p.Steps[peak.Step].Node)
	return &ErrOutOfMemory{
		Target: l.Target, Space: short, Need: l.Bytes,
		Budget: *s.Options.Budget(short),
		At:     n.Name, Op: n.OpName(), Live: peak.Largest, Taken: peak.Live,
		Values: peak.Values,
	}, nil
}

// Gentlest is the refusal that asks for less than the others: for more of the host only, if
// one of them does, since a larger budget of either memory is enough if one of the graphs
// does with it.
func Gentlest(refused []*candidates.Search) error {
	var best *ErrOutOfMemory
	first := len(refused)
	for _, i := range candidates.ByFloor(refused) {
		if best != nil && best.Space == space.Device && refused[i].Floor() > best.Need {
			break // the others need more of the device
		}
		e, err := shortage(refused[i])
		if err != nil {
			return fmt.Errorf("planner: %w", err)
		}
		if best == nil || lesser(e, best) || !lesser(best, e) && i < first {
			best, first = e, i
		}
	}
	return refuse(refused[first], best)
}

// lesser reports whether a refusal asks for less than another.
func lesser(a, b *ErrOutOfMemory) bool {
	return rank(a) < rank(b) || rank(a) == rank(b) && a.Need < b.Need
}

// rank orders refusals by what must be raised: the disk's budget, the host's, the device's, the
// host's and the device's.
func rank(e *ErrOutOfMemory) int {
	switch {
	case e.Space == space.Disk:
		return 0
	case e.Remedy.Change == RaiseOther:
		return 3
	case e.Space == space.Host:
		return 1
	}
	return 2
}
