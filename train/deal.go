package train

import "github.com/gomem/gomem/data"

// Batches have numbers in the order of the data, from 0 through all passes. A step takes the
// next ones, as many as its workers need, and each worker has those of its rank. Where a run is
// in its data is one number, that of batches which steps that count have taken, and all workers
// agree on it whenever they agree on a state: so each batch is learnt from once, however often
// workers come and go.

// origin is where a run goes on: after how many steps, and with which batch of all workers'.
type origin struct{ step, execution int }

// dealing says which batches the steps after an origin take: a function of nothing but this.
type dealing struct {
	origin
	perStep int // of a worker
	workers int
	limit   int  // batches of the run; 0: it counts steps
	exact   bool // from the limit on batches count for nothing; else they are of a further pass
}

// position is how many batches have been taken before a step.
func (d dealing) position(step int) int {
	n := d.execution + (step-d.step)*d.perStep*d.workers
	if d.limit > 0 && d.exact {
		return min(n, max(d.limit, d.execution))
	}
	return n
}

// batch is the number of the i-th batch of a worker in a step. ok says whether it counts.
func (d dealing) batch(step, i, rank int) (n int, ok bool) {
	n = d.position(step) + i*d.workers + rank
	return n, d.limit == 0 || !d.exact || n < d.limit
}

// total is how many steps take all batches, those before the origin included.
func (d dealing) total() int {
	each := d.perStep * d.workers
	return d.step + (max(0, d.limit-d.execution)+each-1)/each
}

// dealing is that of the present group of workers.
func (r *run) dealing() dealing {
	return dealing{r.from, r.perStep, r.workers(), r.batches(), r.exact || r.sits()}
}

// total is how many steps the run is to reach, with as many workers as there are.
func (r *run) total() int {
	if r.Epochs > 0 {
		return r.dealing().total()
	}
	return r.Steps
}

// executions is how many batches the steps before the present one have taken.
func (r *run) executions() int { return r.dealing().position(r.done) }

// mark makes the present step the origin of those that follow, since others may take them.
func (r *run) mark() { r.from = origin{r.done, r.executions()} }

// global is the number of the i-th batch of this worker in the present step, and whether it
// counts.
func (r *run) global(i int) (n int, counts bool) {
	rank := 0
	if r.Parallel != nil && !r.Parallel.Mesh {
		rank = r.Parallel.Rank
	}
	return r.dealing().batch(r.done, i, rank)
}

// pace is the step that the learning rate is of. Over passes of the data it runs with the
// data, whose steps of several workers are as many of one.
func (r *run) pace() int {
	if r.Epochs > 0 {
		return r.executions() / r.perStep
	}
	return r.done
}

// idle reports whether this worker has no batch in the present step, and may sit it out, since
// its part is exchanged after it.
func (r *run) idle() bool {
	_, counts := r.global(0)
	return !counts && r.Parallel != nil && r.Parallel.Between != nil
}

// sits reports whether who has no batch sits a step out, which then is not one in part.
func (r *run) sits() bool {
	return r.perStep == 1 && r.Parallel != nil && r.Parallel.Between != nil
}

// dealt is the batch of an execution. One that counts for nothing is masked.
func (r *run) dealt(at moment) data.Batch {
	if !at.masked {
		return r.Loader.Train(at.execution)
	}
	b, _ := r.Loader.(data.Maskable).Uncounted(at.execution)
	return b
}

// masks reports whether a batch can be made to count for nothing, in every objective.
func (o Options) masks() bool {
	for _, x := range o.Model.Objectives {
		if !x.Weighs {
			return false
		}
	}
	m, ok := o.Loader.(data.Maskable)
	if ok {
		_, ok = m.Uncounted(0)
	}
	return ok
}
