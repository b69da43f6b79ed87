package train

import (
	"cmp"

	"github.com/gomem/gomem/data"
)

// Batches have numbers in the order of the data, from 0 through all passes. A step takes the
// next ones, as many as its workers need, and each worker has those of its rank. Where a run is
// in its data is one number, that of batches which steps that count have taken, and all workers
// agree on it whenever they agree on a state: so each batch is learnt from once, however often
// workers come and go.

// origin is where a run goes on: after how many steps, and with which batch of all workers'.
type origin struct{ step, execution int }

// dealing says which batches the steps after an origin take, and where a worker is in them: a
// function of nothing but this.
type dealing struct {
	origin
	done    int // steps
	perStep int // batches of a worker
	workers int
	rank    int  // of this one; 0 where all have the same batches
	steps   int  // to reach, if the run counts them
	limit   int  // batches of the run; 0: it counts steps
	exact   bool // from the limit on batches count for nothing; else they are of a further pass
	apart   bool // who has no batch need not be in a step of the others
}

// position is how many batches have been taken before a step.
func (d dealing) position(step int) int {
	n := d.execution + (step-d.step)*d.perStep*d.workers
	if d.limit > 0 && d.exact {
		return min(n, max(d.limit, d.execution))
	}
	return n
}

// batch is the number of the i-th batch of this worker in the present step. ok says whether it
// counts.
func (d dealing) batch(i int) (n int, ok bool) {
	n = d.position(d.done) + i*d.workers + d.rank
	return n, d.limit == 0 || !d.exact || n < d.limit
}

// total is how many steps the run is to reach, with as many workers as there are: those that take
// all batches, and those before the origin.
func (d dealing) total() int {
	if d.limit == 0 {
		return d.steps
	}
	each := d.perStep * d.workers
	return d.step + (max(0, d.limit-d.execution)+each-1)/each
}

// pace is the step that the learning rate is of. Over passes of the data it runs with the
// data, whose steps of several workers are as many of one.
func (d dealing) pace() int {
	if d.limit > 0 {
		return d.position(d.done) / d.perStep
	}
	return d.done
}

// idle reports whether this worker has no batch in the present step, and may sit it out, since
// its part is exchanged after it.
func (d dealing) idle() bool {
	_, counts := d.batch(0)
	return !counts && d.apart
}

// course is where a run is in its steps and its data.
type course struct {
	o       *Options
	from    origin
	done    int  // steps done, those before a resumption included
	perStep int  // executions of objectives in a step of a worker, each with a batch
	exact   bool // a last step may be of fewer batches
}

// dealing is that of the present group of workers.
func (c *course) dealing() dealing {
	d := dealing{origin: c.from, done: c.done, perStep: c.perStep, workers: c.o.workers(),
		steps: c.o.Steps, limit: c.o.batches(), exact: c.exact,
		apart: c.o.Parallel != nil && c.o.Parallel.Between != nil}
	if c.o.Parallel != nil && !c.o.Parallel.Mesh {
		d.rank = c.o.Parallel.Rank
	}
	d.exact = d.exact || d.apart && d.perStep == 1 // a step without a batch is not one in part
	return d
}

// total is how many steps the run is to reach, with as many workers as there are.
func (c *course) total() int { return c.dealing().total() }

// executions is how many batches the steps before the present one have taken.
func (c *course) executions() int { return c.dealing().position(c.done) }

// mark makes the present step the origin of those that follow, since others may take them.
func (c *course) mark() { c.from = origin{c.done, c.executions()} }

// goOn continues the executions of a checkpoint. As many workers as then go on as if the
// run had never stopped. So do others, from the first batch that nobody has had, with steps
// of another size.
func (c *course) goOn(at Checkpoint) {
	c.from = origin{at.Step, cmp.Or(at.Executions, at.Step*c.perStep)}
}

// dealt is the batch of an execution. One that counts for nothing is masked.
func dealt(loader data.Batches, at moment) data.Batch {
	if !at.masked {
		return loader.Train(at.execution)
	}
	b, _ := loader.(data.Maskable).Uncounted(at.execution)
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
