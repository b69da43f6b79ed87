package placement_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/placement"
)

// TestPlaces: inputs are always on the host; variables and their updates are
// together, on the host if asked for (thesis, section 6.3.3).
func TestPlaces(t *testing.T) {
	m := randgraph.Synthetic(100)
	for _, host := range []bool{false, true} {
		p := pass.New(m.Graph, m.Fetches, m.Updates)
		if err := placement.Pass(host).Run(p); err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Graph.Nodes() {
			want := pass.Device
			switch {
			case n.Kind == graph.KindInput:
				want = pass.Host
			case n.Kind != graph.KindCompute && host:
				want = pass.Host
			}
			if p.Place[n.ID] != want {
				t.Errorf("host=%v: %s %s is in %s", host, n.Kind, n.Name, p.Place[n.ID])
			}
		}
	}
}
