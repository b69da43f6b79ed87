package gomlx

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
)

// ErrRefused is an operation that gomem has not. It is a notimplemented.NotImplementedError.
type ErrRefused struct {
	Op  backends.OpType
	Why string
}

// Error is one line.
func (e *ErrRefused) Error() string { return fmt.Sprintf("gomem has no %s: %s", e.Op, e.Why) }

// Is reports whether target is the error by which GoMLX knows what a backend has not.
func (e *ErrRefused) Is(target error) bool { return target == notimplemented.NotImplementedError }

// refusals are the operations that are refused, each with the reason.
func refusals() map[backends.OpType]string {
	const complex = "it has no complex numbers"
	const several = "it is one device to GoMLX; workers share a model by gomem-cluster"
	const unused = "no method of backends.Builder is called so"
	return map[backends.OpType]string{
		backends.OpTypeComplex:             complex,
		backends.OpTypeConj:                complex,
		backends.OpTypeFFT:                 complex,
		backends.OpTypeImag:                complex,
		backends.OpTypeReal:                complex,
		backends.OpTypeAllReduce:           several,
		backends.OpTypeCollectiveBroadcast: several,
		backends.OpTypeAllGather:           several,
		backends.OpTypeBroadcast:           unused,
		backends.OpTypeSelectAndScatterSum: unused,
	}
}

// refuse is the error of an operation that gomem has not.
func refuse(op backends.OpType) error {
	why, ok := refusals()[op]
	if !ok {
		why = "GoMLX has it since a later version than this backend is for"
	}
	return &ErrRefused{op, why}
}

// others refuses what no other part of [Builder] has.
type others struct{ notimplemented.Builder }
