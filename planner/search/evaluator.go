package search

import (
	"math"

	"github.com/gomem/gomem/planner/machine"
)

// stay is a time that a value is on the device.
type stay struct {
	value       int32
	first, last int32 // positions
	issue       int32 // the position before which it has its bytes: first, or earlier if copied
	copied      bool  // it comes from the host
}

// never is a time that does not come.
const never = math.MaxInt64 / 4

// evaluator works out what a state comes to. All its tables are used again by the
// next evaluation.
type evaluator struct {
	*Problem
	budget Budget
	forced []int8 // by leaf: 1 it must be on the device, -1 on the host, 0 either
	count  int    // evaluations so far
	scale  int64  // the budget, or what is needed with all if that is less
	// by operation: bytes that nothing has while it runs, or an execution before it; nil: none
	spare []int64

	// Build: the executions, the stays and the load.
	uses      [][]int64 // by value: keys of those that touch it
	keys      []int64   // memory of plain
	plain     [][]int64 // by value: its keys if nothing is executed again
	own       [][]int64 // by value: memory for its keys if something is
	reread    []bool    // by value: uses are those, and not the plain ones
	dirty     []bool    // by value: its keys are not in order
	touched   []int32   // the values that are reread
	away      []bool    // by group: its operations are not in the uses, but run on the host
	stale     []int32   // values that operations touch which have moved
	spoilt    []bool    // by value: it is stale
	moves     bool      // some have since the state before
	straight  bool      // the sequence has nothing that is executed again
	again     [][]int32 // by operation: what is executed again before it
	anchors   []int32   // the operations before which something is
	mark      []int32   // by operation: the last that was put into again
	fresh     []int64   // keys of one operation's executions
	atHome    []bool    // by leaf: it is on the device
	hostReads []bool    // by value: some operation on the host reads it
	seq       []int32   // by position: the operation
	key       []int64   // by position
	start     []int32   // by operation: its first position
	clock     []int64   // by position: when it starts if nothing stalls
	stays     []stay
	first     []int32 // by value: its first stay, if it has any
	ends      lists   // by position: stays of which it is the last
	made      lists   // by position: stays that begin with it, not by a copy
	over      []int32
	need      []int64 // by position: bytes it needs beside what is there
	load      []int64 // by position: bytes that are there
	gone      []bool  // by value: it is copied to the host
	absent    []bool  // by value: it is copied back
	fixed     int64
	peak      int64
	peakAt    int32

	// Calendar.
	arrivals []int32 // stays that are copied, by issue
	byNeed   []int32
	waiting  lists // by position: copied stays that it needs
	issued   lists
	before   []int32 // by stay: the position after what must be before its copy
	room     tree

	// Simulation.
	begin, end       []int64 // by position
	copyIn, copyEnd  []int64 // by stay
	outEnd           []int64 // by value: when its copy to the host is done, or 0
	freed            []int64 // by stay
	backEnd          []int64 // by leaf: when it is written back, or 0
	staged           []int64 // by group: when the last copy that reads it is done
	hostStart        []int64 // by operation
	hostEnd          []int64
	frees            heap
	timeIn, timeOut  int64
	timeDev, timeHst int64
	moved            int64 // bytes copied
	work             machine.Work
	took             int64 // by the step
}

func newEvaluator(pr *Problem, b Budget) *evaluator {
	n, v := len(pr.ops), len(pr.values)
	e := &evaluator{Problem: pr, budget: b, forced: make([]int8, len(pr.leaves)),
		uses: make([][]int64, v), keys: make([]int64, len(pr.users)), plain: make([][]int64, v),
		own: make([][]int64, v), reread: make([]bool, v), dirty: make([]bool, v),
		away: make([]bool, len(pr.groups)), again: make([][]int32, n),
		mark: make([]int32, n), atHome: make([]bool, len(pr.leaves)), hostReads: make([]bool, v),
		start: make([]int32, n+1), first: make([]int32, v), gone: make([]bool, v),
		absent: make([]bool, v), spoilt: make([]bool, v),
		outEnd: make([]int64, v), backEnd: make([]int64, len(pr.leaves)),
		staged: make([]int64, len(pr.groups)), hostStart: make([]int64, n),
		hostEnd: make([]int64, n)}
	for i := range e.mark {
		e.mark[i] = -1
	}
	for i := range int32(v) {
		e.list(i)
	}
	return e
}

// sized is a slice of n elements in the memory of another, if that has enough;
// what is in it does not matter.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// zeroed is a slice of n zeros in the memory of another, if that has enough.
func zeroed[T any](s []T, n int) []T {
	s = sized(s, n)
	clear(s)
	return s
}

// lists are lists of items by a number, in order of their entry if they are
// entered from the last to the first.
type lists struct{ head, next []int32 }

// reset makes so many lists empty, for items below a number.
func (l *lists) reset(n, items int) {
	l.head, l.next = sized(l.head, n), sized(l.next, items)
	for i := range l.head {
		l.head[i] = -1
	}
}

// add puts an item before the others of a list.
func (l *lists) add(at, item int32) {
	l.next[item] = l.head[at]
	l.head[at] = item
}
