package command

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// shortage is a refusal in words of the command line.
type shortage struct {
	*gomem.ErrOutOfMemory
	beside  account       // what --host-memory has to give beside the plan
	options gomem.Options // of the plan
}

// Error is the refusal, with what would help as flags.
func (s shortage) Error() string {
	if s.whole() && s.options.HostBytes <= s.options.ProcessBytes {
		return s.beside.tooLittle(s.options.HostBytes, s.Need, s.options.NetworkBytes)
	}
	return s.said() + "; " + s.advice()
}

// Unwrap is the library's error.
func (s shortage) Unwrap() error { return s.ErrOutOfMemory }

// whole reports whether what is short is a host budget of the whole process, as --host-memory
// gives. One that is a model size's is of the plan alone.
func (s shortage) whole() bool { return s.Space == space.Host && s.options.ProcessBytes > 0 }

// beyond is what a flag of a memory has to give beside what plans take.
func (s shortage) beyond(of space.ID) int64 {
	if of != space.Host {
		return 0
	}
	return s.beside.total() + s.options.NetworkBytes
}

// need is what the budget would have to be that is short.
func (s shortage) need() int64 {
	if s.whole() {
		return s.Need + s.beyond(space.Host)
	}
	return s.Need
}

// said is the refusal but for what would help.
func (s shortage) said() string {
	if !s.whole() {
		return s.Explain()
	}
	e := *s.ErrOutOfMemory
	e.Need, e.Budget = s.need(), s.options.HostBytes
	return e.Explain() + "; " + s.beside.taken()
}

// inFlags is an error with remedies, if it has any, as flags.
func inFlags(err error) error { return (&built{}).inFlags(err, gomem.Options{}) }

// inFlags is an error of plans of the model by options, as flags.
func (b *built) inFlags(err error, o gomem.Options) error {
	if e, ok := errors.AsType[*gomem.ErrOutOfMemory](err); ok {
		return shortage{e, b.beside, o}
	}
	if e, ok := errors.AsType[*mesh.Error](err); ok {
		return usagef("--mesh %s: %w", e.Spec.Mesh, e.Err)
	}
	return err
}

// advice is what would help, as flags: what has been found to fit, and else what the budgets
// must be. What else would help is for plan --advise to say, which tries it.
func (s shortage) advice() string {
	r, short := s.Remedy, s.Space.String()
	flags := map[planner.Change]string{
		planner.UsePolicy:        fmt.Sprintf("--policy %s", r.Policy),
		planner.AllowBoth:        "leaving out --no-placement and --no-swap",
		planner.SmallerPartition: fmt.Sprintf("--partition %d", r.N),
		planner.ShorterLookahead: fmt.Sprintf("--lookahead %d", r.N),
	}[r.Change]
	raise := fmt.Sprintf("raise --%s-memory to that", short)
	if flag := s.Need + s.beyond(s.Space); flag != s.need() {
		raise = fmt.Sprintf("raise --%s-memory to %s, since it is of the whole process", short,
			exact(flag))
	}
	switch {
	case r.Change == planner.RaiseOther:
		return fmt.Sprintf("%s, and --%s-memory to %s", raise, r.Space.String(),
			exact(r.Bytes+s.beyond(r.Space)))
	case r.Change == planner.UseDisk:
		return fmt.Sprintf("%s, or --disk-memory %d would do (%s, with --disk DIR to train)", raise,
			r.Bytes, size(r.Bytes))
	case flags == "":
		return fmt.Sprintf("%s; gomem plan --advise, with the same flags, ranks what else would do",
			raise)
	}
	if s.whole() {
		r.Bytes += s.beyond(space.Host)
	}
	return fmt.Sprintf("%s would fit: it needs %s", flags, exact(r.Bytes))
}
