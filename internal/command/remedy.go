package command

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/planner"
)

// shortage is a refusal in words of the command line.
type shortage struct{ *gomem.ErrOutOfMemory }

// Error is the refusal, with what would help as flags.
func (s shortage) Error() string { return s.Explain() + "; " + advice(s.ErrOutOfMemory) }

// Unwrap is the library's error.
func (s shortage) Unwrap() error { return s.ErrOutOfMemory }

// inFlags is an error with remedies, if it has any, as flags.
func inFlags(err error) error {
	if e, ok := errors.AsType[*gomem.ErrOutOfMemory](err); ok {
		return shortage{e}
	}
	if e, ok := errors.AsType[*mesh.Error](err); ok {
		return usagef("--mesh %s: %w", e.Spec.Mesh, e.Err)
	}
	return err
}

// advice is what would help, as flags: what has been found to fit, and else what the budgets
// must be. What else would help is for plan --advise to say, which tries it.
func advice(e *gomem.ErrOutOfMemory) string {
	r, short := e.Remedy, e.Space.String()
	flags := map[planner.Change]string{
		planner.UsePolicy:        fmt.Sprintf("--policy %s", r.Policy),
		planner.AllowBoth:        "leaving out --no-placement and --no-swap",
		planner.SmallerPartition: fmt.Sprintf("--partition %d", r.N),
		planner.ShorterLookahead: fmt.Sprintf("--lookahead %d", r.N),
	}[r.Change]
	switch {
	case r.Change == planner.RaiseOther:
		return fmt.Sprintf("raise --%s-memory to that, and --%s-memory to %s", short,
			r.Space.String(), exact(r.Bytes))
	case r.Change == planner.UseDisk:
		return fmt.Sprintf("raise --%s-memory to that, or --disk-memory %d would do (%s, with "+
			"--disk DIR to train)", short, r.Bytes, size(r.Bytes))
	case flags == "":
		return fmt.Sprintf("raise --%s-memory to that; gomem plan --advise, with the same flags, "+
			"ranks what else would do", short)
	}
	return fmt.Sprintf("%s would fit: it needs %s", flags, exact(r.Bytes))
}
