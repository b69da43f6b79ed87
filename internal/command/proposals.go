package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// ways are proposals of one kind, of which the first that fits is enough.
type ways = func(*advisor) ([]proposal, error)

// proposals are all that may help, the likeliest first.
func (a *advisor) proposals() []ways {
	var list, baselines []ways
	for _, p := range planner.Policies() {
		by := func(a *advisor) ([]proposal, error) { return a.by(p), nil }
		switch {
		case p == cmp.Or(a.options.Policy, planner.Thesis):
		case p.Partitioned():
			list = append(list, by)
		default:
			baselines = append(baselines, by)
		}
	}
	list = append(list, (*advisor).leavingOut, (*advisor).partitions, (*advisor).lookahead,
		moreOf(space.Host), moreOf(space.Device), (*advisor).moreOfBoth, moreOf(space.Disk),
		(*advisor).halved, (*advisor).unrolled, smaller(false), smaller(true))
	for _, axis := range a.axes() {
		list = append(list, func(a *advisor) ([]proposal, error) { return a.slices(axis), nil })
	}
	return append(list, baselines...)
}

// proposal is a change of what was asked for, within the same budgets.
func (a *advisor) proposal(remedy, flags string, change func(*proposal)) proposal {
	p := proposal{model: a.cmd.modelFlags, plan: a.cmd.planFlags}
	p.Remedy, p.Flags = remedy, flags
	p.plan.DeviceBytes = byteSize(min(a.options.DeviceBytes, maxBytes))
	p.plan.HostBytes = byteSize(min(a.options.HostBytes, maxBytes))
	change(&p)
	return p
}

// by is another policy, without the flags that are not for it.
func (a *advisor) by(policy planner.Policy) []proposal {
	return []proposal{a.proposal("another policy", fmt.Sprintf("--policy %s", policy),
		func(p *proposal) {
			p.plan.Policy = string(policy)
			if !policy.Searches() {
				p.plan.PlanTime = 0
			}
			if !policy.Partitioned() {
				p.plan.Strategy, p.plan.Partition, p.plan.Lookahead = "", 0, 0
				p.plan.NoPlacement, p.plan.NoSwap = false, false
			}
		})}
}

// leavingOut is without flags that make plans need more.
func (a *advisor) leavingOut() (list []proposal, err error) {
	if f := a.cmd.planFlags; f.NoPlacement || f.NoSwap {
		list = append(list, a.proposal("placement and swapping",
			"leave out --no-placement and --no-swap",
			func(p *proposal) { p.plan.NoPlacement, p.plan.NoSwap = false, false }))
	}
	if !a.cmd.Fuse {
		list = append(list, a.proposal("fusion", "leave out --no-fuse",
			func(p *proposal) { p.plan.Fuse = true }))
	}
	if a.cmd.Streams > 1 {
		list = append(list, a.proposal("one stream", "leave out --streams",
			func(p *proposal) { p.plan.Streams = 0 }))
	}
	return list, nil
}

// tunes reports whether plans have partitions whose size is the user's to choose.
func (a *advisor) tunes() bool {
	policy := cmp.Or(a.options.Policy, planner.Thesis)
	return policy.Partitioned() && !policy.Searches()
}

// partitions are smaller ones, the largest first.
func (a *advisor) partitions() (list []proposal, err error) {
	for _, n := range []int{50, 20, 5, 1} {
		if a.tunes() && n < cmp.Or(a.options.Partition, 20) {
			list = append(list, a.proposal("a smaller partition", fmt.Sprintf("--partition %d", n),
				func(p *proposal) { p.plan.Partition = count(n) }))
		}
	}
	return list, nil
}

// lookahead is the shortest.
func (a *advisor) lookahead() (list []proposal, err error) {
	if !a.tunes() || a.options.Lookahead == 1 {
		return nil, nil
	}
	return []proposal{a.proposal("a shorter look-ahead", "--lookahead 1",
		func(p *proposal) { p.plan.Lookahead = 1 })}, nil
}

// least is the smallest budget of a memory that works with the others, 0 if there is none. It
// is the largest of all processes.
func (a *advisor) least(o gomem.Options, of space.ID) (int64, error) {
	find := gomem.MinDisk
	if of == space.Host {
		o.ProcessBytes = a.model.beside.total() // which a flag counts
	}
	switch of {
	case space.Device:
		find = gomem.MinDevice
	case space.Host:
		find = gomem.MinHost
	}
	var most int64
	for o.Rank = range processes(o) {
		bytes, err := find(a.ctx, a.model.model.Graph, o, a.model.targets...)
		if _, short := errors.AsType[*gomem.ErrOutOfMemory](err); short {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}

// upTo is a budget of at least so many bytes that is short to write.
func upTo(bytes int64) byteSize {
	unit := int64(1 << 10)
	if bytes >= 1<<30 {
		unit = 1 << 20
	}
	return byteSize((bytes + unit - 1) / unit * unit)
}

// written is such a budget as a flag has it.
func (s byteSize) written() string {
	if s%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", s>>20)
	}
	return fmt.Sprintf("%dKiB", s>>10)
}

// moreOf is a larger budget of one memory, the smallest that works with the others.
func moreOf(of space.ID) ways {
	return func(a *advisor) ([]proposal, error) {
		bytes, err := a.least(a.options, of)
		if bytes == 0 || err != nil {
			return nil, err
		}
		name := of.String()
		return []proposal{a.more(fmt.Sprintf("more %s memory", name),
			fmt.Sprintf("--%s-memory %s", name, upTo(bytes).written()),
			func(f *planFlags) { *f.budget(of) = upTo(bytes) })}, nil
	}
}

// more is a proposal of larger budgets.
func (a *advisor) more(remedy, flags string, change func(*planFlags)) proposal {
	p := a.proposal(remedy, flags, func(p *proposal) { change(&p.plan) })
	p.More = true
	return p
}

// budget is the flag of a memory.
func (f *planFlags) budget(of space.ID) *byteSize {
	switch of {
	case space.Device:
		return &f.DeviceBytes
	case space.Host:
		return &f.HostBytes
	}
	return &f.DiskBytes
}

// moreOfBoth is more of the host and of the device, where one of them is not enough.
func (a *advisor) moreOfBoth() ([]proposal, error) {
	for _, of := range []space.ID{space.Host, space.Device} {
		if alone, err := a.least(a.options, of); alone > 0 || err != nil {
			return nil, err
		}
	}
	o := a.options
	o.DeviceBytes = 0
	host, err := a.least(o, space.Host)
	if host == 0 || err != nil {
		return nil, err
	}
	o.HostBytes = int64(upTo(host))
	device, err := a.least(o, space.Device)
	if device == 0 || err != nil {
		return nil, err
	}
	return []proposal{a.more("more of both memories", fmt.Sprintf("--host-memory %s "+
		"--device-memory %s", upTo(host).written(), upTo(device).written()), func(f *planFlags) {
		f.HostBytes, f.DeviceBytes = upTo(host), upTo(device)
	})}, nil
}

// other is a proposal with which results are others.
func (a *advisor) other(remedy, flags string, change func(*proposal)) proposal {
	p := a.proposal(remedy, flags, change)
	p.Changes = true
	return p
}

// halved is in bfloat16, or, of what is, in f32, since that needs less under some policies.
func (a *advisor) halved() ([]proposal, error) {
	if !a.options.Precision.Plain() {
		return []proposal{a.other("another precision", "--precision f32",
			func(p *proposal) { p.plan.Precision = string(precision.F32) })}, nil
	}
	return []proposal{a.other("another precision", "--precision bf16",
		func(p *proposal) { p.plan.Precision = string(precision.BF16) })}, nil
}

// unrolled has an operation for each step of an LSTM.
func (a *advisor) unrolled() ([]proposal, error) {
	if !slices.Contains(a.model.kind.flags, "rnn") || a.cmd.RNN == "unrolled" {
		return nil, nil
	}
	return []proposal{a.other("an unrolled LSTM", "--rnn unrolled",
		func(p *proposal) { p.model.RNN = "unrolled" })}, nil
}

// smaller are smaller batches, the largest first; or as many more of them a step, whose
// gradients are averaged.
func smaller(accumulate bool) ways {
	return func(a *advisor) (list []proposal, err error) {
		whole := batchOf(a.model)
		if accumulate && !slices.Contains(a.model.kind.flags, "accumulate") {
			return nil, nil
		}
		for batch := whole; batch > 1; {
			if batch%2 == 0 {
				batch /= 2
			} else {
				batch = 1
			}
			remedy, flags := "a smaller batch", fmt.Sprintf("--batch %d", batch)
			times := max(int(a.cmd.Accumulate), 1) * (whole / batch)
			if accumulate {
				remedy, flags = "smaller batches", fmt.Sprintf("%s --accumulate %d", flags, times)
			}
			list = append(list, a.other(remedy, flags, func(p *proposal) {
				if p.model.Batch = count(batch); accumulate {
					p.model.Accumulate = count(times)
				}
			}))
		}
		return list, nil
	}
}

// mostAxes is of how many axes slices are tried, and mostSlices how many slices of one.
const mostAxes, mostSlices = 4, 64

// axis is an axis that a mesh may divide.
type axis struct {
	name string
	size int
}

// axes are those of the model's inputs and variables that have names; none if there is a mesh.
func (a *advisor) axes() (list []axis) {
	if a.options.Mesh != nil {
		return nil
	}
	for _, kind := range []graph.Kind{graph.KindInput, graph.KindVariable} {
		for _, n := range a.model.model.Graph.Nodes() {
			if n.Kind != kind {
				continue
			}
			for _, d := range n.Out[0].Shape {
				known := slices.ContainsFunc(list, func(x axis) bool { return x.name == d.Name })
				if d.Name != "" && !known && d.Size > 1 && len(list) < mostAxes {
					list = append(list, axis{d.Name, d.Size})
				}
			}
		}
	}
	return list
}

// slices are divisions along an axis, the coarsest first.
func (a *advisor) slices(x axis) (list []proposal) {
	for n := 2; n <= min(x.size, mostSlices); n *= 2 {
		if x.size%n == 0 {
			flags := fmt.Sprintf("--mesh %s:%d", x.name, n)
			list = append(list, a.other("slices", flags, func(p *proposal) {
				p.plan.Mesh = fmt.Sprintf("%s:%d", x.name, n)
			}))
		}
	}
	return list
}
