package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/workers"
)

// soon is what a goroutine comes to.
type soon[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// begin has a goroutine do something.
func begin[T any](do func() (T, error)) *soon[T] {
	s := &soon[T]{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.value, s.err = do()
	}()
	return s
}

// wait waits for it.
func (s *soon[T]) wait() (T, error) {
	<-s.done
	return s.value, s.err
}

// orderly is an output of several goroutines.
type orderly struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes what no other goroutine's does come between.
func (o *orderly) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// draft is a model with its plan, and what there is to show of it.
type draft struct {
	*built
	options, session gomem.Options
	planned          planned
	header           header
	exchanges        *graph.Graph // whose exchanges a worker takes part in; nil: it is alone
}

// drafted builds the model and plans it. It is called beside the reading of data, which it
// waits for where it has to measure this machine.
func (c *trainCmd) drafted(ctx context.Context, e *env, read <-chan struct{}) (*draft, error) {
	b, o, err := c.begin(e.stderr, c.planFlags, c.Device)
	if err != nil {
		return nil, err
	}
	d := &draft{built: b}
	defer c.planningWithin(o)()
	if c.worker.member != nil {
		if d.exchanges, err = b.exchanging(o); err == nil {
			o.NetworkBytes, err = c.worker.member.Bytes(d.exchanges)
			o.Gathers = c.worker.member.Gathers()
		}
		if err != nil {
			return nil, err
		}
	}
	if err := roomFor(o); err != nil {
		return nil, err
	}
	if d.session, err = c.session(o); err != nil {
		return nil, err
	}
	resident, err := b.resident(ctx, d.session)
	if err != nil {
		return nil, err
	}
	if d.planned = resident; resident.Planned == nil {
		if d.session, err = b.measured(ctx, e.stderr, d.session, func() { <-read }); err != nil {
			return nil, err
		}
	}
	o.Machine = d.session.Machine
	d.options = o
	if resident.Planned == nil {
		if d.planned, err = c.planLong(ctx, e, b, o); err != nil {
			return nil, err
		}
	}
	if err := enoughMemory(c.Device, d.planned, account{}, c.fleet.size()); err != nil {
		return nil, err
	}
	d.header, err = c.headed(ctx, e, d, resident)
	return d, err
}

// headed is what there is to show of a plan. What it is compared with, vanilla's plan, and
// what its budget costs are other plans, which a worker that shows nothing does not make.
func (c *trainCmd) headed(ctx context.Context, e *env, d *draft, vanilla planned) (header, error) {
	mesh := c.Mesh
	if m := c.worker.member; c.exchanging > 0 || m == nil || m.Network() == nil {
		mesh = "" // they do not exchange what the processes of one do
	}
	on, gpus := c.fleet.on(c.Device)
	h := header{Device: on, GPU: gpus,
		Workers: c.worker.about(mesh, d.options.NetworkBytes), Factored: factoredOf(d.model)}
	if !c.worker.leads() {
		return h, nil
	}
	var err error
	if vanilla.Planned == nil || d.options.Mesh != nil { // of the whole
		if vanilla, err = comparison(ctx, e.stderr, d.built, d.options, d.planned); err != nil {
			return h, err
		}
	}
	h.report = newReport(d.model, d.options, d.planned, vanilla)
	bounds := d.planned.bounds(d.built)
	if c.worker.member != nil { // others wait for the first step
		h.cost = weighed(d.built, d.options, d.planned, vanilla, bounds)
		h.least = func(ctx context.Context) (int64, error) {
			return leastOf(ctx, d.planned, d.options)
		}
		return h, nil
	}
	h.cost, err = costOf(ctx, d.built, d.options, d.planned, vanilla, bounds)
	return h, err
}

// keepTo keeps what the process has beside the plans within an account, which is shown, and refuses
// what this machine or a budget of host memory cannot hold. Where workers exchange, or devices
// share the process, what it takes depends on others: there is no account then.
func (c *trainCmd) keepTo(e *env, h *header, p *gomem.Planned) (undo func(), err error) {
	a := measured(e.log, p)
	if !c.accountable() {
		return func() {}, nil
	}
	if c.HostBytes > 0 {
		if a, err = a.withinBudget(int64(c.HostBytes), p); err != nil {
			return nil, err
		}
	}
	if have := machineMemory(); have > 0 {
		a = a.leaner(have - ofMachine(c.Device, p))
	}
	if err := enoughMemory(c.Device, planned{p}, a, 1); err != nil {
		return nil, err
	}
	h.Beside = &a
	return a.keep(), nil
}

// accountable reports whether all of the process is this run's alone.
func (c *trainCmd) accountable() bool {
	return c.worker.member == nil && c.fleet.size() == 1 && gomem.Computes(c.Device)
}

// planningWithin is planningWithin of one device. Several plan at once, each within a budget of its
// own, and Go has one limit for all of them: then there is none.
func (c *trainCmd) planningWithin(o gomem.Options) (undo func()) {
	if c.fleet.size() > 1 {
		return func() {}
	}
	return planningWithin(o)
}

// refit plans again where the process has more than was expected beside the plan, now that data are
// read, and the two are more than a budget of host memory: with the usual garbage, and where that
// leaves no room for a plan, with little.
func (c *trainCmd) refit(ctx context.Context, e *env, m *draft) error {
	if m.options.ProcessBytes == 0 || !c.accountable() {
		return nil
	}
	a := measured(e.log, m.planned.Planned)
	if _, err := a.withinBudget(m.options.HostBytes, m.planned.Planned); err == nil {
		return nil
	}
	defer c.planningWithin(m.options)()
	refused := c.planBeside(ctx, e, m, a)
	if _, short := errors.AsType[shortage](refused); !short {
		return refused
	}
	a.Garbage = leastGarbage
	if err := c.planBeside(ctx, e, m, a); err != nil {
		return refused
	}
	return nil
}

// planBeside plans a draft again beside an account of its process.
func (c *trainCmd) planBeside(ctx context.Context, e *env, m *draft, a account) (err error) {
	m.beside, m.options.ProcessBytes, m.planned = a, a.total(), planned{}
	if m.planned, err = c.planLong(ctx, e, m.built, m.options); err != nil {
		return err
	}
	m.header, err = c.headed(ctx, e, m, planned{})
	return err
}

// ready reads what says how large the model is, and drafts the model. Both are done at once:
// most data make it as large as its flags do. Where they do not, it is drafted again.
func (c *trainCmd) ready(ctx context.Context, e *env) (*draft, error) {
	k, err := kindOf(c.Model)
	if err != nil {
		return nil, err
	}
	c.packed = packs(c.spec())
	if err := c.keeping(e, c.Device, c.InterpretChains); err != nil {
		return nil, err
	}
	guessing, cancel := context.WithCancel(ctx)
	defer cancel()
	read, likely, flags := make(chan struct{}), *c, c.modelFlags
	guess := begin(func() (*draft, error) { return likely.drafted(guessing, e, read) })
	if k.read != nil {
		err = c.obtain(ctx, e.stderr, k)
	}
	close(read)
	if err != nil || c.modelFlags != flags {
		cancel()
	}
	d, failed := guess.wait()
	switch {
	case err != nil:
		return nil, err
	case c.modelFlags != flags:
		return c.drafted(ctx, e, read)
	}
	return d, failed
}

// obtain reads data, or has it from the first worker where this program has started all of
// them on one machine: the first reads for all.
func (c *trainCmd) obtain(ctx context.Context, w io.Writer, k kind) error {
	if !c.worker.shares() || k.words == nil {
		return k.read(ctx, w, c)
	}
	request := c.request()
	if c.worker.leads() {
		read, err := c.reading.wait()
		if err != nil {
			return err
		}
		c.given, c.Vocabulary = read.given, read.Vocabulary
		says, err := c.given.pack(request)
		if err == nil {
			_, err = c.worker.member.Share(ctx, says)
		}
		return err
	}
	said, err := c.worker.member.Share(ctx, nil)
	if err == nil && len(said) == 0 { // it is too much
		return k.read(ctx, w, c)
	}
	if err == nil {
		err = c.given.unpack(said, request)
	}
	if err != nil {
		return err
	}
	most, err := k.words(c.modelFlags)
	if err != nil {
		return err
	}
	return sizeByWords(c, c.given.tokenizer, most)
}

// request says what is to be read, and by what program.
func (c *trainCmd) request() string {
	return fmt.Sprintf("%s: %s for %s %s, vocabulary %d, tokenizer %q, begins with %q, share %v",
		thisVersion(), c.spec(), c.Model, c.Size, c.Vocabulary, c.Tokenizer,
		c.Init, c.EvalShare)
}

// pack is what was read for a request, to hand to other processes; nothing if it is more
// than can be.
func (g given) pack(request string) ([]byte, error) {
	p := data.Prepared{For: request, Corpus: g.corpus, Running: g.text, Tokenizer: g.tokenizer}
	says, err := p.MarshalBinary()
	if len(says) > workers.MaxShare {
		return nil, err
	}
	return says, err
}

// unpack takes what another process has read for a request, which has to be this one's.
func (g *given) unpack(said []byte, request string) error {
	var p data.Prepared
	if err := p.UnmarshalBinary(said); err != nil {
		return err
	}
	if p.For != request {
		return fmt.Errorf("worker 0 has read %q, this one wants %q: start all workers with the "+
			"same flags and version", p.For, request)
	}
	*g = given{corpus: p.Corpus, text: p.Running, tokenizer: p.Tokenizer}
	return nil
}
