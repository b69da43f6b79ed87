package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/turns"
	"github.com/gomem/gomem/planner"
)

// trainer is gomem with a model, everything resident.
type trainer struct {
	*model
	session *gomem.Session
	steps   int
}

var resident = planner.Options{Policy: planner.Vanilla}

func newTrainer(ctx context.Context, m *model, o gomem.Options) (*trainer, error) {
	s, err := gomem.Compile(ctx, m.graph, o, m.target())
	if err != nil {
		return nil, err
	}
	return &trainer{model: m, session: s}, nil
}

// train runs the next step.
func (t *trainer) train(ctx context.Context) (time.Duration, float64, error) {
	t.steps++
	in := t.feeds(t.steps)
	start := time.Now()
	out, err := t.session.Step(ctx, "train", in)
	if err != nil {
		return 0, 0, err
	}
	return time.Since(start), float64(out[0].F32()[0]), nil
}

// initial are the parameters, the inputs and the constants, for the peer.
func (t *trainer) initial() (*tensors, error) {
	out := &tensors{}
	for _, v := range t.session.Variables() {
		if v.Node.State {
			continue
		}
		x, err := t.session.Get(v)
		if err != nil {
			return nil, err
		}
		out.add(v.Node.Name, x)
	}
	feeds := t.feeds(1)
	for _, v := range t.tokens {
		out.add(v.Node.Name, feeds[v])
	}
	for _, v := range t.constants {
		out.add(v.Node.Name, v.Node.Data)
	}
	return out, nil
}

// Before anything is timed, both sides run warmUp steps, until the peer has all
// the memory that it will ask for. In the first few of them the losses may be so
// far apart, relative to the loss: at the first step, and then.
const (
	warmUp      = 6
	compared    = 3
	firstAgrees = 1e-4
	laterAgree  = 1e-3
)

// agreement is how far apart the losses are, at the first step and the last that
// was compared.
type agreement struct{ first, last float64 }

// warm runs all sides' first steps, which must compute the same.
func warm(ctx context.Context, t *trainer, peers []*peer) (agreement, error) {
	var a agreement
	for i := range warmUp {
		_, mine, err := t.train(ctx)
		if err != nil {
			return a, err
		}
		for _, p := range peers {
			theirs, err := p.train()
			if err != nil {
				return a, err
			}
			if err := a.see(i, mine, theirs.Loss); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

// see compares the losses of a step, counted from 0.
func (a *agreement) see(i int, mine, theirs float64) error {
	apart, allowed := math.Abs(mine-theirs)/math.Abs(theirs), laterAgree
	switch {
	case i == 0:
		a.first, allowed = max(a.first, apart), firstAgrees
	case i < compared-1:
	case i == compared-1:
		a.last = max(a.last, apart)
	default:
		return nil
	}
	if !(apart <= allowed) {
		return fmt.Errorf("loss of step %d is %v, PyTorch's is %v", i+1, mine, theirs)
	}
	return nil
}

// step is the peer's answer to the command of that name.
type step struct{ Seconds, Loss float64 }

// train runs the peer's next step.
func (p *peer) train() (s step, err error) {
	err = p.Ask("step", &s)
	return s, err
}

// sides are those to compare: gomem, and then the peers.
func sides(ctx context.Context, t *trainer, peers []*peer) []turns.Side {
	list := []turns.Side{func() (time.Duration, error) {
		d, _, err := t.train(ctx)
		return d, err
	}}
	for _, p := range peers {
		list = append(list, func() (time.Duration, error) {
			s, err := p.train()
			return time.Duration(s.Seconds * 1e9), err
		})
	}
	return list
}
