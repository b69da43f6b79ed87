package distrib_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// TestManyNodes keep the laws, too, over links that are shared.
func TestManyNodes(t *testing.T) {
	for name, topology := range map[string]func() distrib.Topology{
		"exponential": func() distrib.Topology { return &distrib.Exponential{} },
		"halton":      func() distrib.Topology { return &distrib.Halton{} },
		"shards":      func() distrib.Topology { return &distrib.Shards{Block: 1} },
	} {
		s := schedule{seed: 1, nodes: longtest.Count(48, 128), perNode: 1, stale: 2, clocks: 3,
			pause: 20 * time.Millisecond,
			net: memnet.Options{Seed: 1, Bps: 1e9, Latency: time.Millisecond,
				Jitter: time.Millisecond}}
		s.plan = func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s.stale}, Topology: topology()}
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { s.full(t, s.run(t)) })
		})
	}
}
