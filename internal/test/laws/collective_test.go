package laws_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/test/trial"
)

// TestCollectivesNeedANetwork: where others are missing without whom a step has no sense, a
// session says so; where there are none, it does not, nor where nothing computes.
func TestCollectivesNeedANetwork(t *testing.T) {
	open := func(along string, parts int, o gomem.Options) error {
		g := graph.New()
		y := ops.Tanh(ops.AllReduce(g.Input("x", graph.Of(graph.F32, 2)), "sum", along, parts))
		s, err := gomem.Compile(t.Context(), g, o,
			gomem.Target{Name: "t", Fetches: []graph.Value{y}})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	for along, want := range map[string]string{
		"": `"sum" is exchanged by 3 workers along all workers: there is no Options.Network`,
		"a": `"sum" is exchanged by 3 workers along the axis a of their mesh: there is no ` +
			`Options.Network that joins them`,
	} {
		err := open(along, 3, gomem.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, err := range []error{open("", 1, gomem.Options{}), open("", 3,
		gomem.Options{Device: gomem.Null}), open("", 3, gomem.Options{Network: &trial.Echo{}})} {
		if err != nil {
			t.Error(err)
		}
	}
}

// agreeing is a network whose workers agree, or not.
type agreeing struct {
	trial.Echo
	asked []string
	err   error
}

func (a *agreeing) Agree(_ context.Context, targets []gomem.Exchanges) error {
	for _, t := range targets {
		for _, x := range t.List {
			a.asked = append(a.asked, fmt.Sprint(t.Target, " ", x.Name, " ", x.Type, " ", x.How,
				" ", x.Parts, " ", x.Root, " ", len(x.Data)))
		}
	}
	return a.err
}

// TestAgreesFirst: before the first step that exchanges anything, and only then, the network
// hears of all exchanges of all targets; if the workers do not agree, nothing is sent.
func TestAgreesFirst(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 4, 3))
	v := g.Variable("v", graph.Of(graph.F32, 2), graph.Init{})
	own := ops.Tanh(x)
	block := ops.ReduceScatter(own, "block", "a", 2)
	copied := ops.Broadcast(block, "copied", "", 3, 2)
	all := ops.AllGather(ops.Less(x, own), "all", "b", 5)
	sum := ops.Await(ops.Send(v, "v", graph.How{Via: "ring"}))
	n := &agreeing{err: errors.New("they differ")}
	s, err := gomem.Compile(t.Context(), g, gomem.Options{Network: n},
		gomem.Target{Name: "one", Fetches: []graph.Value{own}},
		gomem.Target{Name: "two", Fetches: []graph.Value{copied, sum}},
		gomem.Target{Name: "three", Fetches: []graph.Value{all}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feeds := gomem.Feeds{x: gomem.NewTensor(x.Type())}
	step := func(target string) error {
		_, err := s.Step(t.Context(), target, feeds)
		return err
	}
	if err := step("one"); err != nil || n.asked != nil {
		t.Errorf("%v: %q", err, n.asked)
	}
	if err := step("two"); !errors.Is(err, n.err) || n.Flying() > 0 {
		t.Errorf("%v, with %d sent", err, n.Flying())
	}
	n.err, n.asked = nil, nil
	for _, target := range []string{"two", "three", "two"} {
		if err := step(target); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"two block f32[4 3] scatter@a 2 0 0", "two copied f32[2 3] copy 3 2 0",
		"two v f32[2] mean/ring 0 0 0", "three all bool[20 3] gather@b 5 0 0"}
	if strings.Join(n.asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked about %q, want %q", n.asked, want)
	}
}
