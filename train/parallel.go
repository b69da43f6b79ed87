package train

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/nn"
)

// Parallel makes a run that of one worker of several, which train one model together,
// each on batches of its own: in a step, worker r of n executes what a run alone would in
// n executions as its r-th. So n workers do what one does that accumulates n executions.
// All workers run the same model with the same options, except for how they plan.
//
// They begin with the same values, and end after the same step: when the steps are done,
// when one of them is to stop, when one's loss is not finite, or when worker 0 finds that
// evaluations no longer improve. They divide evaluations; worker 0 alone has the result, saves
// and has the summary of all: its losses and metrics are the means over the units of all
// workers, and its units the sums. So are the gradients that workers exchange within a step,
// means over all positions that count; between steps all workers weigh the same.
//
// What workers have each their own, where they are kept in step between steps, such as the
// state of optimizers, is in the checkpoint too, and each goes on with what it had; of more
// workers than there were, those beyond go on with what the first ones had. So a run whose
// workers are in step goes on as if it had never stopped. What is under way between steps
// is not saved: of a run with staleness, what filters hold back, and the centre of easgd.
// Where workers come and go, all go on with what one of them has.
type Parallel struct {
	Rank, Workers int
	Peers         Peers
	// Mesh has the workers be the processes of the mesh of the session's options, who make
	// each step together: all of them read every batch, and the run has the steps, losses,
	// evaluations and checkpoints of one alone. All need to read what is resumed.
	Mesh bool
	// Scheme is how the workers keep in step, which must be the same for all.
	Scheme string
	// Between keeps the variables in step between steps; nil: the session's network does,
	// within them, with the gradients.
	Between Between
	// Journal keeps what a checkpoint of any step has, beside what Between does; nil: nobody
	// does. It is for workers that do not come and go.
	Journal Journal
	// Exchanged is what this worker has exchanged so far, with Slowest and Fastest relative to
	// its own steps; it may be nil.
	Exchanged func() Exchanged
	// Elastic has the run go on when workers come and go; nil: it ends with the first that
	// does.
	Elastic Elastic
	// Fence keeps a worker from saving that others go on without; nil: nobody does.
	Fence Fence
	// Enter is of a worker that comes to others at work, and is among them when it returns:
	// called when the session is ready, so that they need not wait for that. The run then is
	// part of what it returns; of what is here, Elastic counts, and Rank and Workers for as
	// long as nobody knows better. It is nil for all who begin together.
	Enter func(ctx context.Context) (*Parallel, error)
}

// Peers is how the workers of a run agree, with a few bytes a step. What the others say is
// heard in the order in which it was told, and everybody says as much as all others do.
type Peers interface {
	// Tell tells all workers, this one included.
	Tell(ctx context.Context, says []byte) error
	// Give tells one worker alone, by rank: the others hear that it says nothing.
	Give(ctx context.Context, to int, says []byte) error
	// Hear waits for what all workers have told next, by rank.
	Hear(ctx context.Context) ([][]byte, error)
	// Leave says that this worker has ended, and why: nil if it is done. What the others
	// wait for in vain ends with that reason. Only the first call counts.
	Leave(why error)
}

// Between keeps the variables of workers in step when they are not in one.
type Between interface {
	// Begin is called once, when the session has its first values.
	Begin(ctx context.Context, s *gomem.Session) error
	// Step follows every step: it hands out what this worker has changed, and takes in what
	// others have.
	Step(ctx context.Context, s *gomem.Session) error
	// Settle waits for all workers, and takes in all that they have changed.
	Settle(ctx context.Context, s *gomem.Session) error
	// End is called when all have settled and no step follows.
	End(ctx context.Context) error
	// Back undoes what a step has changed in the variables, if Step did not follow it to its
	// end; what optimizers keep beside them stays.
	Back(s *gomem.Session) error
	// Lag is by how many steps a worker may be ahead of another one at the end of a step.
	Lag() int
}

// Receiver is a [Between] that is given factors in place of updates, of every execution of an
// objective that has some: see [nn.Objective].
type Receiver interface {
	// Receive takes the factors of an execution: of each of the objective's, in order, left,
	// right and scale. They are the receiver's.
	Receive(o nn.Objective, given []gomem.Tensor) error
}

// Merger is a [Between] of workers whose replicas may differ after they have settled.
type Merger interface {
	// Merge gives the variables of all workers, which have settled, the mean of all, with the
	// same bits everywhere.
	Merge(ctx context.Context, s *gomem.Session) error
}

// receiver is who takes factors in place of updates; nil: nobody.
func (o Options) receiver() Receiver {
	if o.Parallel == nil {
		return nil
	}
	to, _ := o.Parallel.Between.(Receiver)
	return to
}

// validateFactors demands somebody who takes the factors that objectives give.
func (o Options) validateFactors() error {
	for _, x := range o.Model.Objectives {
		if len(x.Factors) > 0 && o.receiver() == nil {
			return optionf("model", "objective %s gives factors of %s in place of an update, "+
				"which nobody takes: train it with workers that are kept in step between steps",
				x.Name, x.Factors[0].Parameter)
		}
	}
	return nil
}

// validate reports what no worker can be.
func (p *Parallel) validate() error {
	switch {
	case p == nil:
		return nil
	case p.Workers < 1 || p.Rank < 0 || p.Rank >= p.Workers:
		return optionf("workers", "%d is no rank of %d", p.Rank, p.Workers)
	case p.Enter != nil && p.Elastic == nil:
		return optionf("workers", "one comes to others that do not come and go")
	case p.Peers == nil && p.Enter == nil:
		return optionf("workers", "they have no way to agree")
	case p.Elastic != nil && p.Elastic.Least() < 1:
		return optionf("workers", "%d go on at least: want 1 or more", p.Elastic.Least())
	case p.Mesh && (p.Between != nil || p.Elastic != nil):
		return optionf("workers", "the processes of a mesh are in step within steps, and do not "+
			"come and go")
	case p.Journal != nil && (p.Between == nil || p.Elastic != nil):
		return optionf("workers", "a journal is of workers that are in step between steps, and do "+
			"not come and go")
	case p.Between != nil && p.Between.Lag() < 0:
		return optionf("workers", "a lag of %d steps", p.Between.Lag())
	}
	return nil
}

// meshed reports whether workers make each step together.
func (p *Parallel) meshed() bool { return p != nil && p.Mesh }

// workers is how many train the model on batches of their own.
func (o Options) workers() int {
	if o.Parallel == nil || o.Parallel.Mesh {
		return 1
	}
	return o.Parallel.Workers
}

// leads reports whether the run shows evaluations and saves.
func (o Options) leads() bool { return o.Parallel == nil || o.Parallel.Rank == 0 }

// team is what a run knows of its part in several workers'.
type team struct {
	pending []Event   // steps that not all have been heard of yet
	stop    bool      // all have agreed to end
	save    bool      // all have heard that worker 0 wants a checkpoint
	change  bool      // all have agreed to go on as others
	leaving bool      // without this one
	best    bool      // worker 0 has evaluated what it will save
	fault   error     // that this one's data have numbers that are not finite
	begins  beginning // what the workers begin with, while they do
	settled int       // the step after which all have settled; 0 if there is none
	journal narrator  // of what this one has after each step
}

// assemble has all workers begin with the same settings and values.
func (r *run) assemble(ctx context.Context) error {
	if r.Parallel == nil {
		return nil
	}
	wait := context.WithoutCancel(ctx)
	if r.Parallel.Enter != nil {
		in, err := r.Parallel.Enter(ctx)
		if err != nil {
			return err
		}
		r.Parallel, r.summary.Workers = in, in.Workers
	}
	if r.elastic() != nil {
		if err := r.rally(wait); err != nil {
			return r.regroup(ctx, err)
		}
		return nil
	}
	if err := r.Parallel.same(wait, "settings", r.settings(r.vocabulary)); err != nil {
		return err
	}
	if r.Parallel.meshed() {
		if err := r.team.begins.undamaged(wait, r.Parallel, r.course.done, r.session); err != nil {
			return err
		}
	}
	if err := r.holding().equal(wait, r.course.done); err != nil {
		return err
	}
	says, err := r.Parallel.agree(wait, []byte{flag(ctx.Err() != nil)})
	if err != nil {
		return err
	}
	r.team.stop = r.watch.over() ||
		slices.ContainsFunc(says, func(b []byte) bool { return slices.Contains(b, 1) })
	if from := r.team.begins.from; from != nil && r.Parallel.differs() {
		if err := from.ownOf(r.Parallel.Rank, r.session); err != nil {
			return err
		}
	}
	return r.join(wait)
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// settings identify a run with a vocabulary, so that workers of different ones find out.
func (o Options) settings(vocabulary string) []byte {
	text := fmt.Sprintf("%s %s seed %d steps %d epochs %v eval %d save %d\n", o.Name, o.Size,
		o.Seed, o.Steps, o.Epochs, o.EvalEvery, o.SaveEvery)
	if o.Parallel != nil {
		text += "scheme " + o.Parallel.Scheme + "\n"
	}
	for _, k := range slices.Sorted(maps.Keys(o.Config)) {
		text += fmt.Sprintf("%s %s\n", k, o.Config[k])
	}
	return []byte(text + vocabulary)
}

// report tells the others of a step, and enters those that all have been heard of.
func (r *run) report(ctx context.Context, e Event) error {
	e.Step, e.Steps = r.course.done, r.course.total()
	r.team.pending = append(r.team.pending, e)
	n := note{stop: ctx.Err() != nil, save: r.wants(), fault: r.team.fault != nil}.of(e, r.Parallel)
	ctx = context.WithoutCancel(ctx)
	if err := r.Parallel.Peers.Tell(ctx, n.encode()); err != nil {
		return err
	}
	lag := 0
	if r.Parallel.Between != nil {
		lag = r.Parallel.Between.Lag()
	}
	if len(r.team.pending) <= lag {
		return nil
	}
	return r.heard(ctx)
}

// heard enters the oldest step that is pending, of which all workers are to be heard.
func (r *run) heard(ctx context.Context) error {
	e := r.team.pending[0]
	says, err := r.Parallel.Peers.Hear(ctx)
	if err != nil {
		return err
	}
	all, err := decode(says, 1+len(e.Metrics))
	if err != nil {
		return err
	}
	r.team.resolve(all, r.Parallel, r.course.done >= r.course.total())
	r.broken = 0
	for rank, n := range all {
		if err := r.team.diverges(e, r.Parallel, rank, n, r.archive.good); err != nil {
			return err
		}
	}
	together(&e, all)
	if r.Parallel.Mesh { // each has counted the same
		e.Units = all[0].units
	}
	r.summary.Exchanged = e.Exchanged
	r.team.pending = r.team.pending[1:]
	r.enter(e)
	return nil
}

// diverges refuses what shows of one of p's workers that training has diverged since a checkpoint.
func (t *team) diverges(e Event, p *Parallel, rank int, n note, good string) error {
	for k, v := range n.values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if rank == p.Rank && t.fault != nil {
				return t.fault
			}
			what := fmt.Sprintf("%s of worker %d", valueName(e, k), p.number(rank))
			return &ErrNonFinite{Step: e.Step, What: what, Data: n.fault, Value: v,
				Checkpoint: good}
		}
	}
	return nil
}

// together makes a step that of all workers: the means over units, in order of ranks, and
// the sums.
func together(e *Event, all []note) {
	e.Workers, e.Units = len(all), 0
	x, means := all[0].Exchanged, slices.Clone(all[0].values)
	for rank, n := range all {
		e.Units += n.units
		if rank == 0 {
			continue
		}
		x = x.with(n.Exchanged)
		meanWith(means, n.values, n.units, e.Units)
	}
	x.Fastest = min(x.Fastest, e.Steps)
	e.Exchanged, e.Loss = &x, means[0]
	for k, name := range slices.Sorted(maps.Keys(e.Metrics)) {
		e.Metrics[name] = means[k+1]
	}
}

// valueName is what a number of a step is called.
func valueName(e Event, k int) string {
	if k == 0 {
		return "loss"
	}
	return slices.Sorted(maps.Keys(e.Metrics))[k-1]
}

// ending reports whether the run ends before its steps are done.
func (r *run) ending(ctx context.Context) bool {
	if r.Parallel != nil {
		return r.team.stop
	}
	return ctx.Err() != nil || r.watch.over()
}

// leave tells the other workers that this one has ended, and why: err, which is returned.
func (o Options) leave(err error) error {
	if o.Parallel != nil && o.Parallel.Peers != nil {
		o.Parallel.Peers.Leave(err)
	}
	return err
}

// interrupted reports whether a run that ends was to stop.
func (r *run) interrupted(ctx context.Context) bool {
	if r.Parallel == nil {
		return ctx.Err() != nil
	}
	return r.team.stop && !r.summary.StoppedEarly && !r.watch.over() &&
		r.course.done < r.course.total()
}
