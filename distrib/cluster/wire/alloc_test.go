package wire_test

import (
	"runtime"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
)

// TestAllocations: what a message costs in memory is its body, once, and next to nothing
// for its chunks: no buffer is made for one, on either side.
func TestAllocations(t *testing.T) {
	c := listen(t, 2, wire.Options{})
	a, _ := open(t, c.ports[0], c.view(1, 0))
	_, hb := open(t, c.ports[1], c.view(1, 1))
	const size = 32 << 20
	body := make([]byte, size)
	send := func() {
		a.Send(1, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{body}})
		hb.message(t)
	}
	send()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const runs = 4
	for range runs {
		send()
	}
	runtime.ReadMemStats(&after)
	chunks := float64(runs * size >> 20)
	bytes := float64(after.TotalAlloc-before.TotalAlloc)/chunks - 1<<20
	objects := float64(after.Mallocs-before.Mallocs) / chunks
	t.Logf("a chunk of 1 MiB: %.0f objects, %.0f bytes besides the body", objects, bytes)
	// gRPC's pools forget: what a collection finds unused, and with the race detector a
	// quarter of everything.
	if bytes > 3<<20/4 || objects > 150 {
		t.Errorf("a chunk of 1 MiB costs %.0f objects and %.0f bytes", objects, bytes)
	}
}
