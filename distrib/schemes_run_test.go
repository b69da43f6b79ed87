package distrib_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// lawful is a scheme as the laws see it.
type lawful struct {
	name    string
	o       distrib.SchemeOptions
	stale   int  // -1: no bound
	foreign bool // workers see no writes of their own before others do
	late    bool // filters keep something back
}

// lawfulSchemes are those that need no group.
func lawfulSchemes() []lawful {
	one, ten := 1, 10
	return []lawful{
		{"bsp", distrib.SchemeOptions{}, 0, false, false},
		{"bsp", distrib.SchemeOptions{Filter: "fp16"}, 0, false, false}, // ones are exact
		{"ssp", distrib.SchemeOptions{Staleness: &one}, 1, false, false},
		{"ssp", distrib.SchemeOptions{Staleness: &one, Filter: "topk:0.1"}, 1, false, true},
		{"async", distrib.SchemeOptions{}, -1, false, false},
		{"bosen", distrib.SchemeOptions{}, 2, false, false},
		{"bosen", distrib.SchemeOptions{Bandwidth: 1e5, Order: "relmag"}, 2, false, false},
		{"bosen", distrib.SchemeOptions{Bandwidth: 1e5, Order: "round-robin"}, 2, false,
			false},
		{"pf", distrib.SchemeOptions{Staleness: &one}, 1, true, false},
		{"pf", distrib.SchemeOptions{Filter: "dvf:4,bf16"}, 4, true, true},
		{"svb", distrib.SchemeOptions{}, 0, false, false},
		{"svb", distrib.SchemeOptions{Staleness: &one}, 1, false, false},
		{"orpheus", distrib.SchemeOptions{Seed: 1}, 4, false, true},
		{"exponential", distrib.SchemeOptions{}, 8, false, false},
		{"halton", distrib.SchemeOptions{Staleness: &ten}, 10, false, false},
	}
}

// TestSchemesKeepTheLaws plays random schedules by every scheme, with the policies that
// they are made of: what must be seen is seen, and nothing is lost or seen twice.
func TestSchemesKeepTheLaws(t *testing.T) {
	for seed := range uint64(longtest.Count(3, 60)) {
		for i, c := range lawfulSchemes() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s := schedule{seed: seed, nodes: 1 + rng.IntN(9), perNode: 1 + rng.IntN(2),
				clocks: 2 + rng.IntN(6), stale: c.stale, foreign: c.foreign, late: c.late,
				pause:    time.Duration(1+rng.IntN(100)) * time.Millisecond,
				pushOnce: rng.IntN(2) == 0,
				net: memnet.Options{Seed: seed,
					Latency: time.Duration(rng.IntN(30)) * time.Millisecond,
					Jitter:  time.Duration(rng.IntN(30)) * time.Millisecond}}
			s.plan = func() distrib.Plan {
				p, err := distrib.ParseScheme(c.name, c.o)
				if err != nil {
					t.Fatal(err)
				}
				if shards, ok := p.Topology.(*distrib.Shards); ok {
					shards.Block = 64
				}
				return *p
			}
			s.change = func(c *distrib.Config) { c.Message = 64 }
			title := fmt.Sprintf("%d %s %+v %dx%d", seed, c.name, c.o, s.nodes, s.perNode)
			t.Run(title, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if end := s.run(t); c.stale >= 0 && !c.late {
						s.full(t, end)
					}
				})
			})
		}
	}
}
