package distrib

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// LostError says which nodes are gone, and in which epoch.
type LostError struct {
	Nodes []NodeID
	Epoch int64
	Err   error // what was noticed
}

// Error is one line.
func (e *LostError) Error() string {
	var names []string
	for _, n := range slices.Sorted(slices.Values(e.Nodes)) {
		names = append(names, fmt.Sprint(n))
	}
	s := fmt.Sprintf("lost node %s in epoch %d", strings.Join(names, ", "), e.Epoch)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is what was noticed.
func (e *LostError) Unwrap() error { return e.Err }

// NonsenseError is a node that has sent what cannot be used, though it has come whole: its program
// is another one, or it means harm. Its connections are given up.
type NonsenseError struct {
	Node NodeID
	Err  error // what is wrong with it
}

// Error is one line.
func (e *NonsenseError) Error() string {
	return fmt.Sprintf("node %d sent what cannot be used: %v", e.Node, e.Err)
}

// Unwrap is what is wrong with it.
func (e *NonsenseError) Unwrap() error { return e.Err }

// ErrExpelled is why a node is out that the others do not want: it does not come back by itself.
var ErrExpelled = errors.New("the others cannot use what it sends")

// StallError is a wait that took too long: who did not come, and for what.
type StallError struct {
	Nodes []NodeID // that are waited for
	Clock Clock    // that they have not reached; 0: of something that has no clocks, or the first
	What  string   // "parameter enc/0/att/q", "barrier start"
}

// Error is one line.
func (e *StallError) Error() string {
	s := fmt.Sprintf("stalled: %s waits for node %v", e.What, e.Nodes)
	if e.Clock > 0 {
		s += fmt.Sprintf(" at clock %d", e.Clock)
	}
	return s
}
