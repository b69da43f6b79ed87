package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/distrib/strads"
)

// drawing says what is drawn.
type drawing struct {
	rows, cols int
	entries    int     // of a column, not 0; 0: all
	correlated float64 // what a dense column has of the one before
	loss       strads.Loss
}

func designs(quick bool) []drawing {
	if quick {
		return []drawing{{rows: 40, cols: 100}, {rows: 100, cols: 200, entries: 5},
			{rows: 100, cols: 200, entries: 5, loss: strads.Logistic}}
	}
	return []drawing{
		{rows: 500, cols: 5000},
		{rows: 500, cols: 5000, correlated: 0.9},
		{rows: 2000, cols: 2000},
		{rows: 20_000, cols: 100_000, entries: 20},
		{rows: 20_000, cols: 10_000, entries: 200},
		{rows: 500, cols: 5000, loss: strads.Logistic},
		{rows: 5000, cols: 20_000, entries: 20, loss: strads.Logistic},
	}
}

func (d drawing) model() string {
	if d.loss == strads.Logistic {
		return "l1-lr"
	}
	return "lasso"
}

func (d drawing) String() string {
	about := "dense"
	switch {
	case d.entries > 0:
		about = fmt.Sprintf("%g %%", 100*float64(d.entries)/float64(d.rows))
	case d.correlated > 0:
		about = fmt.Sprintf("dense, correlated by %g", d.correlated)
	}
	return fmt.Sprintf("%d x %d, %s", d.rows, d.cols, about)
}

// columns are those of a design; start is nil if it is dense.
type columns struct {
	start []int
	row   []int32
	value []float64
}

// problem draws one, without a penalty: of all features 50 matter, evenly spaced, and noise is as
// much as a fourth of what they say.
func (d drawing) problem() (*strads.Problem, *columns, error) {
	rng := rand.New(rand.NewPCG(1, uint64(d.rows)))
	c := &columns{}
	var x *strads.Design
	var err error
	if d.entries == 0 {
		c.value = d.dense(rng)
		x, err = strads.Dense(d.rows, d.cols, c.value)
	} else {
		d.sparse(rng, c)
		x, err = strads.Sparse(d.rows, c.start, c.row, c.value)
	}
	return &strads.Problem{X: x, Y: d.labels(rng, c), Loss: d.loss}, c, err
}

func (d drawing) dense(rng *rand.Rand) []float64 {
	x := make([]float64, d.rows*d.cols)
	for i := range x {
		x[i] = rng.NormFloat64()
		if i >= d.rows {
			x[i] = d.correlated*x[i-d.rows] + math.Sqrt(1-d.correlated*d.correlated)*x[i]
		}
	}
	return x
}

func (d drawing) sparse(rng *rand.Rand, c *columns) {
	c.start = []int{0}
	for range d.cols {
		taken := map[int32]bool{}
		for len(taken) < d.entries {
			taken[int32(rng.IntN(d.rows))] = true
		}
		from := len(c.row)
		for i := range taken {
			c.row = append(c.row, i)
		}
		slices.Sort(c.row[from:])
		for range taken {
			c.value = append(c.value, rng.NormFloat64())
		}
		c.start = append(c.start, len(c.row))
	}
}

// labels are numbers, or whether they are more than 0.
func (d drawing) labels(rng *rand.Rand, c *columns) []float64 {
	y := make([]float64, d.rows)
	for k := range 50 {
		b := 1 + rng.Float64()
		if k%2 == 1 {
			b = -b
		}
		d.column(c, k*d.cols/50, func(i int, v float64) { y[i] += b * v })
	}
	square := 0.0
	for _, v := range y {
		square += v * v
	}
	noise := math.Sqrt(square/float64(d.rows)) / 4
	for i := range y {
		y[i] += noise * rng.NormFloat64()
		if d.loss == strads.Logistic {
			y[i] = map[bool]float64{true: 1}[y[i] > 0]
		}
	}
	return y
}

// column calls f for what a column has.
func (d drawing) column(c *columns, j int, f func(i int, v float64)) {
	if c.start == nil {
		for i, v := range c.value[j*d.rows:][:d.rows] {
			f(i, v)
		}
		return
	}
	for k := c.start[j]; k < c.start[j+1]; k++ {
		f(int(c.row[k]), c.value[k])
	}
}

// largest is the least penalty at which all coefficients are 0.
func (d drawing) largest(c *columns, y []float64) (most float64) {
	for j := range d.cols {
		sum := 0.0
		d.column(c, j, func(i int, v float64) { sum += v * d.loss.Slope(y[i], 0) })
		most = max(most, math.Abs(sum))
	}
	return most
}
