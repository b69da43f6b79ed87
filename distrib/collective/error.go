package collective

import (
	"encoding/binary"
	"fmt"

	"github.com/gomem/gomem/distrib"
)

// AbortError says that another node gave up an operation, for a reason of its own.
type AbortError struct {
	Node   distrib.NodeID
	Reason string
}

// Error is one line.
func (e *AbortError) Error() string {
	return fmt.Sprintf("node %d gave up: %s", e.Node, e.Reason)
}

// MismatchError says that two nodes are in different operations at the same place: their
// programs or plans differ.
type MismatchError struct {
	Node         distrib.NodeID // the other one
	Seq          uint64         // the number of the operation, from 1
	Mine, Theirs string
}

// Error is one line.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("operation %d is %s here and %s on node %d: all nodes must run the same",
		e.Seq, e.Mine, e.Theirs, e.Node)
}

// BusyError says that a group was asked for an operation while another one runs.
type BusyError struct{ Running string }

// Error is one line.
func (e *BusyError) Error() string {
	return "the group is busy with " + e.Running + ": operations run one at a time"
}

// PoisonedError is what a group refuses work with after an operation has failed.
type PoisonedError struct{ Err error }

// Error is one line.
func (e *PoisonedError) Error() string {
	return "the group refuses further work: " + e.Err.Error()
}

// Unwrap is what failed.
func (e *PoisonedError) Unwrap() error { return e.Err }

// reasonOf writes an error for the other members: the nodes that are lost by it, four bytes
// each, and a text.
func reasonOf(err error) string {
	var b []byte
	if lost, ok := err.(*distrib.LostError); ok {
		for _, n := range lost.Nodes {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
	}
	text := err.Error()
	return string(b) + text[:min(len(text), maxLabel)]
}

// parseReason reads what reasonOf wrote of so many nodes.
func parseReason(s string, lost int) (nodes []distrib.NodeID, text string) {
	for ; lost > 0 && len(s) >= 4; lost-- {
		nodes = append(nodes, distrib.NodeID(binary.LittleEndian.Uint32([]byte(s))))
		s = s[4:]
	}
	return nodes, s
}
