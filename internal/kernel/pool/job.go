package pool

import (
	"sync"
	"sync/atomic"
)

// job is one call of Run or For. The pool keeps spent jobs, so that a call
// allocates nothing.
type job struct {
	fn func(i int) // Run's function, or nil

	rangeFn            func(lo, hi int) // For's function, or nil
	size, unit, blocks int              // elements; elements a block; whole blocks

	n int64 // pieces

	_    [64]byte // every claim writes next: not beside what every piece reads
	next atomic.Int64
	_    [64]byte

	// helpers counts the workers in claimAll. It is written under the pool's mu,
	// and grows only while the job is on the pool's list.
	helpers  atomic.Int32
	idle     sync.Cond // helpers has become 0
	panicked bool
	value    any // what a helper panicked with
}

func newJob(mu *sync.Mutex) *job {
	j := &job{}
	j.idle.L = mu
	return j
}

// reset drops what a spent job holds on to.
func (j *job) reset() {
	j.fn, j.rangeFn = nil, nil
	j.panicked, j.value = false, nil
}

// claimAll runs pieces until none is left to claim.
func (j *job) claimAll() {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		j.piece(int(i))
	}
}

// piece runs piece i.
func (j *job) piece(i int) {
	if j.fn != nil {
		j.fn(i)
		return
	}
	n := int(j.n)
	lo, hi := i*j.blocks/n*j.unit, (i+1)*j.blocks/n*j.unit
	if i == n-1 {
		hi = j.size
	}
	j.rangeFn(lo, hi)
}
