package distrib_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// shelf keeps shards as bytes, by clock.
type shelf struct {
	mu sync.Mutex
	of map[distrib.Clock][][]byte
}

func (s *shelf) save(shard *distrib.Shard) error {
	var b bytes.Buffer
	if _, err := shard.WriteTo(&b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[shard.Clock] = append(s.of[shard.Clock], b.Bytes())
	return nil
}

func (s *shelf) shards(t *testing.T, k distrib.Clock) []*distrib.Shard {
	var out []*distrib.Shard
	for _, b := range s.of[k] {
		shard, err := distrib.ReadShard(bytes.NewReader(b), longRows{})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, shard)
	}
	return out
}

// TestCheckpointsAreExact: rows that are saved at clock k hold what is stamped less than
// k and nothing else, though workers are ahead; and training goes on from them.
func TestCheckpointsAreExact(t *testing.T) {
	for seed := range uint64(longtest.Count(40, 3000)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		stale := rng.IntN(4)
		name := []string{"servers", "lazy", "sums", "tree", "paced", "bosen"}[rng.IntN(6)]
		s := schedule{seed: seed, nodes: 1 + rng.IntN(4), perNode: 1 + rng.IntN(2), stale: stale,
			clocks: 4 + rng.IntN(6), pushOnce: rng.IntN(2) == 0,
			pause: time.Duration(1+rng.IntN(100)) * time.Millisecond,
			net: memnet.Options{Seed: seed,
				Jitter: time.Duration(rng.IntN(60)) * time.Millisecond}}
		s.plan = plansOf(stale, s.nodes)[name]
		s.foreign = name == "sums" || name == "tree"
		every := distrib.Clock(1 + rng.IntN(3))
		kept := &shelf{of: map[distrib.Clock][][]byte{}}
		s.change = func(c *distrib.Config) {
			c.Saves = func(k distrib.Clock) bool { return k%every == 0 }
			c.Save, c.Message = kept.save, 64
		}
		synctest.Test(t, func(t *testing.T) {
			s.full(t, s.run(t))
			s.checkSaved(t, kept, every)
		})
		if t.Failed() {
			t.Fatalf("seed %d: %s, s=%d, %d x %d", seed, name, stale, s.nodes, s.perNode)
		}
	}
}

// TestResidualsOfErasMerge: what a filter keeps back through many saves takes no more than what it
// keeps without, so that nothing is sent for want of room.
func TestResidualsOfErasMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: 1}, Up: distrib.DVF{Low: 1e9},
				Topology: &distrib.Shards{Block: 1}}
		}
		engines, _ := cluster(t, 3, memnet.Options{}, plan, func(c *distrib.Config) {
			c.Saves = func(distrib.Clock) bool { return true }
			c.Save = func(*distrib.Shard) error { return nil }
		})
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			check(nil, s.Attach(zeros("w", 6, 3)))
			for range 30 {
				check(s.Pull(ctx, distrib.Ref{}))
				u := make(distrib.Dense, 18)
				for i := range u {
					u[i] = float32(i) - 8.5
				}
				check(nil, s.Push(ctx, distrib.Ref{}, u))
				check(s.Tick(ctx))
				now, _ := engines[w].Memory()
				if most := int64(2 * 4 * 18); now.Outbox > most {
					t.Errorf("worker %d keeps %d bytes back, more than %d", w, now.Outbox, most)
				}
			}
			check(nil, s.Close())
		})
		for w, e := range engines {
			if a := e.Audit(); a.Squeezed > 0 {
				t.Errorf("worker %d sent %d updates for want of room", w, a.Squeezed)
			}
		}
	})
}

func (s *schedule) checkSaved(t *testing.T, kept *shelf, every distrib.Clock) {
	for k := every; k < distrib.Clock(s.clocks); k += every {
		p := tableOf(s.kind, "counts", s.workers(), s.clocks)
		at, err := distrib.Restore([]*distrib.Param{p}, kept.shards(t, k))
		if err != nil || at != k {
			t.Errorf("clock %d of %d: %v", at, k, err)
			continue
		}
		for i, v := range valuesOf(p) {
			want := float32(0)
			if distrib.Clock(i%s.clocks) < k {
				want = 1
			}
			if v != want {
				t.Errorf("clock %d: worker %d's clock %d is %v", k, i/s.clocks, i%s.clocks, v)
			}
		}
	}
}

// TestResume: a run that goes on from a checkpoint ends like one that was not interrupted,
// with what the rule keeps, to the bit.
func TestResume(t *testing.T) {
	for name, rule := range map[string]func() distrib.Rule{
		"momentum":    func() distrib.Rule { return &distrib.Momentum{Mu: 0.5} },
		"adam":        func() distrib.Rule { return &distrib.Adam{LR: 0.1} },
		"adarevision": func() distrib.Rule { return &distrib.AdaRevision{Alpha: 0.1} },
	} {
		kept := &shelf{of: map[distrib.Clock][][]byte{}}
		want := resumed(t, rule, kept, 0, nil)
		if got := resumed(t, rule, kept, 5, kept.shards(t, 5)); !slices.Equal(got, want) {
			t.Errorf("%s: resumed: %v, want %v", name, got, want)
		}
	}
}

// resumed is the end of ten clocks of three workers, from a clock and its shards on. What they have
// at clock 5 is kept.
func resumed(t *testing.T, rule func() distrib.Rule, kept *shelf, from distrib.Clock,
	shards []*distrib.Shard) (end []float32) {
	plan := func() distrib.Plan {
		return distrib.Plan{Topology: &distrib.Shards{Block: 1}, Rule: rule()}
	}
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 3, memnet.Options{Jitter: 9 * time.Millisecond}, plan,
			func(c *distrib.Config) {
				c.Start, c.Restored, c.Ordered = from, shards, true
				c.Saves = func(k distrib.Clock) bool { return from == 0 && k == 5 }
				c.Save = kept.save
			})
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("w", 4, 3)
			if shards != nil {
				check(distrib.Restore([]*distrib.Param{p}, shards))
			}
			check(nil, s.Attach(p))
			for c := from; c < 10; c++ {
				check(s.Pull(ctx, distrib.Ref{}))
				rng := rand.New(rand.NewPCG(uint64(c), uint64(w)))
				u := make(distrib.Dense, 12)
				for i := range u {
					u[i] = float32(rng.NormFloat64()) - p.Data[i]/8
				}
				check(nil, s.Push(ctx, distrib.Ref{}, u))
				check(s.Tick(ctx))
			}
			check(s.Pull(ctx, distrib.Ref{}))
			if w == 1 {
				end = p.Data
			}
			check(nil, s.Close())
		})
		finish(engines, net)
	})
	return end
}

// TestUnsavable: replicas have no clock of which there would be a checkpoint.
func TestUnsavable(t *testing.T) {
	for _, topology := range []distrib.Topology{&distrib.All{}, &distrib.Exponential{},
		&distrib.RandomMulticast{Q: 1}, &distrib.Local{}} {
		engine, err := distrib.New(distrib.Config{View: distrib.View{Nodes: []distrib.Node{{}}},
			Transport: memnet.New(1, memnet.Options{})[0],
			Plan:      distrib.Plan{Topology: topology},
			Saves:     func(distrib.Clock) bool { return true },
			Save:      func(*distrib.Shard) error { return nil }})
		if err == nil {
			err = engine.Worker(0).Attach(zeros("w", 2, 2))
		}
		if err == nil || !strings.Contains(err.Error(), "nobody owns rows") {
			t.Errorf("%T: %v", topology, err)
		}
	}
}

// TestUnsaved: where a shard cannot be saved, the log says so, and work goes on.
func TestUnsaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		engines, net := cluster(t, 1, memnet.Options{}, bsp, func(c *distrib.Config) {
			c.Saves = func(k distrib.Clock) bool { return k == 1 }
			c.Save = func(*distrib.Shard) error { return errors.New("disk full") }
			c.Log = func(s string) { lines = append(lines, s) }
		})
		s := engines[0].Worker(0)
		must(t)(nil, s.Attach(zeros("w", 2, 2)))
		for range 3 {
			must(t)(s.Tick(context.Background()))
		}
		synctest.Wait()
		must(t)(nil, s.Close())
		finish(engines, net)
		if a := engines[0].Audit(); a.Unsaved != 1 || a.Saved != 0 || len(lines) != 1 ||
			lines[0] != "node 0 could not save its rows at clock 1: disk full" {
			t.Errorf("%+v and %q", a, lines)
		}
	})
}

// TestShardBytes: what is written is read, and nothing else is.
func TestShardBytes(t *testing.T) {
	s := &distrib.Shard{Epoch: 3, Node: 2, Clock: 70, Rows: []distrib.SavedRows{
		{Param: "a", Cols: 2, Row: 1, N: 2, Data: []float32{1, 2, 3, 4},
			State: [][]float32{{5}, {}}},
		{Param: "b/c", Cols: 1, Row: 0, N: 1, Data: []float32{7}},
	}}
	ints := distrib.Ints{N: 4, Idx: []uint32{2}, Val: []int32{-1 << 31}}
	floats := distrib.Sparse{N: 9, Idx: []uint32{2, 8}, Val: []float32{-0.1, 1e-40}}
	kinds := &distrib.Shard{Clock: 3, Rows: append(s.Rows,
		distrib.SavedRows{Param: "i", Cols: 4, Row: 3, N: 1, Kind: "int32",
			Cells: []distrib.Update{ints}},
		distrib.SavedRows{Param: "f", Cols: 9, N: 2, Kind: "sparse",
			Cells: []distrib.Update{floats, distrib.AsDense(floats)}},
		distrib.SavedRows{Param: "own", Cols: 2, N: 1, Kind: "int64",
			Cells: []distrib.Update{longs{1 << 62, -5}}})}
	for _, s := range []*distrib.Shard{s, kinds} {
		shardBytes(t, s)
	}
	var own bytes.Buffer
	must(t)(kinds.WriteTo(&own))
	if _, err := distrib.ReadShard(&own); err == nil || !strings.Contains(err.Error(), `"int64"`) {
		t.Errorf("rows of a kind that is not known: %v", err)
	}
}

func shardBytes(t *testing.T, s *distrib.Shard) {
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	got, err := distrib.ReadShard(bytes.NewReader(good), longRows{})
	same := cmpopts.IgnoreUnexported(distrib.Ints{})
	if err != nil || cmp.Diff(got, s, same) != "" {
		t.Fatalf("%v\n%s", err, cmp.Diff(got, s, same))
	}
	var bad *distrib.FrameError
	for i := range good {
		_, err := distrib.ReadShard(bytes.NewReader(good[:i]), longRows{})
		if !errors.As(err, &bad) {
			t.Fatalf("the first %d bytes: %v", i, err)
		}
		flipped := slices.Clone(good)
		flipped[i] ^= 0x10
		_, err = distrib.ReadShard(bytes.NewReader(flipped), longRows{})
		if !errors.As(err, &bad) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

// TestRestoreRefuses: shards that are not a whole checkpoint of the parameters.
func TestRestoreRefuses(t *testing.T) {
	rows := func(row, n int32) distrib.SavedRows {
		return distrib.SavedRows{Param: "w", Cols: 2, Row: row, N: n, Data: make([]float32, 2*n)}
	}
	shard := func(k distrib.Clock, rows ...distrib.SavedRows) *distrib.Shard {
		return &distrib.Shard{Clock: k, Rows: rows}
	}
	other := rows(0, 3)
	other.Param = "v"
	wide := rows(0, 3)
	wide.Cols = 3
	counts := rows(0, 3)
	counts.Data, counts.Kind = nil, "int32"
	counts.Cells = slices.Repeat([]distrib.Update{distrib.Ints{N: 2}}, 3)
	for name, shards := range map[string][]*distrib.Shard{
		"none":    {},
		"clocks":  {shard(1, rows(0, 1)), shard(2, rows(1, 2))},
		"missing": {shard(1, rows(0, 2))},
		"twice":   {shard(1, rows(0, 2)), shard(1, rows(1, 2))},
		"outside": {shard(1, rows(1, 3))},
		"far":     {shard(1, rows(math.MaxInt32, 1), rows(0, 3))},
		"other":   {shard(1, rows(0, 3), other)},
		"wide":    {shard(1, wide)},
		"kind":    {shard(1, counts)},
	} {
		if _, err := distrib.Restore([]*distrib.Param{zeros("w", 3, 2)}, shards); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}

// TestInterval is Young's formula.
func TestInterval(t *testing.T) {
	got := distrib.Interval(2*time.Second, 100*time.Hour, 4)
	if want := 10 * time.Minute; got != want { // sqrt(2 * 2 s * 360000 s / 4)
		t.Errorf("%v, want %v", got, want)
	}
}
