package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// element is one of the matrix: its row, its column, counted from 0, and its value.
type element [3]float32

// draw draws the elements to learn from, and those that are held out, in any order.
func draw() (train, held []element) {
	rng := rand.New(rand.NewPCG(seed, 3))
	factors := func(n int) []float64 {
		x := make([]float64, n*trueRank)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return x
	}
	w, h := factors(rows), factors(cols)
	seen := map[[2]int]bool{}
	for len(seen) < elements {
		at := [2]int{skewed(rng, rows), skewed(rng, cols)}
		if seen[at] {
			continue
		}
		seen[at] = true
		v := 0.0
		for k := range trueRank {
			v += w[at[0]*trueRank+k] * h[at[1]*trueRank+k]
		}
		v = mean + 0.7*v/math.Sqrt(trueRank) + noise*rng.NormFloat64()
		e := element{float32(at[0]), float32(at[1]), float32(v)}
		if len(seen)%10 == 0 {
			held = append(held, e)
		} else {
			train = append(train, e)
		}
	}
	return train, held
}

// skewed is a number below n, small ones more often than large ones.
func skewed(rng *rand.Rand, n int) int {
	u := rng.Float64()
	return int(u * math.Sqrt(u) * float64(n))
}

// strata are the runs of gomem.
func strata(ctx context.Context, rank, threads int, train, held []element) (all []run, err error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", rows, cols,
		len(train))
	for _, e := range train {
		fmt.Fprintln(&text, int(e[0])+1, int(e[1])+1, e[2])
	}
	data, err := workload.ReadMatrixMarket(&text)
	if err != nil {
		return nil, err
	}
	for _, rate := range []float64{0.03, 0.05} {
		for _, n := range passes {
			m := &workload.Strata{Data: data, Rank: rank, Seed: seed, Epochs: n, Rate: rate,
				Decay: 0.7, Lambda: lambda}
			begun := time.Now()
			w, h, err := learn(ctx, m, threads)
			r := run{rate, n, time.Since(begun).Seconds(), 0}
			if err != nil {
				return nil, err
			}
			r.RMSE = rmse(w, h, rank, held)
			all = append(all, r)
		}
	}
	return all, nil
}

// learn is what workers in this process learn, W and H.
func learn(ctx context.Context, m *workload.Strata, workers int) (w, h []float32, err error) {
	w, h = make([]float32, rows*m.Rank), make([]float32, cols*m.Rank)
	keep := func(_ int, last bool, have func() ([]distrib.SavedRows, error)) error {
		if !last {
			return nil
		}
		list, err := have()
		for _, r := range list {
			copy(map[string][]float32{"mf/l": w, "mf/r": h}[r.Param][int(r.Row)*m.Rank:], r.Data)
		}
		return err
	}
	errs := collective.Together(memnet.New(workers, memnet.Options{}), collective.Options{},
		func(g *collective.Group) error {
			return m.Run(ctx, nil, workload.Worker{Rank: g.Rank(), Of: workers, Group: g,
				Keep: keep})
		})
	return w, h, errors.Join(errs...)
}

// rmse is the root of the mean squared error of elements.
func rmse(w, h []float32, rank int, held []element) float64 {
	sum := 0.0
	for _, e := range held {
		d := -float64(e[2])
		for k := range rank {
			d += float64(w[int(e[0])*rank+k]) * float64(h[int(e[1])*rank+k])
		}
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(held)))
}
