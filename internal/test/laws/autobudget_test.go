package laws_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/plan/space"
)

// anySession draws a graph and what is run of it: a training step and an evaluation,
// or two training steps that update different variables.
func anySession(t *rapid.T) (*randgraph.Model, []gomem.Target) {
	var m *randgraph.Model
	if rapid.IntRange(0, 3).Draw(t, "synthetic") == 0 {
		m = randgraph.Synthetic(rapid.IntRange(20, longtest.Count(60, 200)).Draw(t, "nodes"))
	} else {
		m = randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			longtest.Count(14, 24))
	}
	first := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	targets := []gomem.Target{first}
	if k := len(m.Updates) / 2; k > 0 && rapid.Bool().Draw(t, "two kinds of steps") {
		targets[0].Updates = m.Updates[:k]
		targets = append(targets, gomem.Target{Name: "other", Fetches: m.Fetches[:1],
			Updates: m.Updates[k:]})
	}
	if rapid.Bool().Draw(t, "evaluation") {
		targets = append(targets, gomem.Evaluation(m.Fetches...))
	}
	return m, targets
}

// TestEveryBudgetRuns: whatever the graph, its targets and the machine, every budget of
// either memory from the least up gives plans, and running them takes exactly the
// bytes that they say, within the budgets; a byte under the least is refused, and the
// refusal says what sets it and what would help.
func TestEveryBudgetRuns(t *testing.T) {
	for round := range longtest.Count(1, 34) {
		longtest.Check(t, round, everyBudgetRuns)
	}
}

func everyBudgetRuns(t *rapid.T) {
	m, targets := anySession(t)
	o := anyAuto(t)
	least, most := room(t, m.Graph, o, targets)
	for range longtest.Count(1, 3) {
		o.DeviceBytes, o.HostBytes = within(t, least, most+most/8), 0
		if rapid.Bool().Draw(t, "host limited") {
			limitHost(t, m.Graph, &o, targets)
		}
		runsExactly(t, m, o, targets)
	}
	if o.HostBytes = 0; rapid.Bool().Draw(t, "least") {
		o.DeviceBytes = least
		runsExactly(t, m, o, targets)
	} else if o.DeviceBytes = least - 1; o.DeviceBytes > 0 {
		refuses(t, m.Graph, o, targets, space.Device, least)
	}
}

// limitHost draws a budget of the host, from the least that works with the device's,
// under which a byte is refused.
func limitHost(t *rapid.T, g *graph.Graph, o *gomem.Options, targets []gomem.Target) {
	host, err := gomem.MinHost(t.Context(), g, *o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	if o.HostBytes = host - 1; host > 1 {
		refuses(t, g, *o, targets, space.Host, host)
	}
	o.HostBytes = within(t, host, 2*host)
}

// refuses demands that budgets are refused. The space that is short, and its need, are
// those given, unless a budget of the other space is what helps.
func refuses(t *rapid.T, g *graph.Graph, o gomem.Options, targets []gomem.Target, of space.ID,
	need int64) {
	_, err := gomem.Plan(t.Context(), g, o, targets...)
	short, ok := errors.AsType[*gomem.ErrOutOfMemory](err)
	switch {
	case !ok:
		t.Fatalf("%s: a byte under %d of %s: %v", o.Planning(), need, of, err)
	case short.Space == of && short.Need != need:
		t.Fatalf("%s: %d bytes of %s are needed, the refusal says %d", o.Planning(), need, of,
			short.Need)
	case short.Op == "" || short.At == "" || len(short.Live) == 0 || short.Remedy.String() == "" ||
		strings.Contains(err.Error(), "\n"):
		t.Fatalf("the refusal reads %q", err)
	}
}

// runsExactly plans and runs all targets on a device that keeps count.
func runsExactly(t *rapid.T, m *randgraph.Model, o gomem.Options, targets []gomem.Target) {
	o.Device = gomem.Null
	s, err := gomem.Compile(t.Context(), m.Graph, o, targets...)
	if err != nil {
		t.Fatalf("%s in %d and %d bytes: %v", o.Planning(), o.DeviceBytes, o.HostBytes, err)
	}
	defer s.Close()
	given := gomem.Feeds{m.Inputs[0]: gomem.NewTensor(m.Inputs[0].Type())}
	if len(m.Inputs) > 1 {
		given = trial.Feeds(m, 0)
	}
	for _, target := range targets {
		if _, err := s.Step(t.Context(), target.Name, given); err != nil {
			t.Fatal(err)
		}
	}
	budgets := map[space.ID]int64{space.Device: o.DeviceBytes, space.Host: o.HostBytes}
	for i, u := range s.Usage() {
		most := int64(0)
		for _, target := range targets {
			most = max(most, s.Plan(target.Name).Spaces[i].Bytes)
		}
		budget := budgets[space.ID(i)]
		if u.Actual != u.Predicted || u.Actual != most || budget > 0 && most > budget {
			t.Fatalf("%s: %s used %d, predicted %d, planned %d of %d", o.Planning(), u.Space,
				u.Actual, u.Predicted, most, budget)
		}
	}
}
