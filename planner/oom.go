package planner

import (
	"fmt"
	"math"
	"strings"

	"github.com/docker/go-units"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// ErrOutOfMemory says that no plan fits a budget.
type ErrOutOfMemory struct {
	Target string
	Space  space.ID // the memory that is short: the device, the host, or [Disk]
	// Need is the smallest budget of Space, in bytes, that works with these options
	// and the other memories' budgets: a byte less is refused. If no budget of Space
	// does, the Remedy is to raise the device's too.
	Need   int64
	Budget int64         // of Space, in bytes
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
	text := fmt.Sprintf("%s needs %s (%d bytes) of %s memory, the budget is %s; %s (%s) sets it",
		e.Target, units.BytesSize(float64(e.Need)), e.Need, SpaceName(e.Space),
		units.BytesSize(float64(e.Budget)), e.At, e.Op)
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

// refusal explains why no plan fits.
func (s *variant) refusal() error {
	e, err := s.shortage()
	if err != nil {
		return fmt.Errorf("planner: %w", err)
	}
	return s.refuse(e)
}

// refuse adds to a shortage what would help.
func (s *variant) refuse(e *ErrOutOfMemory) error {
	if e.Remedy.Change == RaiseOther {
		return e
	}
	var err error
	if e.Remedy, err = s.remedy(e); err != nil {
		return fmt.Errorf("planner: %w", err)
	}
	return e
}

// shortage finds the space that is short: the first in which more is enough, of the disk,
// if there is one, since there is most of that, the host and the device, of which there is least.
func (s *variant) shortage() (*ErrOutOfMemory, error) {
	for _, short := range []space.ID{Disk, space.Host, space.Device} {
		if short == Disk && s.levels() == 1 {
			continue
		}
		l, err := s.least(short)
		if err != nil {
			return nil, err
		}
		if l != nil {
			return s.explain(short, l)
		}
	}
	return s.bothShort()
}

// bothShort is the shortage of the host where the device's budget must be raised
// too.
func (s *variant) bothShort() (*ErrOutOfMemory, error) {
	limits := budgets(s.options)
	limits[space.Device] = math.MaxInt64
	q := query{of: space.Host, limits: limits, candidates: ladder.straight, most: math.MaxInt64}
	l, err := s.answer(q)
	if err != nil {
		return nil, err
	}
	q.of, q.limits[space.Host] = space.Device, l.bytes
	device, err := s.answer(q)
	if err != nil {
		return nil, err
	}
	e, err := s.explain(space.Host, l)
	if err == nil {
		e.Remedy = Remedy{Change: RaiseOther, Space: space.Device, Bytes: device.bytes}
	}
	return e, err
}

// explain says what sets the smallest budget.
func (s *variant) explain(short space.ID, l *least) (*ErrOutOfMemory, error) {
	p, _, err := l.job.lower(s.ctx, l.candidate)
	if err != nil {
		return nil, err
	}
	peak := p.Peak(short, 10)
	n := s.graph.Node(p.Steps[peak.Step].Node)
	return &ErrOutOfMemory{
		Target: l.job.target.Name, Space: short, Need: l.bytes,
		Budget: *budget(&s.options, short),
		At:     n.Name, Op: n.OpName(), Live: peak.Largest, Taken: peak.Live,
		Values: peak.Values,
	}, nil
}
