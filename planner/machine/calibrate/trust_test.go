package calibrate

import (
	"testing"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/planner/machine"
)

// at is a machine with one operation, and a clock of this test's.
func at(t *testing.T) (*Machine, *graph.Node) {
	t.Helper()
	g := graph.New()
	x := g.Input("x", tensor.Of(tensor.F32, 8))
	n := ops.Add(x, x).Node
	o := Options{Cache: t.TempDir()}
	if err := o.ensureDefaults(); err != nil {
		t.Fatal(err)
	}
	m := &Machine{options: o, target: processor(1), cache: newCache(o)}
	m.known = record{Samples: map[string]sample{}, Basics: trust{Rounds: rounds, Noise: 1},
		Profile: machine.Profile{Name: "local", ElementBytes: 4, In: 1e9, Out: 1e9, DiskRead: 1e9,
			DiskWrite: 1e9, Device: machine.Rates{FLOPs: 1e9, Bytes: 1e9},
			Host: machine.Rates{FLOPs: 1e9, Bytes: 1e9}}}
	return m, n
}

// took notes rounds of an operation, in microseconds.
func (m *Machine) took(n *graph.Node, micros ...int) sample {
	tr := &trial{want: want{signature: signature(n), node: n}}
	for _, us := range micros {
		tr.times = append(tr.times, time.Duration(us)*time.Microsecond)
	}
	m.note([]*trial{tr})
	return m.known.Samples[signature(n)]
}

// TestBusyMachine: what was measured while the machine had something else to do is measured
// again, and the better is kept; a quiet machine is measured once.
func TestBusyMachine(t *testing.T) {
	m, n := at(t)
	again := func() bool { return len(m.missing([]*graph.Node{n})) > 0 }
	if !again() {
		t.Error("what nobody has measured is known")
	}
	if s := m.took(n, 40, 900, 800, 700, 600); s.Nanos != 40e3 || !again() {
		t.Errorf("busy in most rounds: %+v, measured again: %v", s, again())
	}
	if s := m.took(n, 500, 500, 500, 500, 500); s.Nanos != 40e3 {
		t.Errorf("busy in all rounds, later: %+v", s)
	}
	m, n = at(t)
	if s := m.took(n, 900); s.Nanos != 900e3 || !again() {
		t.Errorf("one round: %+v, measured again: %v", s, again())
	}
	if s := m.took(n, 31, 30, 32, 30, 400); s.Nanos != 30e3 || again() {
		t.Errorf("quiet at last: %+v, measured again: %v", s, again())
	}
	m, n = at(t)
	for k := range 10 {
		if m.took(n, 10, 99, 99, 99, 99); !again() {
			if k != 3 {
				t.Errorf("a machine that is always busy is measured %d times", k+1)
			}
			return
		}
	}
	t.Error("a machine that is always busy is measured without end")
}

// TestDoubt: what a run disagrees with is measured again, and what was measured then counts,
// though it is slower; the rates of the machine, too. It is kept until then.
func TestDoubt(t *testing.T) {
	m, n := at(t)
	nodes := []*graph.Node{n}
	m.took(n, 30, 30, 30)
	ms := time.Millisecond
	for _, c := range []struct{ predicted, took time.Duration }{{10 * ms, 20 * ms},
		{20 * ms, 10 * ms}, {0, ms}, {ms, 0}, {ms / 10, ms}, {ms, ms / 10}} {
		if doubts, err := m.Doubt(nodes, c.predicted, c.took); doubts || err != nil {
			t.Errorf("%v predicted, %v taken: %v, %v", c.predicted, c.took, doubts, err)
		}
	}
	if len(m.missing(nodes)) > 0 || !m.known.Basics.settled() {
		t.Error("it is measured again without a reason")
	}
	if doubts, err := m.Doubt(nodes, 1800*time.Microsecond, 41700*time.Microsecond); !doubts ||
		err != nil {
		t.Error(doubts, err)
	}
	kept, ok := m.cache.load()
	if !ok || kept.Basics.settled() || len(kept.Samples) > 0 || len(m.missing(nodes)) == 0 {
		t.Errorf("the next start knows nothing of it: %+v", kept)
	}
	if s := m.took(n, 70, 70, 70); s.Nanos != 70e3 || !s.settled() {
		t.Errorf("measured again: %+v", s)
	}
}

// TestBetterRates: rates that were measured on a busy machine are replaced by better ones, and
// doubted ones by any.
func TestBetterRates(t *testing.T) {
	m, _ := at(t)
	busy, quiet := m.known, m.known
	busy.Basics = trust{Rounds: 5, Noise: 3}
	quiet.Profile.Device.FLOPs, quiet.Profile.In = 9e9, 1e8
	got := busy.with(quiet)
	if got.Profile.Device.FLOPs != 9e9 || got.Profile.In != 1e9 || !got.Basics.settled() {
		t.Errorf("%+v", got)
	}
	busy.Basics.Doubted, busy.Profile.Device.FLOPs = true, 99e9
	if got = busy.with(quiet); got.Profile.Device.FLOPs != 9e9 || !got.Basics.settled() {
		t.Errorf("doubted: %+v", got)
	}
	if !got.sound() {
		t.Error("what is kept is not sound")
	}
}
