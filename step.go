package gomem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/graph"
)

// StepError is a step that was refused, or that ended before it was done.
type StepError struct {
	Target string
	// Torn names the variables, in order, that the step had begun to write: their
	// values are of no use. All others have the values of the last finished step.
	Torn []string
	Err  error
}

// Intact reports whether all variables have the values of the last finished step:
// the session goes on as if the step had not been.
func (e *StepError) Intact() bool { return len(e.Torn) == 0 }

// Error is one line, which names the first of the torn variables.
func (e *StepError) Error() string {
	s := fmt.Sprintf("gomem: step %s: %v", e.Target, e.Err)
	switch n := len(e.Torn); n {
	case 0:
		return s
	case 1:
		return s + "; variable " + e.Torn[0] + " is half-updated"
	default:
		return fmt.Sprintf("%s; variable %s and %d more are half-updated", s, e.Torn[0], n-1)
	}
}

// Unwrap is the cause.
func (e *StepError) Unwrap() error { return e.Err }

// ErrTorn is the error of a variable that a step, or reading a file, failed in the middle of.
// Setting it, or initialising all, mends it.
var ErrTorn = errors.New("it was left half-updated: set it, or initialise")

// Step runs a target once and returns its fetches, in the target's order; of a
// variable, its value from before the step's updates. The feeds must have every input
// that the target reads or fetches, and may have others of the graph. Data that an
// operation would refuse, such as a label that is no class, is refused before the step
// begins, where it comes from the feeds.
//
// If ctx ends, the operation under way is the last, and the error is ctx's. Every
// error is a *[StepError], which says whether the variables are intact; if they
// are, or once those that are not have been set again, the session goes on.
func (s *Session) Step(ctx context.Context, name string, feeds Feeds) ([]Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.step(ctx, name, feeds)
	if err == nil {
		return out, nil
	}
	failed := &StepError{Target: name, Err: err}
	if run, ok := errors.AsType[*executor.RunError](err); ok {
		failed.Torn, failed.Err = s.wholes(run.Torn), run.Err
		for _, variable := range run.Torn {
			s.torn[variable] = true
		}
	}
	return nil, failed
}

func (s *Session) step(ctx context.Context, name string, feeds Feeds) ([]Tensor, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	t, err := s.target(name)
	if err != nil {
		return nil, err
	}
	if err := s.checkFeeds(t, feeds); err != nil {
		return nil, err
	}
	out := make([]Tensor, len(t.fetches))
	if err := t.fetchLeaves(ctx, out, feeds); err != nil {
		return nil, err
	}
	if err := s.agree(ctx, t); err != nil {
		return nil, err
	}
	t.exec.Begin()
	for i, b := range t.result.Plan.Feeds {
		if err := t.exec.Write(b, feeds[t.feeds[i]].Data); err != nil {
			return nil, err
		}
	}
	if err := t.exec.Run(ctx); err != nil {
		return nil, err
	}
	return out, t.fetchResults(out)
}

// ready reports why no step can begin.
func (s *Session) ready(ctx context.Context) error {
	switch {
	case s.device == nil:
		return ErrClosed
	case ctx == nil:
		return errors.New("the context is nil")
	case len(s.torn) > 0:
		torn := s.wholes(slices.Collect(maps.Keys(s.torn)))
		return fmt.Errorf("variable %s: %w", torn[0], ErrTorn)
	}
	return nil
}

// instead says what helps who has data of another type than wanted.
func instead(want, have graph.Type) string {
	switch {
	case have.DType == want.DType && want.Rank() > 0 && have.Rank() == want.Rank():
		return ": another size is another target's"
	case have.SameShape(want):
		return ": convert it with Tensor.To"
	}
	return ""
}

// checkFeeds reports what is wrong with the feeds of a target.
func (s *Session) checkFeeds(t *target, feeds Feeds) error {
	for v := range feeds {
		if !s.inputs[v] {
			return fmt.Errorf("%s is fed, but is no input of the graph", v)
		}
	}
	if err := unfed(t.feeds, feeds); err != nil {
		return err
	}
	for _, v := range t.feeds {
		data := feeds[v]
		switch {
		case !data.Type.Equal(v.Type()):
			return fmt.Errorf("input %s is %s, fed with %s%s", v, v.Type(), data.Type,
				instead(v.Type(), data.Type))
		case int64(len(data.Data)) != v.Type().Bytes():
			return fmt.Errorf("input %s is %s, fed with %d bytes", v, v.Type(), len(data.Data))
		}
	}
	for _, c := range t.checks {
		if err := c.run(t.feeds, feeds); err != nil {
			return err
		}
	}
	return nil
}

// unfed reports the inputs of a target that are not fed, all of them.
func unfed(inputs []graph.Value, feeds Feeds) error {
	var missing []string
	for _, v := range inputs {
		if _, ok := feeds[v]; !ok {
			missing = append(missing, fmt.Sprintf("%s (%s)", v, v.Type()))
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("input %s is not fed", missing[0])
	}
	last := len(missing) - 1
	return fmt.Errorf("inputs %s and %s are not fed", strings.Join(missing[:last], ", "),
		missing[last])
}
