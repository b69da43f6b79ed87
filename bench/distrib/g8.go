package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// views notes what workers read of each row at each version: an owner's sums come in order,
// and those of different owners do not.
type views struct {
	mu      sync.Mutex
	hash    map[view]uint64
	compare int // reads of a version that another worker had read
	differ  int
}

type view struct {
	row     int
	version distrib.Version
}

func (v *views) note(at view, x []float32) {
	h := fnv.New64a()
	var b [4]byte
	for _, f := range x {
		u := math.Float32bits(f)
		b[0], b[1], b[2], b[3] = byte(u), byte(u>>8), byte(u>>16), byte(u>>24)
		h.Write(b[:])
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	was, ok := v.hash[at]
	if !ok {
		v.hash[at] = h.Sum64()
		return
	}
	v.compare++
	if was != h.Sum64() {
		v.differ++
	}
}

// equalViews prints whether workers of Parameter Flow at equal versions have equal bits.
func equalViews(t *testing.T, w io.Writer, quick bool) error {
	clocks := 1000
	if quick {
		clocks = 20
	}
	fmt.Fprintf(w, "Random updates of 64 x 16 elements, %d clocks, computing of random length and "+
		"up to 5 ms of random latency: rows at a version that another worker read, too.\n\n",
		clocks)
	heading(w, "workers", "staleness", "filter", "rows and versions", "compared",
		"bits differ")
	for _, n := range []int{2, 5} {
		for _, s := range []int{0, 3} {
			for _, delta := range []float32{0, .5} {
				v := &views{hash: map[view]uint64{}}
				place := world{n, memnet.Options{Bps: 50e6, Jitter: 5 * time.Millisecond, Seed: 4}}
				_, err := place.run(t, flow(s, delta, 0, 0), noisy(clocks, v))
				if err != nil {
					return err
				}
				row(w, fmt.Sprint(n), fmt.Sprint(s), fmt.Sprintf("DVF %g", delta),
					fmt.Sprint(len(v.hash)), fmt.Sprint(v.compare), fmt.Sprint(v.differ))
				if v.differ > 0 {
					t.Errorf("%d workers, s = %d: %d views differ", n, s, v.differ)
				}
			}
		}
	}
	return nil
}

// noisy pushes random updates after random times.
func noisy(clocks int, v *views) job {
	return func(ctx context.Context, sync distrib.Synchronizer, w workload.Worker) error {
		p := &distrib.Param{Name: "w", Rows: 64, Cols: 16, Data: make([]float32, 64*16)}
		if err := sync.Attach(p); err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(uint64(w.Rank), 5))
		for range clocks {
			for i := range p.Rows {
				version, err := sync.Pull(ctx, distrib.Ref{Row: int32(i), N: 1})
				if err != nil {
					return err
				}
				v.note(view{i, version}, p.Data[i*p.Cols:(i+1)*p.Cols])
			}
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
			u := make(distrib.Dense, len(p.Data))
			for i := range u {
				u[i] = float32(rng.NormFloat64())
			}
			if err := sync.Push(ctx, distrib.Ref{}, u); err != nil {
				return err
			}
			if _, err := sync.Tick(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
