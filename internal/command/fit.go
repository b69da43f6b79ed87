package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/fit"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// fitCmd is gomem fit.
type fitCmd struct {
	modelFlags
	planFlags

	Max    string `group:"model" enum:"batch,depth,experts,length" default:"batch" placeholder:"OF"`
	Device string `group:"machine" placeholder:"NAME"`
	JSON   bool   `name:"json" group:"output"`
}

// Help is the long help.
func (fitCmd) Help() string {
	return `Finds the largest batch, depth, number of experts or length of a model
that trains within the budgets, by planning: no training is needed, and the memory
may be another machine's. The answer is proven: it is planned, verified and run
for a step, in which the peaks must be those that were predicted, and one more is
refused. Ctrl-C ends the search and prints the most that is known to fit.`
}

func (fitCmd) examples() string {
	return `
  gomem fit                                      the largest batch of the small model
  gomem fit --model resnet --max depth --size base --batch 16
  gomem fit --max experts --moe sparse --device-memory 24GiB --size base
  gomem fit --policy vanilla --json              what it would be without gomem
`
}

// quantity is a number of a model that fit looks for.
type quantity struct {
	name  string
	field func(*modelFlags) *count
	// value is what is tried i-th, from 1, in order; models build only some depths.
	value func(i int) int
}

// quantities are all of them. A model has the batch, and those that it has flags of.
func quantities(k kind) []quantity {
	itself := func(i int) int { return i }
	depth := itself
	if slices.Contains(k.flags, "blocks") {
		depth = resNetDepth
	}
	return []quantity{
		{"batch", func(f *modelFlags) *count { return &f.Batch }, itself},
		{"depth", func(f *modelFlags) *count { return &f.Depth }, depth},
		{"experts", func(f *modelFlags) *count { return &f.Experts }, itself},
		{"length", func(f *modelFlags) *count { return &f.Length }, itself},
	}
}

// divided is the quantity in multiples of what the axes of a mesh divide it by.
func (q quantity) divided(s *mesh.Spec) quantity {
	if s == nil {
		return q
	}
	step, value := 1, q.value
	for _, a := range s.Layout {
		if a.Name == q.name {
			step *= s.Mesh.Size(s.Mesh.Axis(a.Axis))
		}
	}
	q.value = func(i int) int { return step * value(i) }
	return q
}

// resNetDepth is the i-th of the depths that models.ResNetBlocks knows, and goes on
// behind the last.
func resNetDepth(i int) int {
	usual := []int{14, 26, 50, 101, 152, 200}
	if i <= len(usual) {
		return usual[i-1]
	}
	return 200 + 3*(i-len(usual))
}

// sought is the quantity to look for.
func (c *fitCmd) sought() (quantity, error) {
	k, err := kindOf(c.Model)
	if err != nil {
		return quantity{}, err
	}
	var names []string
	for _, q := range quantities(k) {
		has := q.name == "batch" || slices.Contains(k.flags, q.name)
		switch {
		case has && q.name == c.Max:
			return q, c.unsaid(q)
		case has:
			names = append(names, q.name)
		}
	}
	return quantity{}, usagef("--max %s does nothing for --model %s: want %s", c.Max, k.name,
		either(names))
}

// unsaid refuses a value of what is looked for.
func (c *fitCmd) unsaid(q quantity) error {
	for _, o := range []option{
		{q.name, *q.field(&c.modelFlags) > 0},
		{"blocks", q.name == "depth" && c.Model == "resnet" && c.Blocks != ""},
		{"network", q.name == "depth" && c.Network != ""},
	} {
		if o.given {
			return usagef("--%s is what --max %s looks for: leave one of them out", o.name, q.name)
		}
	}
	return nil
}

// Run searches.
func (c *fitCmd) Run(ctx context.Context, e *env) error {
	q, err := c.sought()
	if err == nil {
		err = c.trainable()
	}
	if err != nil {
		return err
	}
	if kindName(c.Model) == networks && c.Max == "batch" { // a file has no batch of its own
		c.Batch = 1
	}
	if on := e.onto(c.Device); on != gomem.CPU || c.Device != "" {
		c.Device = on
	}
	c.plans = true
	if err := c.keeping(e, c.Device, false); err != nil {
		return err
	}
	b, o, err := c.begin(e.stderr, c.planFlags, c.Device)
	if err != nil {
		return err
	}
	q = q.divided(o.Mesh)
	// There is no largest without budgets: vanilla has them here, too.
	setDefault(&o.DeviceBytes, b.model.DeviceBytes+o.Beside())
	setDefault(&o.HostBytes, cmp.Or(b.model.HostBytes, machineMemory()))
	if o.DeviceBytes == 0 || o.HostBytes == 0 {
		return usagef("--device-memory and --host-memory are missing: %s says none of its own",
			c.file())
	}
	s := &fitting{ctx: ctx, quantity: q, flags: c.modelFlags, options: o,
		progress: newProgress(e.stderr)}
	answer, err := s.search(s.start(b))
	if err == nil && answer.Most == 0 {
		return s.nothing()
	}
	ran := ""
	if err == nil {
		ran, err = s.prove(c.Device)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	x := s.report(answer)
	x.RanOn, x.Complete = ran, err == nil
	if c.JSON {
		err = cmp.Or(json.NewEncoder(e.stdout).Encode(x), err)
	} else {
		x.print(e.stdout)
	}
	return s.cutShort(x, err)
}

// fitting is a search for the most of a quantity.
type fitting struct {
	ctx      context.Context
	quantity quantity
	flags    modelFlags
	options  gomem.Options
	progress *progress

	scout   planner.Scout
	most    candidate       // that fits; nothing is built before there is one
	refused map[int]refusal // by value
}

// candidate is a model that fits, with its plans.
type candidate struct {
	value int
	*built
	planned
	ranks []rankPeak // of a mesh of several processes
}

// refusal is why a value is refused: a memory is short, or there is no such model; or it is not
// known yet.
type refusal struct {
	shortage *shortage
	limit    error
}

// start is where the search begins: at the value that the model has by default.
func (s *fitting) start(b *built) int {
	var value int
	if _, err := fmt.Sscan(b.numbers[s.quantity.name], &value); err != nil {
		return 1
	}
	return 1 + sort.Search(maxCount, func(i int) bool { return s.quantity.value(i+1) >= value })
}

// search finds the most that fits, and what refuses the next value. How fast plans are does
// not count: under a policy that takes its time to find fast ones none is made. Then what is
// refused is so by what other values say, and if the next value is not refused after all, the
// search goes on from there, and trusts them no longer.
func (s *fitting) search(start int) (fit.Answer, error) {
	if err := s.survey(start, 2*start); err != nil {
		return fit.Answer{}, err
	}
	return s.settle(start)
}

// settle is search from what the scout knows.
func (s *fitting) settle(start int) (fit.Answer, error) {
	a, err := fit.Largest(start, start, maxCount, s.probe)
	for err == nil && a.Next > 0 {
		refused, wrong := s.explain(s.quantity.value(a.Next))
		if refused || wrong != nil {
			return a, wrong
		}
		s.scout = planner.Scout{}
		var on fit.Answer
		on, err = fit.Largest(a.Next, 1, maxCount, s.probe)
		if on.Probes += a.Probes; on.Most < a.Most {
			on.Most, on.Next = a.Most, 0 // cut short before anything larger was known
		}
		a = on
	}
	return a, err
}

// survey has all ways of some values tried, if ways are to be told apart by what they need.
func (s *fitting) survey(list ...int) error {
	if !s.options.Policy.Searches() {
		return nil
	}
	for _, i := range list {
		value := s.quantity.value(i)
		err := s.surveyed(value)
		if _, limit := errors.AsType[*usageError](err); err != nil && !limit {
			return err
		}
	}
	return nil
}

func (s *fitting) surveyed(value int) error {
	defer s.progress.during(s.standing(value))()
	b, err := s.build(value)
	if err != nil {
		return err
	}
	o := s.within(b)
	for o.Rank = 0; err == nil && o.Rank < processes(o); o.Rank++ {
		err = s.scout.Survey(s.ctx, value, b.model.Graph, o.Planning(), b.targets...)
	}
	return b.inFlags(err, o)
}

// probe builds the i-th model, and finds out whether it fits.
func (s *fitting) probe(i int) (fit.Outcome, error) {
	value := s.quantity.value(i)
	defer s.progress.during(s.standing(value))()
	if err := s.ctx.Err(); err != nil {
		return fit.Outcome{}, err
	}
	b, err := s.build(value)
	if err != nil {
		return fit.Outcome{}, s.limited(value, err)
	}
	x, err := s.judge(b, value)
	return x, s.limited(value, err)
}

// within are the options of a model of some value: of a host budget by --host-memory, what the
// process takes depends on the model.
func (s *fitting) within(b *built) gomem.Options {
	o := s.options
	if o.ProcessBytes > 0 {
		o.ProcessBytes = b.beside.total()
	}
	return o
}

// build makes the model of a value.
func (s *fitting) build(value int) (*built, error) {
	f := s.flags
	*s.quantity.field(&f) = count(value)
	return f.build(io.Discard)
}

// limited is an error that is not the refusal of a value of which there is no model.
func (s *fitting) limited(value int, err error) error {
	if _, limit := errors.AsType[*usageError](err); limit {
		s.refuse(value, refusal{limit: err})
		return nil
	}
	return err
}

// judge reports whether a model fits, for all processes that there are. Under a policy that
// searches nothing is planned for that: the plan is for the most of all, in the end.
func (s *fitting) judge(b *built, value int) (fit.Outcome, error) {
	o := s.within(b)
	if o.Policy.Searches() {
		x, err := s.weigh(b, value)
		switch {
		case err != nil:
		case x.Fits:
			s.most = candidate{value: value, built: b}
		default:
			s.refuse(value, refusal{})
		}
		return x, err
	}
	p, err := planAll(s.ctx, io.Discard, b, o)
	var ranks []rankPeak
	if err == nil {
		ranks, err = ofRanks(s.ctx, io.Discard, b, o, p, nil)
	}
	if short, ok := errors.AsType[shortage](err); ok {
		s.refuse(value, refusal{shortage: &short})
		return fit.Outcome{Load: part(short.Need, short.Budget)}, nil
	}
	if err != nil {
		return fit.Outcome{}, err
	}
	s.most = candidate{value, b, p, ranks}
	return fit.Outcome{Fits: true, Load: load(o, p)}, nil
}

// weigh reports whether a model fits by what its neediest process takes at least.
func (s *fitting) weigh(b *built, value int) (fit.Outcome, error) {
	x, o := fit.Outcome{Fits: true}, s.within(b)
	for o.Rank = range processes(o) {
		w, err := s.scout.Weigh(s.ctx, value, b.model.Graph, o.Planning(), b.targets...)
		if err != nil {
			return fit.Outcome{}, b.inFlags(err, o)
		}
		x.Fits, x.Load = x.Fits && w.Fits, max(x.Load, w.Load)
	}
	return x, nil
}

// explain finds out what a value is short of that is taken to be refused, if that is not known
// yet: it takes longer than to refuse it. It reports whether the value is refused.
func (s *fitting) explain(value int) (refused bool, err error) {
	r, known := s.refused[value]
	if known && r != (refusal{}) {
		return true, nil
	}
	defer s.progress.during(fmt.Sprintf("gomem: %s %d: looking for what is short",
		s.quantity.name, value))()
	b, err := s.build(value)
	if err != nil {
		return false, err
	}
	o := s.within(b)
	for o.Rank = range processes(o) {
		err := b.inFlags(planner.Fits(s.ctx, b.model.Graph, o.Planning(), b.targets...), o)
		if short, ok := errors.AsType[shortage](err); ok {
			s.refuse(value, refusal{shortage: &short})
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (s *fitting) refuse(value int, r refusal) {
	if s.refused == nil {
		s.refused = map[int]refusal{}
	}
	s.refused[value] = r
}

// load is the larger part of a budget that plans need.
func load(o gomem.Options, p planned) float64 {
	load := part(p.Peak(space.Device), o.DeviceBytes)
	if o.DiskBytes > 0 {
		return load
	}
	return max(load, part(p.Peak(space.Host), o.Planning().HostBytes))
}

func part(of, whole int64) float64 { return float64(of) / float64(whole) }

// standing says how far the search is, and what is tried now.
func (s *fitting) standing(value int) string {
	known := ""
	if s.most.value > 0 {
		known = fmt.Sprintf("%d fits; ", s.most.value)
	}
	return fmt.Sprintf("gomem: %s: %splanning %d under policy %s", s.quantity.name, known, value,
		cmp.Or(s.options.Policy, planner.Thesis))
}

// nothing is the error where not even the smallest value fits.
func (s *fitting) nothing() error {
	least := 0
	for value, r := range s.refused {
		if r.limit == nil && (least == 0 || value < least) {
			least = value
		}
	}
	if least == 0 {
		return usagef("no %s makes a model: %w", s.quantity.name,
			s.refused[s.quantity.value(1)].limit)
	}
	refused, err := s.explain(least)
	if err == nil && !refused {
		err = fmt.Errorf("%s %d was refused, and fits", s.quantity.name, least)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("no %s fits: with %d, %w", s.quantity.name, least,
		*s.refused[least].shortage)
}

// cutShort is how a search ends that a signal has ended, unless it has gone wrong.
func (s *fitting) cutShort(x fitted, err error) error {
	switch {
	case err == nil || !errors.Is(err, context.Canceled):
		return err
	case x.Max == 0:
		return errInterrupted
	}
	return &stoppedError{fmt.Sprintf("interrupted: %s %d fits, and is not proven to be the largest",
		x.Quantity, x.Max)}
}
