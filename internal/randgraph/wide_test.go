package randgraph_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
)

// TestWide: what is drawn is a graph without mistakes.
func TestWide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := randgraph.WideExchanging(pick, 12)
		if err := m.Graph.Err(); err != nil {
			t.Fatal(err)
		}
		if err := m.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		if err := m.Graph.VerifyUpdates(m.Updates); err != nil {
			t.Fatal(err)
		}
	})
}

// undrawn are the operations that no graph of Wide has, and why.
var undrawn = map[string]string{
	"send-mean": "collectives add up, and the mean of what Send sends is called send",
}

// TestWideDrawsAll: every operation that package ops samples is in some graph, or there is a
// reason that it is in none.
func TestWideDrawsAll(t *testing.T) {
	longtest.Skip(t)
	drawn := map[string]int{}
	for seed := range uint64(longtest.Count(450, 2000)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := randgraph.WideExchanging(rng.IntN, 40)
		for _, n := range m.Graph.Nodes() {
			if !n.Leaf() {
				drawn[n.Op.Name()]++
			}
		}
	}
	var missing []string
	for _, s := range ops.Samples() {
		name := s.Op.Name()
		if drawn[name] == 0 && undrawn[name] == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		if drawn[name] > 0 && undrawn[name] != "" {
			t.Errorf("%s is drawn, although %s", name, undrawn[name])
		}
	}
	if len(missing) > 0 {
		t.Errorf("never drawn: %s", strings.Join(missing, " "))
	}
}
