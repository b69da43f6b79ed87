package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signalled is why a context ended: a signal that asks the process to end.
type signalled struct{ syscall.Signal }

// Error is the signal's name.
func (s signalled) Error() string { return s.Signal.String() }

// Is makes it the end of a context: what was under way is over, and nothing failed.
func (signalled) Is(target error) bool { return target == context.Canceled }

// UntilSignal is a context that ends with the first signal, so that the work in
// hand is ended in order: Ctrl-C, a request to terminate, a terminal that closed, or
// standard output without a reader. The second one kills, as if gomem had not been
// there. A signal that whoever started gomem has it ignore, as nohup does, stays
// ignored.
func UntilSignal(parent context.Context) context.Context { return until(parent, true) }

// UntilAsked is [UntilSignal] for programs with connections to others: each of them that
// breaks raises the signal of a pipe without a reader. So that is no reason to end, and
// standard output without one is noticed by who writes to it.
func UntilAsked(parent context.Context) context.Context { return until(parent, false) }

func until(parent context.Context, pipes bool) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	var heeded []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			heeded = append(heeded, s)
		}
	}
	arrived := make(chan os.Signal, 1)
	// Caught for good, since the pipe stays broken: every line more, to standard
	// error perhaps, raises it again, and the run is to be saved meanwhile.
	signal.Notify(arrived, syscall.SIGPIPE)
	if len(heeded) > 0 { // none would mean all
		signal.Notify(arrived, heeded...)
	}
	go func() {
		s := <-arrived
		for s == syscall.SIGPIPE && !pipes {
			s = <-arrived
		}
		if len(heeded) > 0 {
			signal.Reset(heeded...)
		}
		if number, ok := s.(syscall.Signal); ok {
			cancel(signalled{number})
		}
		cancel(nil)
	}()
	return ctx
}

// Signal is the signal that ended a context of [UntilSignal] or [UntilAsked]; an interrupt if
// something else did.
func Signal(ctx context.Context) syscall.Signal {
	if s, ok := errors.AsType[signalled](context.Cause(ctx)); ok {
		return s.Signal
	}
	return syscall.SIGINT
}

// exitSignal is the exit status of work that a signal cut short: 128 and the
// number of the signal, as shells have it.
func exitSignal(ctx context.Context) int { return 128 + int(Signal(ctx)) }
