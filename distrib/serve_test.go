package distrib_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestServersWithoutWorkers: nodes that only serve have the rows, and workers see each other's
// updates of them.
func TestServersWithoutWorkers(t *testing.T) {
	const workers, servers, clocks = 3, 2, 6
	synctest.Test(t, func(t *testing.T) {
		net := memnet.NewNetwork(workers+servers, memnet.Options{})
		var nodes []distrib.Node
		for i := range workers + servers {
			role := "worker"
			if i >= workers {
				role = "server"
			}
			nodes = append(nodes, distrib.Node{ID: distrib.NodeID(i), Roles: []string{role}})
		}
		var engines []*distrib.Engine
		for i := range nodes {
			e, err := distrib.New(distrib.Config{Transport: net.Node(nodes[i].ID), Audited: true,
				Plan: distrib.Plan{Topology: &distrib.Shards{Block: 1}},
				View: distrib.View{Epoch: 1, Self: nodes[i].ID, Nodes: nodes}})
			if err != nil {
				t.Fatal(err)
			}
			if i >= workers {
				if e.Workers() != 0 {
					t.Fatalf("a server has %d workers", e.Workers())
				}
				if err := e.Attach(zeros("w", 5, 2)); err != nil {
					t.Fatal(err)
				}
			}
			engines = append(engines, e)
		}
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("w", 5, 2)
			check(nil, s.Attach(p))
			for c := range clocks {
				check(s.Pull(ctx, distrib.Ref{}))
				// Others may have pushed in this clock already.
				got, least := p.Data[7], float32(workers*c)
				if got < least || got >= least+workers {
					t.Errorf("worker %d in clock %d reads %v, want at least %v", w, c, got, least)
				}
				check(nil, s.Push(ctx, distrib.Ref{}, ones(10)))
				check(s.Tick(ctx))
			}
			check(nil, s.Close())
		})
		for _, e := range engines[:workers] {
			now, _ := e.Memory()
			if now.Rows > 0 {
				t.Errorf("a worker has %d bytes of rows", now.Rows)
			}
		}
		finish(engines, net)
	})
}

func ones(n int) distrib.Dense {
	u := make(distrib.Dense, n)
	for i := range u {
		u[i] = 1
	}
	return u
}
