package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	counters "runtime/metrics"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// classes are the accounts of the Go runtime's memory: what is logged of it, and its name in
// package runtime/metrics.
var classes = [][2]string{
	{"objects", "/memory/classes/heap/objects:bytes"},
	{"unused", "/memory/classes/heap/unused:bytes"},
	{"idle", "/memory/classes/heap/free:bytes"},
	{"stacks", "/memory/classes/heap/stacks:bytes"},
	{"total", "/memory/classes/total:bytes"},
	{"returned", "/memory/classes/heap/released:bytes"},
}

// logMemory logs, at debug, who has this process's memory at a time of a run. What the runtime has
// not, beside the plan's memory once that is taken, is the program and what libraries map.
func logMemory(log *slog.Logger, when string) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	samples := make([]counters.Sample, len(classes))
	for i, c := range classes {
		samples[i].Name = c[1]
	}
	counters.Read(samples)
	now, peak := resident()
	args := []any{"when", when, "resident_bytes", now, "peak_bytes", peak}
	for i, c := range classes {
		args = append(args, c[0]+"_bytes", samples[i].Value.Uint64())
	}
	log.Debug("memory", args...)
}

// account is what a process that trains has beside its plan's memory, in bytes, as it is known
// before the first step.
type account struct {
	Held    int64 `json:"held_bytes"`    // data, graph and plans, and what Go keeps of them
	Passing int64 `json:"passing_bytes"` // batches, results, and parts of what is read or saved
	Garbage int64 `json:"garbage_bytes"` // what is let lie before it is collected
	Program int64 `json:"program_bytes"` // code, stacks, and what libraries map
}

const (
	programBytes = 36 << 20 // TestProgram measures it
	partsBytes   = 4 << 20  // of what is read, packed or saved at once
	leastGarbage = 8 << 20  // so much is made before it is collected, or half of what is held
	goBytes      = 12 << 20 // that Go keeps, and what is held of no model
	nodeBytes    = 5 << 9   // of a model's graph, of what it is planned as, and of plans
	wordBytes    = 20 << 20 // of data that are texts, as many as Go's documentation
	dataBytes    = 6 << 20  // of others, as are drawn by default
)

// expects has the model's process take what one does that has planned it and read the data that it
// learns from by default. TestExpected compares that with what there is.
func (b *built) expects() *built {
	data := int64(dataBytes)
	if slices.Contains(b.kind.data, "go") {
		data = wordBytes
	}
	b.beside = expected(b.model.Graph, b.targets, data)
	return b
}

// expected is the account of a process that has planned some targets of a graph and read so much of
// data.
func expected(g *graph.Graph, targets []gomem.Target, data int64) account {
	a := account{Held: goBytes + nodeBytes*int64(g.Len()) + data, Passing: partsBytes,
		Program: programBytes}
	var most int64
	for _, t := range targets {
		n := int64(0)
		for _, v := range t.Fetches {
			n += v.Type().Bytes()
		}
		most = max(most, n)
	}
	for _, n := range g.Inputs() {
		most += n.Out[0].Bytes()
	}
	a.Passing += 2 * most
	a.Garbage = garbage(a.Held)
	return a
}

// within are options of the model's plans. A host budget that is given is of the whole process, one
// that is the model size's of the plans alone.
func (b *built) within(o gomem.Options, given planFlags) gomem.Options {
	if given.HostBytes > 0 {
		o.ProcessBytes = b.beside.total()
	}
	return o
}

// total is all of it.
func (a account) total() int64 { return a.Held + a.Passing + a.Garbage + a.Program }

// String is one line.
func (a *account) String() string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s beside the plan: %s", atLeast(a.total()), a.parts())
}

// parts says what it is made of.
func (a *account) parts() string {
	return fmt.Sprintf("data, graph and plans %s, batches and parts of variables %s, garbage %s, "+
		"program %s", atLeast(a.Held), atLeast(a.Passing), atLeast(a.Garbage), atLeast(a.Program))
}

// taken says of a process what it takes itself.
func (a *account) taken() string {
	return fmt.Sprintf("the process itself takes %s (%s)", atLeast(a.total()), a.parts())
}

// tooLittle is the refusal of a budget of the whole process that has no room for any plan, one of
// which would take so much of it.
func (a *account) tooLittle(budget, plan, others int64) string {
	return fmt.Sprintf("--host-memory %s: %s, and the plan %s: --host-memory %s would do",
		size(budget), a.taken(), size(plan), exact(a.total()+plan+others))
}

// measured is the account of this process once it has planned and read: it gives back to the system
// what that has left, before a plan's memory is taken. Else the peak of a run would have both. It
// is called where most is garbage.
func measured(log *slog.Logger, p *gomem.Planned) account {
	logMemory(log, "planned")
	debug.FreeOSMemory()
	logMemory(log, "returned")
	a := account{Held: held(), Passing: partsBytes + passing(p), Program: programBytes}
	a.Garbage = garbage(a.Held)
	return a
}

// held is what Go has of the system, in bytes.
func held() int64 {
	total := []counters.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	counters.Read(total)
	return int64(total[0].Value.Uint64() - total[1].Value.Uint64())
}

// garbage is how much is let lie beside so much that is held.
func garbage(held int64) int64 { return max(leastGarbage, held/2) }

// least is the account with as little garbage as a process can do with.
func (a account) least() account {
	a.Garbage = leastGarbage / 2
	return a
}

// fitted is the account with garbage that is as much as what is held, for which less is collected,
// or as a process has room for that may take so much, if that is enough.
func (a account) fitted(bytes int64) (b account, ok bool) {
	a.Garbage = min(max(a.Garbage, a.Held), bytes-(a.total()-a.Garbage))
	return a, a.Garbage >= a.least().Garbage
}

// leaner is the account with as much less garbage as a process needs that may take so much, if it
// can do with that.
func (a account) leaner(bytes int64) account {
	if over := a.total() - bytes; over > 0 {
		a.Garbage = max(a.Garbage-over, a.least().Garbage)
	}
	return a
}

// withinBudget is the account within a host budget that plans have a part of.
func (a account) withinBudget(bytes int64, p *gomem.Planned) (account, error) {
	host := p.Peak(space.Host)
	b, ok := a.fitted(bytes - host)
	if !ok {
		return a, errors.New(a.tooLittle(bytes, host, 0))
	}
	return b, nil
}

// keep has garbage be collected within the account until undo. A limit of who runs the program is
// kept to as well.
func (a account) keep() (undo func()) { return limited(a.total() - a.Program) }

// limited has garbage be collected before Go has more than some bytes, until undo.
func limited(bytes int64) (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, bytes))
	return func() { debug.SetMemoryLimit(before) }
}

// keptWithin keeps what the process has beside plans within a host budget of the whole process, if
// there is one, until the command ends, and refuses a budget that has no room for it.
func keptWithin(log *slog.Logger, o gomem.Options, p *gomem.Planned) error {
	if o.ProcessBytes == 0 {
		return nil
	}
	a, err := measured(log, p).withinBudget(o.HostBytes, p)
	if err == nil {
		a.keep()
	}
	return err
}

// passing is the most bytes of two batches and their results.
func passing(p *gomem.Planned) (most int64) {
	for _, r := range p.Results {
		n := int64(0)
		for _, feed := range r.Plan.Feeds {
			n += r.Plan.Slots[feed.Slot].Bytes
		}
		for _, fetch := range r.Plan.Fetches {
			n += fetch.Type.Bytes()
		}
		most = max(most, 2*n)
	}
	return most
}

// withinGroup has garbage be collected before the process has more memory than its control group
// may have, if that is limited, until undo: else planning a large model ends it. Undo ends all
// other limits as well.
func withinGroup() (undo func()) {
	limit := groupMemory()
	if limit == 0 {
		return limited(math.MaxInt64)
	}
	return limited(max(limit-programBytes, limit/2))
}

// planningWithin has planning keep its garbage within a budget of the whole process, if there is
// one, until undo. On the processor the device's memory is the process's, and is not taken yet.
func planningWithin(o gomem.Options) (undo func()) {
	if o.ProcessBytes == 0 {
		return func() {}
	}
	limit := o.HostBytes - programBytes
	if _, gpu := gomem.GPU(o.Device); !gpu && gomem.Computes(o.Device) {
		limit += o.DeviceBytes
	}
	return limited(max(limit, held()+4*leastGarbage))
}
