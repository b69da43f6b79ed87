package train

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
)

// ledger is a worker of a group that is played: a run without a session, and, in the place of
// variables, the batches that they have learnt from.
type ledger struct {
	*run
	learnt []int
}

// numbered are batches of which there are so many in a pass.
type numbered struct {
	data.Batches
	each int
}

func (n numbered) StepsPerEpoch() int { return n.each }

// played is a job whose workers come and go at random.
type played struct {
	rng   *rand.Rand
	model *nn.Model
	o     Options
	exact bool
	all   []*ledger
	last  int       // batches of the step that was made last
	gone  []*ledger // those without whom others went on

	saved  map[string]string // the metadata of the last checkpoint; nil: there is none
	learnt []int             // and what it has
}

// newPlayed draws a job.
func newPlayed(seed uint64) *played {
	p := &played{rng: rand.New(rand.NewPCG(seed, 1))}
	p.exact = p.rng.IntN(4) > 0
	m := nn.NewModel()
	m.Objectives = []nn.Objective{{Name: "train", Times: 1 + p.rng.IntN(3)}}
	p.model = m
	passes := float64(1+p.rng.IntN(8)) / 2
	p.o = Options{Model: m, Loader: numbered{each: 1 + p.rng.IntN(40)}, Epochs: passes,
		Session: gomem.Options{Device: "null"}}
	for range 1 + p.rng.IntN(5) {
		p.all = append(p.all, p.fresh())
	}
	p.form()
	return p
}

// fresh is a process that has just been started.
func (p *played) fresh() *ledger {
	r := newRun(p.o)
	r.course.perStep, r.course.exact = p.model.Executions(), p.exact
	return &ledger{run: r}
}

// form has the workers that are there begin with one state, as rally does.
func (p *played) form() {
	for rank, l := range p.all {
		if l.Parallel != nil {
			l.course.mark()
		}
		l.Parallel = &Parallel{Rank: rank, Workers: len(p.all)}
	}
	at := foremost(p.standings())
	if at < 0 {
		p.back(p.all[0])
		at = 0
	}
	all := p.standings()
	learnt := slices.Clone(p.all[at].learnt)
	for _, l := range p.all {
		l.adopt(all[at], all)
		l.learnt, l.ran, l.away = slices.Clone(learnt), true, false
	}
}

func (p *played) standings() (all []standing) {
	for _, l := range p.all {
		all = append(all, l.standing())
	}
	return all
}

// back is what a worker does when nobody has a whole state.
func (p *played) back(l *ledger) {
	l.course.done, l.course.from, l.torn, l.learnt = 0, origin{}, false, nil
	if p.saved == nil {
		return
	}
	c, err := parse(p.saved)
	if err != nil {
		panic(err)
	}
	l.course.done, l.learnt = c.Step, slices.Clone(p.learnt)
	l.course.goOn(c)
}

// step has all workers learn from their batches; of a step that is broken those do who are not
// late, and who is torn has done a part of it.
func (p *played) step(broken bool) {
	var batches []int
	p.last = len(p.all) * p.all[0].course.perStep
	for _, l := range p.all {
		for i := range l.course.perStep {
			if n, ok := l.course.dealing().batch(i); ok {
				batches = append(batches, n)
			}
		}
	}
	for _, l := range p.all {
		if broken && p.rng.IntN(2) == 0 {
			l.torn = p.rng.IntN(3) == 0
			continue
		}
		l.learnt = append(l.learnt, batches...)
		l.course.done++
	}
}

// change has workers go and come, after a step or in the middle of one.
func (p *played) change() {
	if p.rng.IntN(2) == 0 {
		p.step(true)
	}
	p.all = slices.DeleteFunc(p.all, func(l *ledger) bool {
		gone := p.rng.IntN(4) == 0
		if gone {
			p.gone = append(p.gone, l)
		}
		return gone
	})
	if p.rng.IntN(12) == 0 { // all end, and as many as there may be go on from a checkpoint
		p.all, p.gone = nil, nil
	}
	if n := len(p.gone); n > 0 && p.rng.IntN(2) == 0 { // one of them comes back
		l := p.gone[n-1]
		l.course.mark()
		l.Parallel, l.ran, l.away = nil, false, true
		p.gone = p.gone[:n-1]
		p.all = slices.Insert(p.all, p.rng.IntN(len(p.all)+1), l)
	}
	for range p.rng.IntN(3) {
		p.all = slices.Insert(p.all, p.rng.IntN(len(p.all)+1), p.fresh())
	}
	if len(p.all) == 0 {
		p.all = append(p.all, p.fresh())
	}
	if !slices.ContainsFunc(p.all, func(l *ledger) bool { return l.ran || l.away }) {
		p.back(p.all[0])
		p.all[0].ran = true
	}
	p.form()
}

// keep saves what the first worker has.
func (p *played) keep() {
	var err error
	if p.saved, err = p.all[0].checkpoint().metadata(); err != nil {
		panic(err)
	}
	p.learnt = slices.Clone(p.all[0].learnt)
}

// TestDealt: however workers are lost and come, in the middle of steps too, and whatever is
// begun again from a checkpoint by another number of them, what the state of a run has learnt
// from in the end is every batch of all passes once; or, where a batch cannot count for nothing,
// those of less than a step more.
func TestDealt(t *testing.T) {
	changes, tails := 0, 0
	for seed := range longtest.Count(10_000, 1_000_000) {
		p := newPlayed(uint64(seed))
		for p.all[0].course.done < p.all[0].course.total() {
			switch p.rng.IntN(8) {
			case 0:
				p.change()
				changes++
			case 1:
				p.keep()
			default:
				p.step(false)
			}
		}
		first := p.all[0]
		got, want := slices.Sorted(slices.Values(first.learnt)), first.batches()
		if more := len(got) - want; p.exact && more != 0 || more < 0 || more >= p.last {
			t.Fatalf("seed %d: %d batches, want %d", seed, len(got), want)
		}
		for i, n := range got {
			if n != i {
				t.Fatalf("seed %d: batch %d is lost or was had twice: %v", seed, min(i, n), got)
			}
		}
		if p.exact && first.course.dealing().position(first.course.done) != want {
			t.Fatalf("seed %d: the next batch is %d", seed, first.course.executions())
		}
		if p.exact && len(got)%p.last != 0 {
			tails++
		}
	}
	if changes < 10_000 || tails < 1000 {
		t.Errorf("%d changes, %d uneven ends", changes, tails)
	}
}
