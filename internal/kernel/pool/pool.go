package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// spinTime is how long a worker, or a caller whose helpers are still busy, looks
// for news before it parks.
const spinTime = 50 * time.Microsecond

// Pool runs the pieces of a kernel on a fixed set of threads. A nil *Pool is
// valid and runs everything on the caller.
type Pool struct {
	threads int
	workers sync.WaitGroup

	// open is the number of jobs on the list, for workers to watch; written under mu.
	open atomic.Int32

	mu     sync.Mutex
	wake   sync.Cond // parked workers
	parked int
	jobs   []*job // may have unclaimed pieces
	free   []*job // spent jobs, to be used again
	closed atomic.Bool
}

// New returns a pool of the given number of threads, counting the caller of Run:
// it starts threads-1 goroutines, which Close stops. A number of zero or less
// means runtime.GOMAXPROCS(0).
func New(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &Pool{threads: threads}
	p.wake.L = &p.mu
	for range threads - 1 {
		p.workers.Go(p.work)
	}
	return p
}

// Threads returns the number of threads that a call to Run can use, the caller's
// included; 1 for a nil pool.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return p.threads
}

// Run calls fn(0) … fn(n-1), each exactly once, on up to Threads goroutines, of
// which the caller is one, and returns when all are done. A panic in fn keeps
// pieces not yet begun from running, and surfaces in the caller. Run may be
// called by several goroutines at once, and by fn.
func (p *Pool) Run(n int, fn func(i int)) {
	if n <= 1 || p.Threads() == 1 {
		for i := range n {
			fn(i)
		}
		return
	}
	j := p.take()
	j.fn = fn
	p.run(j, n)
}

// rangesPerThread is how many ranges For makes for every thread, so that one
// thread running late leaves the others something to take over.
const rangesPerThread = 4

// rangeUnit is the multiple of which For makes a range's bounds where the grain
// allows, so that an aligned slice is cut at cache lines.
const rangeUnit = 64

// For cuts 0 … n-1 into contiguous ranges of at least grain elements (one, if n
// is smaller) and calls fn on each, as Run does. The ranges depend on the number
// of threads, so fn must be elementwise: disjoint writes, no reduction across
// elements.
func (p *Pool) For(n, grain int, fn func(lo, hi int)) {
	unit := 1
	if grain >= rangeUnit {
		unit = rangeUnit
	}
	blocks := n / unit
	grainBlocks := max(1, (grain+unit-1)/unit)
	pieces := min(blocks/grainBlocks, p.Threads()*rangesPerThread)
	if n <= 0 {
		return
	}
	if pieces <= 1 || p.Threads() == 1 {
		fn(0, n)
		return
	}
	j := p.take()
	j.rangeFn, j.size, j.unit, j.blocks = fn, n, unit, blocks
	p.run(j, pieces)
}

// Close stops the workers and waits for them. Calls to Run in progress complete,
// and later ones run on their callers alone. Closing again, or closing a nil
// pool, does nothing.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed.Store(true)
	p.wake.Broadcast()
	p.mu.Unlock()
	p.workers.Wait()
}

// take returns an idle job.
func (p *Pool) take() *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return newJob(&p.mu)
	}
	j := p.free[last]
	p.free = p.free[:last]
	return j
}

// run does the n pieces of j with whichever workers join.
func (p *Pool) run(j *job, n int) {
	j.n = int64(n)
	j.next.Store(0)
	p.publish(j, n-1)
	defer p.finish(j)
	j.claimAll()
}

// publish puts j on the list and wakes up to helpers parked workers.
func (p *Pool) publish(j *job, helpers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = append(p.jobs, j)
	p.open.Store(int32(len(p.jobs)))
	for range min(helpers, p.parked) {
		p.wake.Signal()
	}
}

// finish takes j off the list, waits for its helpers and passes on their panic.
func (p *Pool) finish(j *job) {
	j.next.Store(j.n) // the caller itself may have left by a panic
	p.mu.Lock()
	p.unlist(j)
	p.mu.Unlock()

	spin(func() bool { return j.helpers.Load() == 0 })

	p.mu.Lock()
	for j.helpers.Load() > 0 {
		j.idle.Wait()
	}
	panicked, value := j.panicked, j.value
	j.reset()
	p.free = append(p.free, j)
	p.mu.Unlock()
	if panicked {
		panic(value)
	}
}

// unlist takes j off the list, if it is still there. The caller holds mu.
func (p *Pool) unlist(j *job) {
	for i, other := range p.jobs {
		if other == j {
			last := len(p.jobs) - 1
			p.jobs[i], p.jobs[last] = p.jobs[last], nil
			p.jobs = p.jobs[:last]
			p.open.Store(int32(last))
			return
		}
	}
}

// work is the life of a worker.
func (p *Pool) work() {
	news := func() bool { return p.open.Load() > 0 || p.closed.Load() }
	for !p.closed.Load() {
		if !spin(news) {
			p.park()
		}
		if j := p.join(); j != nil {
			p.help(j)
		}
	}
}

// park waits for a job or the pool's end.
func (p *Pool) park() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.jobs) == 0 && !p.closed.Load() {
		p.parked++
		p.wake.Wait()
		p.parked--
	}
}

// join joins a job with unclaimed pieces as a helper. It returns nil if there is
// none, as often after a short job: the worker then spins on for the next.
func (p *Pool) join() *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.jobs) > 0 {
		j := p.jobs[0]
		if j.next.Load() < j.n {
			j.helpers.Add(1)
			return j
		}
		p.unlist(j)
	}
	return nil
}

// help runs pieces of j until none is left, and leaves.
func (p *Pool) help(j *job) {
	defer func() {
		value := recover()
		p.mu.Lock()
		defer p.mu.Unlock()
		if value != nil {
			j.panicked, j.value = true, value
			j.next.Store(j.n)
		}
		if j.helpers.Add(-1) == 0 {
			j.idle.Signal()
		}
	}()
	j.claimAll()
}

// checksPerYield is how often spin looks before it lets other goroutines have
// the processor: a few microseconds.
const checksPerYield = 2000

// spin returns true as soon as done does, or false after about spinTime.
func spin(done func() bool) bool {
	start := time.Now()
	for {
		for range checksPerYield {
			if done() {
				return true
			}
		}
		if time.Since(start) > spinTime {
			return false
		}
		runtime.Gosched()
	}
}
