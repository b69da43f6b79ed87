package command

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	counters "runtime/metrics"

	"github.com/gomem/gomem"
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
)

// total is all of it.
func (b account) total() int64 { return b.Held + b.Passing + b.Garbage + b.Program }

// String is one line.
func (b *account) String() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf("%s beside the plan: data, graph and plans %s, batches and parts of "+
		"variables %s, garbage %s, program %s", atLeast(b.total()), atLeast(b.Held),
		atLeast(b.Passing), atLeast(b.Garbage), atLeast(b.Program))
}

// keepTo gives back to the system what planning and reading have left, before a plan's memory is
// taken: else the peak of a run would have both. It is called once, where most is garbage. From
// then on garbage is collected within the account of what the process has beside its plans, until
// undo. A limit of who runs the program is kept to as well.
func keepTo(log *slog.Logger, p *gomem.Planned) (b account, undo func()) {
	logMemory(log, "planned")
	debug.FreeOSMemory()
	logMemory(log, "returned")
	total := []counters.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	counters.Read(total)
	b = account{Held: int64(total[0].Value.Uint64() - total[1].Value.Uint64()),
		Passing: partsBytes + passing(p), Program: programBytes}
	b.Garbage = max(leastGarbage, b.Held/2)
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, b.total()-b.Program))
	return b, func() { debug.SetMemoryLimit(before) }
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
// may have, if that is limited, until undo: else planning a large model ends it.
func withinGroup() (undo func()) {
	limit := groupMemory()
	if limit == 0 {
		return func() {}
	}
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, max(limit-programBytes, limit/2)))
	return func() { debug.SetMemoryLimit(before) }
}
