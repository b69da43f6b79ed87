package command

import (
	"fmt"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/plan/space"
)

// prompt is the arithmetic, in FLOPs, that a processor does in seconds.
const prompt = 2e11

// prove runs a step of every target of the most that fits, with made-up data, and
// demands the peaks that were predicted. It returns the device, which is the one
// that is wanted, or else the processor where it has the memory and a step takes
// seconds, or else the one that keeps count only.
// Of a mesh of several processes, all are planned, and nothing is run.
func (s *fitting) prove(device string) (string, error) {
	if err := s.replan(); err != nil || processes(s.options) > 1 {
		return "", err
	}
	m := s.most
	if device == "" {
		device = m.device()
	} else if err := enoughMemory(device, m.planned, account{}, 1); err != nil {
		return "", err
	}
	defer s.progress.during(fmt.Sprintf("gomem: %s %d: running a step on %s", s.quantity.name,
		m.value, device))()
	o := s.within(m.built)
	o.Device = device
	session, err := gomem.Open(m.Planned, o)
	if err != nil {
		return "", err
	}
	defer session.Close()
	feeds := thesis.Feeds(m.model)
	for _, t := range m.targets {
		if _, err := session.Step(s.ctx, t.Name, feeds); err != nil {
			return "", err
		}
	}
	for _, u := range session.Usage() {
		if u.Actual != u.Predicted {
			return "", fmt.Errorf("the %s's peak was predicted to be %d bytes, and was %d",
				u.Space, u.Predicted, u.Actual)
		}
	}
	return device, nil
}

// replan makes the plan that train would, where the search has made another.
func (s *fitting) replan() error {
	if !s.options.Policy.Searches() {
		return nil
	}
	defer s.progress.during(fmt.Sprintf("gomem: %s %d: planning it as train would",
		s.quantity.name, s.most.value))()
	o := s.within(s.most.built)
	p, err := planAll(s.ctx, io.Discard, s.most.built, o)
	if err != nil {
		return err
	}
	s.most.planned = p
	s.most.ranks, err = ofRanks(s.ctx, io.Discard, s.most.built, o, p, nil)
	return err
}

// device is where a step is run unless the user says.
func (c candidate) device() string {
	const share = 2 // unasked, half of the machine's memory may be taken
	var flops int64
	for _, o := range c.model.Objectives {
		for _, w := range c.model.Work(o) {
			flops += w.FLOPs
		}
	}
	need := c.Peak(space.Device) + c.Peak(space.Host)
	onDisk := c.Peak(space.Disk) > 0 // of which nothing is known but its size
	if have := machineMemory(); onDisk || flops > prompt || have == 0 || need > have/share {
		return gomem.Null
	}
	return gomem.CPU
}
