package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/regular"
)

// Elastic is how the workers of a run come and go. The run goes on in the same processes:
// after every change its workers have one state, that of one of them at the end of a step, or
// what a [Merger] has made of all before, and go on as those would who resume a checkpoint of that
// step.
type Elastic interface {
	// Least is how few workers go on.
	Least() int
	// Numbers are what the present workers are called, by rank.
	Numbers() []int
	// Changed reports whether others are there than the present workers.
	Changed() bool
	// Regroup ends the present group and waits for the next one. why is what broke it, or nil
	// if its workers have agreed to that. A failure that is this worker's own is returned.
	Regroup(ctx context.Context, why error) (*Parallel, error)
	// Return is called after an error of Regroup: where that comes of the others going on without
	// this worker, it takes part in their group again, as one that has just come. Else the error is
	// why.
	Return(ctx context.Context, why error) (*Parallel, error)
	// Formed is called when all of a group have one state.
	Formed()
	// More waits, while fewer than Least are there, until others have come. The error says for
	// whom it has waited.
	More(ctx context.Context) error
}

// elastic is how workers come and go; nil where the run ends with the first of them.
func (o Options) elastic() Elastic {
	if o.Parallel == nil {
		return nil
	}
	return o.Parallel.Elastic
}

// mostBroken is how often a group may break before it has trained a step, so that what
// breaks each of them ends the run.
const mostBroken = 5

// complete does all steps and what comes after them. A run whose workers may come and go
// survives that.
func (r *run) complete(ctx context.Context) error {
	for {
		err := r.loop(ctx)
		if err == nil && !r.team.leaving {
			err = r.finish(ctx)
		}
		if r.team.leaving {
			r.summary.Interrupted, r.summary.Left = true, true
			return nil
		}
		if err == nil || r.elastic() == nil {
			return err
		}
		if err := r.regroup(ctx, err); err != nil {
			return err
		}
	}
}

// resolve decides what comes of a step, maybe the last one, after which some are to stop, or others
// have come. All workers of p decide the same, since they have heard the same.
func (t *team) resolve(all []note, p *Parallel, last bool) {
	var stops int
	changed := false
	for _, n := range all {
		stops += int(flag(n.stop))
		changed = changed || n.changed
	}
	t.save = t.save || all[0].save
	el := p.Elastic
	switch {
	case stops > 0 && (el == nil || all[0].stop || len(all)-stops < el.Least()):
		t.stop = true
	case last:
	case stops > 0:
		t.change, t.leaving = true, all[p.Rank].stop
	case changed:
		t.change = true
	}
}

// change has the workers go on as others, after a step at whose end all have agreed to. It
// reports whether this one goes.
func (r *run) change(ctx context.Context) (leaves bool, err error) {
	if !r.team.change || r.team.stop || r.course.done >= r.course.total() {
		r.team.leaving = false
		return false, nil
	}
	err = r.settle(ctx)
	if err == nil {
		err = r.Parallel.merge(context.WithoutCancel(ctx), r.session)
	}
	if err != nil || r.team.leaving {
		return r.team.leaving, err
	}
	return false, r.regroup(ctx, nil)
}

// merge makes one replica of the workers' own, which has what all have learnt, before others
// come and some go: who comes has that of one of them. Nobody goes before all have it.
func (p *Parallel) merge(ctx context.Context, s *gomem.Session) error {
	m, ok := p.Between.(Merger)
	if !ok {
		return nil
	}
	if err := m.Merge(ctx, s); err != nil {
		return err
	}
	_, err := p.agree(ctx, nil)
	return err
}

// regroup has this worker go on in the next group, and in the ones after that if it breaks
// while it is formed. why is what broke the present one, nil if that was agreed on.
func (r *run) regroup(ctx context.Context, why error) error {
	before, lost, shown := r.elastic().Numbers(), r.course.done, r.course.done-len(r.team.pending)
	for {
		if why != nil {
			r.broken++
		}
		if r.broken > mostBroken {
			return fmt.Errorf("%d groups of workers broke one after the other: %w", r.broken, why)
		}
		r.course.mark()
		if b := r.Parallel.Between; b != nil && r.torn {
			if err := b.Back(r.session); err != nil {
				return err
			}
			r.torn = false
		}
		next, err := r.next(ctx, why)
		if err != nil {
			return err
		}
		r.Parallel, r.team = next, team{}
		if why = r.rally(context.WithoutCancel(ctx)); why == nil {
			break
		}
	}
	r.changed(before, lost, shown)
	if err := r.occupy(); errors.Is(err, regular.ErrHeld) {
		r.warn(r.Save + " is another process' still: the worker's that led before, if that is " +
			"stopped and not gone")
	}
	if err := r.record(); err != nil { // it leads now
		r.warn(err.Error())
	}
	if r.workers() < r.elastic().Least() && r.course.done < r.course.total() {
		if err := r.elastic().More(ctx); err != nil {
			return err
		}
		return r.regroup(ctx, nil)
	}
	return nil
}

// next is this worker's part in the next group. Who was out comes to it with nothing that the
// others would go on from.
func (r *run) next(ctx context.Context, why error) (*Parallel, error) {
	p, err := r.elastic().Regroup(context.WithoutCancel(ctx), why)
	if err == nil || ctx.Err() != nil {
		return p, err
	}
	if p, err = r.elastic().Return(ctx, err); err == nil {
		r.ran, r.away = false, true
		if path, err := find(r.Save); r.Save != "" && err == nil {
			r.archive.good, r.archive.saved = path, 0 // of those who have saved meanwhile
		}
	}
	return p, err
}

// changed shows who goes on, and from where if that is not the last step that was shown.
func (r *run) changed(before []int, done, shown int) {
	r.summary.Workers = r.workers()
	now := r.elastic().Numbers()
	text := Changes(before, now)
	switch {
	case r.course.done < done:
		text += fmt.Sprintf(" from step %d, since nobody has a later one whole: %d to be "+
			"done again", r.course.done, done-r.course.done)
	case r.course.done > shown: // the group broke before this worker had heard of them from all
		text += fmt.Sprintf(" from step %d; %d could not be shown", r.course.done,
			r.course.done-shown)
	}
	r.emit(Event{Kind: View, Text: text, Workers: len(now)})
}

// Changes says who has gone and come, and how many go on: "worker 1 is gone; 3 go on".
func Changes(before, now []int) string {
	without := func(a, b []int) []int {
		return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
	}
	var parts []string
	if gone := without(before, now); len(gone) > 0 {
		parts = append(parts, named(gone)+" gone")
	}
	if come := without(now, before); len(come) > 0 {
		parts = append(parts, named(come)+" here")
	}
	if len(parts) == 0 {
		parts = append(parts, "a connection broke")
	}
	if len(now) == 1 {
		return strings.Join(parts, ", ") + "; 1 goes on"
	}
	return strings.Join(parts, ", ") + fmt.Sprintf("; %d go on", len(now))
}

// named is "worker 1 is" or "workers 1 and 2 are".
func named(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	last := len(words) - 1
	if last == 0 {
		return "worker " + words[0] + " is"
	}
	return "workers " + strings.Join(words[:last], ", ") + " and " + words[last] + " are"
}

// standing is what a worker says of itself when a group is formed.
type standing struct {
	Settings   []byte `json:"settings"`
	Ran        bool   `json:"ran"`   // it has been in a group before
	Back       bool   `json:"back"`  // and was out of the one after that
	Whole      bool   `json:"whole"` // its variables are those of the end of a step
	Step       int    `json:"step"`  // that one
	Executions int    `json:"executions"`
	Rated      int    `json:"rated"` // the step of the last evaluation that it knows of
	Best       *Best  `json:"best"`  // what it knows of evaluations; nil without patience
}

// better reports whether a run goes on from a rather than from b.
func (a standing) better(b standing) bool {
	if a.Ran != b.Ran {
		return a.Ran
	}
	return a.Step > b.Step
}

// rally has all workers of a new group begin with one state: the latest that one of them
// has whole; if nobody has any, that of the last checkpoint, or of the start.
func (r *run) rally(ctx context.Context) error {
	all, err := r.Parallel.stand(ctx, r.standing())
	if err != nil {
		return err
	}
	source := foremost(all)
	if source < 0 {
		if r.leads() {
			if err := r.back(); err != nil {
				return err
			}
		}
		if all, err = r.Parallel.stand(ctx, r.standing()); err != nil {
			return err
		}
		source = 0
	}
	at := all[source]
	others := slices.ContainsFunc(all, func(s standing) bool {
		return !s.Whole || s.Step != at.Step || s.Ran != at.Ran || s.Back
	})
	if others || r.Parallel.Between != nil {
		if err := r.holding().share(ctx, source); err != nil {
			return err
		}
	}
	r.adopt(at, all)
	if err := r.holding().equal(ctx, r.course.done); err != nil {
		return err
	}
	if b := r.Parallel.Between; b != nil {
		if err := b.Begin(ctx, r.session); err != nil {
			return err
		}
	}
	r.ran, r.away = true, false
	r.Parallel.Elastic.Formed()
	return nil
}

// standing is what this worker has.
func (r *run) standing() standing {
	return standing{Settings: fingerprint(r.settings(r.vocabulary)), Ran: r.ran, Back: r.away,
		Whole: !r.torn && r.holding().whole(), Step: r.course.done,
		Executions: r.course.executions(), Rated: r.rated, Best: r.watch.state()}
}

// stand has all workers say what they have, as this one does. They must have been started alike.
func (p *Parallel) stand(ctx context.Context, own standing) ([]standing, error) {
	says, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	told, err := p.agree(ctx, says)
	if err != nil {
		return nil, err
	}
	all, settings := make([]standing, len(told)), make([][]byte, len(told))
	for rank, said := range told {
		if err := json.Unmarshal(said, &all[rank]); err != nil {
			return nil, fmt.Errorf("worker %d is another version: %w",
				p.Elastic.Numbers()[rank], err)
		}
		settings[rank] = all[rank].Settings
	}
	return all, p.alike("settings", settings)
}

// foremost is the rank that a run goes on from, -1 if nobody can be.
func foremost(all []standing) int {
	best := -1
	for rank, s := range all {
		if s.Whole && (best < 0 || s.better(all[best])) {
			best = rank
		}
	}
	for _, s := range all {
		if best >= 0 && s.Ran && !all[best].Ran {
			return -1 // who has just come knows nothing of what those have learnt
		}
	}
	return best
}

// adopt makes the source's place in the run this worker's.
func (r *run) adopt(at standing, all []standing) {
	r.course.done, r.torn, r.team.settled = at.Step, false, 0
	r.course.from, r.rated = origin{at.Step, at.Executions}, 0
	for _, s := range all {
		if s.Rated <= at.Step {
			r.rated = max(r.rated, s.Rated)
		}
		if s.Best != nil && s.Best.Last > r.watch.best.Last && s.Best.Last <= at.Step {
			r.watch.best, r.watch.step = *s.Best, s.Best.Step
		}
	}
	if r.archive.saved > r.course.done {
		r.archive.saved = 0
	}
}

// owes reports whether the run was interrupted, or the group broke, that was to evaluate after
// the present step.
func (r *run) owes() bool {
	done := r.course.done
	return r.rated < done && done < r.course.total() && due(done, r.EvalEvery)
}

// back takes the variables of the last checkpoint, or those that the run began with.
func (r *run) back() error {
	path := r.archive.good
	if path == "" && r.Save != "" {
		path, _ = find(r.Save) // another worker's, who saved before this one
	}
	if path == "" {
		if err := r.session.Initialize(r.Seed); err != nil {
			return err
		}
		r.course.done, r.course.from, r.torn, r.team.settled = 0, origin{}, false, 0
		return r.warm()
	}
	from, err := open(path)
	if err != nil {
		return err
	}
	defer from.close()
	if err := from.matches(r.checkpoint(), r.Model.Graph); err != nil {
		return err
	}
	first := r.summary.ResumedFrom
	if err := r.restore(from); err != nil {
		return err
	}
	r.summary.ResumedFrom, r.torn = first, false
	r.course.goOn(from.Checkpoint)
	return nil
}
