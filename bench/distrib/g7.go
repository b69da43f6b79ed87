package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// The broadcast of G7: servers have a model between them, in equal parts, and workers want
// all of it.
const (
	castBytes = 40 << 20
	castBps   = 1e9
	castBlock = 64 << 10
)

// broadcast prints how long trees take, as the fluid model and as the network has it.
func broadcast(t *testing.T, w io.Writer, quick bool) error {
	fmt.Fprintf(w, "A model of %d MiB at servers, to workers over links of 1 Gbit/s, in blocks of "+
		"%d KiB that are handed on as they come. Times are in units of what a link needs for the "+
		"model, %.3f s.\n\n", castBytes>>20, castBlock>>10, 8*castBytes/castBps)
	heading(w, "workers, servers", "broadcast", "depth", "fluid model", "simulated",
		"faster than pull")
	sizes := [][2]int{{16, 4}, {40, 10}, {64, 8}}
	if quick {
		sizes = [][2]int{{4, 2}}
	}
	for _, c := range sizes {
		var pull float64
		for _, k := range []struct {
			name string
			s    distrib.Trees
		}{
			{"pull", distrib.Trees{Degree: c[0], Depth: 1}},
			{"one shared tree", distrib.Trees{Shared: true}},
			{"a tree a server", distrib.Trees{}},
		} {
			trees, err := castTrees(k.s, c[0], c[1])
			if err != nil {
				return err
			}
			took := cast(t, trees, c[0], c[1]).Seconds() / (8 * castBytes / castBps)
			if pull == 0 {
				pull = took
			}
			row(w, fmt.Sprintf("%d, %d", c[0], c[1]), k.name,
				fmt.Sprint(trees[distrib.NodeID(c[0])].Depth()),
				fmt.Sprintf("%.2f", distrib.BroadcastTime(trees)), fmt.Sprintf("%.2f", took),
				fmt.Sprintf("%.2fx", pull/took))
		}
	}
	return nil
}

func castTrees(s distrib.Trees, workers, servers int) (map[distrib.NodeID]*distrib.Tree, error) {
	var all []distrib.NodeID
	for i := range workers + servers {
		all = append(all, distrib.NodeID(i))
	}
	return s.Build(all[workers:], all[:workers])
}

// relay is a worker of a broadcast, or a server: it hands blocks on.
type relay struct {
	n     *memnet.Node
	trees map[distrib.NodeID]*distrib.Tree
	want  int // blocks that are missing
	mu    sync.Mutex
	all   *sync.WaitGroup
}

// Receive hands a block on to the children in its server's tree.
func (r *relay) Receive(_ distrib.NodeID, m *distrib.Msg) {
	root := distrib.NodeID(binary.LittleEndian.Uint32(m.Head))
	for _, to := range r.trees[root].Children(nil, r.n.Self()) {
		r.n.Send(to, &distrib.Msg{Class: distrib.Updates, Head: m.Head, Body: m.Body})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.want--; r.want == 0 {
		r.all.Done()
	}
}

// Down does nothing: nodes leave at the end.
func (r *relay) Down(distrib.NodeID, error) {}

// cast is how long it takes until every worker has every block.
func cast(t *testing.T, trees map[distrib.NodeID]*distrib.Tree, workers, servers int) (
	took time.Duration) {
	synctest.Test(t, func(*testing.T) {
		net := memnet.NewNetwork(workers+servers, memnet.Options{Bps: castBps,
			Latency: 50 * time.Microsecond, Window: 1 << 30})
		blocks := castBytes / castBlock / servers
		var all sync.WaitGroup
		all.Add(workers)
		for i := range workers + servers {
			r := &relay{n: net.Node(distrib.NodeID(i)), trees: trees, all: &all,
				want: blocks * servers}
			r.n.Serve(r)
		}
		start := time.Now()
		body := [][]byte{make([]byte, castBlock)}
		for s := workers; s < workers+servers; s++ {
			head := binary.LittleEndian.AppendUint32(nil, uint32(s))
			id := distrib.NodeID(s)
			for range blocks {
				for _, to := range trees[id].Children(nil, id) {
					net.Node(id).Send(to, &distrib.Msg{Class: distrib.Updates, Head: head,
						Body: body})
				}
			}
		}
		all.Wait()
		took = time.Since(start)
		for i := range workers + servers {
			net.Node(distrib.NodeID(i)).Close()
		}
	})
	return took
}
