package mesh_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestPeers: whether processes exchange over the network or from device to device, everything has
// the same bits on all of them, and as much is sent for sums of two.
func TestPeers(t *testing.T) {
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		m, spec, feeds := randomStep(t)
		targets := []target{{m.Fetches, m.Updates}, {m.Fetches[:1], nil}}
		by, err := over(m.Graph, spec, targets)
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		spec.Peers = true
		peers, err := over(m.Graph, spec, targets)
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		for _, n := range peers.ranks[0].graph.Nodes() {
			if _, ok := n.Peers(); ok {
				seen++
			}
		}
		for i, x := range targets {
			want, err := by.step(x, feeds)
			if err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
			got, err := peers.step(x, feeds)
			if err != nil {
				t.Fatalf("%s: between devices: %v", spec, err)
			}
			for rank := range got {
				for k := range got[rank] {
					if !bytes.Equal(got[rank][k].Data, want[rank][k].Data) {
						t.Fatalf("%s: target %d: fetch %d at rank %d has other bits", spec, i, k,
							rank)
					}
				}
			}
		}
		for _, n := range m.Graph.Variables() {
			want, _ := by.get(n)
			if got, err := peers.get(n); err != nil || !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("%s: variable %s has other bits, %v", spec, n.Name, err)
			}
		}
	})
	if seen == 0 {
		t.Error("nothing goes from device to device")
	}
}
