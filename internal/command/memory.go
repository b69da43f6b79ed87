package command

import (
	"context"
	"log/slog"
	"runtime/debug"
	counters "runtime/metrics"
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

// returnMemory gives back to the system what planning and reading have left, before a plan's memory
// is taken: else the peak of a run would have both. It is called once, where most is garbage.
func returnMemory(log *slog.Logger) {
	logMemory(log, "planned")
	debug.FreeOSMemory()
	logMemory(log, "returned")
}
