package plan

import "fmt"

// Error is a broken promise of a plan, or what went wrong in a step of it.
type Error struct {
	Step int    // index of the step; -1 if the plan as a whole is at fault
	Name string // name of the step's node, of the slot's value or of the part; may be empty
	Err  error
}

// Error is one line.
func (e *Error) Error() string {
	switch {
	case e.Step < 0 && e.Name == "":
		return fmt.Sprintf("plan: %v", e.Err)
	case e.Step < 0:
		return fmt.Sprintf("plan: %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("plan: step %d (%s): %v", e.Step, e.Name, e.Err)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }
