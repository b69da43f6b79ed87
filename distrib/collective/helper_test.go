package collective

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// world is some nodes of a network in memory, in a bubble of virtual time.
type world struct {
	t      *testing.T
	net    *memnet.Network
	nodes  []*node
	o      Options
	epochs time.Time
}

type node struct {
	*world
	rank  int
	mux   *Mux
	group *Group
	ex    *Exchanger
}

// exchanger makes one for a node.
func (x *node) exchanger(o ExchangerOptions) (*Exchanger, error) {
	var err error
	x.ex, err = NewExchanger(x.group, o)
	return x.ex, err
}

// inWorld runs f in a bubble, with n nodes that have a group of all of them.
func inWorld(t *testing.T, n int, net memnet.Options, o Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: memnet.NewNetwork(n, net), o: o, epochs: time.Now()}
		all := members(n)
		for r := range n {
			mux, err := NewMux(w.net.Node(all[r]), o)
			if err != nil {
				t.Fatal(err)
			}
			group, err := mux.Group(all...)
			if err != nil {
				t.Fatal(err)
			}
			w.nodes = append(w.nodes, &node{w, r, mux, group, nil})
		}
		f(w)
		w.net.Heal()
		w.must(func(x *node) error {
			if x.ex != nil {
				x.ex.Close()
			}
			return x.mux.Close()
		})
	})
}

func members(n int) (all []distrib.NodeID) {
	for r := range n {
		all = append(all, distrib.NodeID(r))
	}
	return all
}

// each runs f on all nodes at once and returns what came of it.
func (w *world) each(f func(x *node) error) []error {
	errs := make([]error, len(w.nodes))
	var all sync.WaitGroup
	for i, x := range w.nodes {
		all.Go(func() { errs[i] = f(x) })
	}
	all.Wait()
	return errs
}

// must is each where nothing may fail.
func (w *world) must(f func(x *node) error) {
	w.t.Helper()
	for i, err := range w.each(f) {
		if err != nil {
			w.t.Errorf("rank %d: %v", i, err)
		}
	}
}

// passed is how long the bubble has been there.
func (w *world) passed() time.Duration { return time.Since(w.epochs) }

// late sleeps up to some milliseconds.
func late(rng *rand.Rand, most int) { time.Sleep(time.Duration(rng.IntN(most*1000)) * 1000) }

// numbers are n values of which a rank's differ from another's.
func numbers[T Number](n, rank int, seed uint64) []T {
	rng := rand.New(rand.NewPCG(seed, uint64(rank)))
	x := make([]T, n)
	for i := range x {
		switch any(x[0]).(type) {
		case float32, float64:
			x[i] = T(rng.NormFloat64() * 100)
		default:
			x[i] = T(rng.IntN(2000) - 1000)
		}
	}
	return x
}

var background = context.Background()

// same fails unless two slices have the same bits.
func same[T Number](got, want []T, what string, args ...any) error {
	g, w := bytesOf(got), bytesOf(want)
	if string(g) != string(w) {
		for i := range got {
			if got[i] != want[i] {
				return fmt.Errorf("%s: element %d of %d is %v, want %v",
					fmt.Sprintf(what, args...), i, len(got), got[i], want[i])
			}
		}
		return fmt.Errorf("%s: zeros have other signs", fmt.Sprintf(what, args...))
	}
	return nil
}
