package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan"
)

// RunError is a run that did not end as it should. The executor can run again.
type RunError struct {
	// Torn names the variables that the run had begun to write, in order: they
	// are neither what they were nor, for certain, what the run was to make of them.
	// All others are what they were.
	Torn []string
	Err  error
}

// Error is the cause's line.
func (e *RunError) Error() string { return e.Err.Error() }

// Unwrap is the cause: a *[plan.Error], or the context's error.
func (e *RunError) Unwrap() error { return e.Err }

// write is a step that writes a variable.
type write struct {
	variable string
	stream   plan.StreamID
	ordinal  uint64 // of the step, among those of its stream
}

// writes finds the steps that write variables.
func writes(p *plan.Plan) []write {
	variables := map[plan.SlotID]string{}
	for _, b := range p.Variables {
		variables[b.Slot] = b.Name
	}
	var out []write
	ordinals := make([]uint64, len(p.Streams))
	for _, s := range p.Steps {
		plan.Each(s.Do, func(slot plan.SlotID, writes bool) {
			if name, ok := variables[slot]; ok && writes {
				out = append(out, write{name, s.Stream, ordinals[s.Stream]})
			}
		})
		ordinals[s.Stream]++
	}
	return out
}

// Begin resets the count of the memory used. Feeds are written after it and
// before Run.
func (e *Executor) Begin() {
	for _, m := range e.memory {
		m.ResetUsed()
	}
}

// Run runs the plan once and checks that every space was used up to exactly
// its predicted peak. If ctx ends first, no other step begins. The error is a
// *[RunError].
func (e *Executor) Run(ctx context.Context) error {
	if ctx.Err() != nil {
		return &RunError{Err: ended(ctx)}
	}
	for i, s := range e.streams {
		e.begun[i] = s.Begun()
	}
	e.run = ctx
	err := e.issue(ctx)
	e.device.Reset()
	if _, failed := errors.AsType[*device.Error](err); err == nil || !failed && e.complete() {
		// what came after the last step had begun changes nothing
		err = e.account()
	}
	if err != nil {
		away := e.Abandon()
		return &RunError{Torn: e.torn(away), Err: e.explain(err)}
	}
	return nil
}

// ended is the error of a context that has ended, with its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// issue queues the steps and waits until all have run or are skipped. It returns
// the device's error.
func (e *Executor) issue(ctx context.Context) error {
	stopped := make(chan struct{})
	disarm := context.AfterFunc(ctx, func() {
		e.device.Stop(ended(ctx))
		close(stopped)
	})
	for i := range e.work {
		if e.device.Err() != nil {
			break
		}
		e.work[i].queue()
	}
	for _, s := range e.streams {
		s.Sync()
	}
	if !disarm() {
		<-stopped // or it would stop the next run
	}
	return e.device.Err()
}

// queue hands a run of steps to its stream.
func (w *work) queue() {
	for _, before := range w.wait {
		w.stream.Wait(before.event)
	}
	w.stream.Run(w.tasks...)
	if w.record {
		w.event = w.stream.Record()
	}
}

// torn names the variables that steps of this run have begun to write, and those that the
// network had.
func (e *Executor) torn(names []string) []string {
	for _, w := range e.writes {
		if e.streams[w.stream].Begun()-e.begun[w.stream] > w.ordinal {
			names = append(names, w.variable)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// complete reports whether every step of this run has begun; since then, all have
// ended.
func (e *Executor) complete() bool {
	var begun uint64
	for i, s := range e.streams {
		begun += s.Begun() - e.begun[i]
	}
	return begun == uint64(len(e.plan.Steps))
}

// explain turns a device's error into the plan's, with operation, operand types
// and the model's line.
func (e *Executor) explain(err error) error {
	if s, ok := errors.AsType[*device.Stopped](err); ok {
		return s.Cause
	}
	d, ok := errors.AsType[*device.Error](err)
	if !ok {
		return err
	}
	n := e.graph.Node(e.plan.Steps[d.Step].Node)
	cause := &graph.Error{Node: n.Name, Op: d.What, Pos: n.Pos, In: n.InTypes(), Err: d.Err}
	return &plan.Error{Step: d.Step, Name: d.Name, Err: cause}
}

// account compares what was used with what was predicted.
func (e *Executor) account() error {
	e.ran = true
	for i, s := range e.plan.Spaces {
		used := max(e.memory[i].Used(), e.fixed[i])
		e.peak[i] = max(e.peak[i], used)
		if used != s.Bytes {
			return &plan.Error{Step: -1, Name: s.Name,
				Err: fmt.Errorf("the run used %d bytes, the plan predicts %d", used, s.Bytes)}
		}
	}
	return nil
}

// Ran reports whether a run has been complete.
func (e *Executor) Ran() bool { return e.ran }

// Peak is the most bytes of each space that any complete run has used.
func (e *Executor) Peak() []int64 { return e.peak }
