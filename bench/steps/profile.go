package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
)

// profile is where the time of a step goes.
type profile struct {
	step, kernels time.Duration
	groups        []group // the slowest first
}

// group is the launches of an operation on operands of the same types.
type group struct {
	name  string
	calls int
	took  time.Duration
	cost  graph.Cost
}

// top is how many groups a table has.
const top = 10

// profileSteps is how many steps are traced; the fastest, which others disturbed
// least, is the profile.
const profileSteps = 5

func profileOf(ctx context.Context, m *model, threads int) (profile, error) {
	var recorder gomem.TraceRecorder
	o := gomem.Options{Threads: threads, Trace: &recorder}.With(resident)
	t, err := newTrainer(ctx, m, o)
	if err != nil {
		return profile{}, err
	}
	defer t.session.Close()
	planned, err := gomem.Plan(ctx, m.graph, o, m.target()) // as the session's
	if err != nil {
		return profile{}, err
	}
	var best profile
	for i := range warmUp + profileSteps {
		before := len(recorder.Events())
		took, _, err := t.train(ctx)
		if err != nil {
			return profile{}, err
		}
		if i == warmUp || i > warmUp && took < best.step {
			best = newProfile(planned, recorder.Events()[before:], took)
		}
	}
	return best, nil
}

// newProfile adds up the launches of a step.
func newProfile(p *gomem.Planned, events []trace.Event, took time.Duration) profile {
	out := profile{step: took}
	groups := map[string]*group{}
	for _, e := range events {
		step := p.Results[0].Plan.Steps[e.Step]
		if _, ok := step.Do.(plan.Launch); !ok {
			continue
		}
		d, n := e.End-e.Start, p.Graph.Node(step.Node)
		out.kernels += d
		name := describe(n)
		g, ok := groups[name]
		if !ok {
			g = &group{name: name}
			groups[name] = g
		}
		g.calls++
		g.took += d
		cost := n.Cost()
		g.cost.FLOPs += cost.FLOPs
		g.cost.Bytes += cost.Bytes
	}
	for g := range maps.Values(groups) {
		out.groups = append(out.groups, *g)
	}
	slices.SortFunc(out.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.name, b.name))
	})
	return out
}

// describe is an operation with the sizes of its operands and its first result.
func describe(n *graph.Node) string {
	var in []string
	for _, t := range n.InTypes() {
		in = append(in, sizes(t))
	}
	s := n.OpName() + " " + strings.Join(in, ", ")
	if len(n.Out) > 0 {
		s += " → " + sizes(n.Out[0])
	}
	return s
}

func sizes(t graph.Type) string {
	if t.Rank() == 0 {
		return "1"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(t.Sizes()), "[]"), " ", "×")
}

// operator is a row of the peer's profile.
type operator struct {
	Name, Shapes string
	Calls        int
	Seconds      float64
}

// profile asks the peer where its time goes.
func (p *peer) profile() ([]operator, error) {
	var answer struct{ Operators []operator }
	err := p.Ask("profile", &answer)
	return answer.Operators, err
}
