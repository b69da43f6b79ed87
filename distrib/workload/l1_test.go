package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/strads"
)

// l1Tasks are small ones, of both kinds.
func l1Tasks() map[string]*L1 {
	train, test := Regression(1, 80, 30, 150, 5, 0.3)
	lasso := &L1{Train: train, Test: test, Stop: strads.Stop{Epochs: 500, Gap: 1e-10}}
	train, test = Clicks(1, 600, 200, 300, 6, 3)
	lr := &L1{Train: train, Test: test, Stop: lasso.Stop}
	lasso.Lambda, lr.Lambda = lasso.Largest()/10, lr.Largest()/50
	return map[string]*L1{"lasso": lasso, "l1-lr": lr}
}

// runL1 has n workers run a task, and returns what they have learnt and the first was told.
func runL1(t *testing.T, n int, m *L1, w Worker) (x State, told []Progress, err error) {
	t.Helper()
	var mu sync.Mutex
	for _, p := range m.Params() {
		x.Rows = append(x.Rows, p.Data)
	}
	w.Total = func(p Progress) { told = append(told, p) }
	w.Keep = func(_ int, last bool, own func() ([]distrib.SavedRows, error)) error {
		mu.Lock()
		defer mu.Unlock()
		all, err := own()
		for _, r := range all {
			if !last {
				continue
			}
			to := x.Rows[0]
			if r.Cols > 1 {
				to = x.Rows[1]
			}
			copy(to[int(r.Row)*r.Cols:], r.Data)
		}
		return err
	}
	errs := grouped(n, func(own Worker) error {
		own.Total, own.Keep, own.Between, own.From = w.Total, w.Keep, w.Between, w.From
		return m.Run(t.Context(), nil, own)
	})
	return x, told, errors.Join(errs...)
}

// TestL1: any number of workers comes to the same coefficients, which are few and foretell what is
// held out, and saves each of them once; who goes on from there has nothing left to do.
func TestL1(t *testing.T) {
	for name, m := range l1Tasks() {
		var first State
		for _, n := range []int{1, 2, 3} {
			x, told, err := runL1(t, n, m, Worker{})
			if err != nil {
				t.Fatal(err)
			}
			last := told[len(told)-1]
			if n == 1 {
				first = x
			}
			for j, v := range x.Rows[0] {
				if math.Abs(float64(v-first.Rows[0][j])) > 1e-4 {
					t.Errorf("%s: coefficient %d of %d workers is %g, of one %g", name, j, n, v,
						first.Rows[0][j])
				}
			}
			count := 0
			for _, v := range x.Rows[0] {
				if v != 0 {
					count++
				}
			}
			p := last.Sparse
			if p == nil || p.Nonzero != count || count < 3 || count > 70 || !p.Done ||
				last.TestLoss > 0.9*told[0].TestLoss || last.TestCount != m.Test.Len() {
				t.Errorf("%s, %d workers: %d coefficients, %+v, %+v", name, n, count, last, p)
			}
			x.Epoch = 7
			_, more, err := runL1(t, n, m, Worker{From: &x})
			end := more[len(more)-1].Sparse
			if err != nil || more[0].Epoch != 7 || len(more) != 1 ||
				math.Abs(end.Objective-p.Objective) > 1e-6*p.Objective {
				t.Errorf("%s: went on for %d epochs, from %+v to %+v: %v", name, len(more),
					more[0].Sparse, end, err)
			}
		}
	}
}

// TestL1Largest: that much leaves no coefficient, and a little less leaves one.
func TestL1Largest(t *testing.T) {
	for name, m := range l1Tasks() {
		for _, c := range []struct {
			part float64
			want int
		}{{1.0000001, 0}, {0.999, 1}} {
			m.Lambda = m.Largest() * c.part
			_, told, err := runL1(t, 1, m, Worker{})
			if got := told[len(told)-1].Sparse.Nonzero; err != nil || got != c.want {
				t.Errorf("%s: %g of the largest leaves %d coefficients: %v", name, c.part, got, err)
			}
		}
	}
}

// TestL1Stops: who asks for it between epochs has the coefficients of that epoch, and the run ends.
func TestL1Stops(t *testing.T) {
	m := l1Tasks()["lasso"]
	var mu sync.Mutex
	var states []State
	_, _, err := runL1(t, 2, m, Worker{Between: func(_ context.Context, x State) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, x)
		return true, nil
	}})
	if !errors.Is(err, ErrStopped) || len(states) != 2 || states[0].Epoch != 1 ||
		!slices.Equal(states[0].Rows[0], states[1].Rows[0]) || slices.Max(states[0].Rows[0]) == 0 {
		t.Errorf("%v, %d states", err, len(states))
	}
}

// TestTargets: labels that are numbers are read as they are, and nothing else is.
func TestTargets(t *testing.T) {
	s, err := ReadTargets(strings.NewReader("-1.5 1:2 3:1\n0 2:0.25\n1e3\n"), nil)
	if err != nil || !slices.Equal(s.target, []float64{-1.5, 0, 1000}) || s.Features != 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	if part := s.Shard(1, 2); !slices.Equal(part.target, []float64{0}) {
		t.Errorf("a part has labels %v", part.target)
	}
	for _, bad := range []string{"x 1:1", "NaN 1:1", "Inf 1:1", "1 1:x"} {
		if _, err := ReadTargets(strings.NewReader(bad), nil); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := ReadTargets(strings.NewReader("1 5:1"), s); err == nil {
		t.Error("a test set with more features was read")
	}
}

// TestL1Refused: what is no task is refused.
func TestL1Refused(t *testing.T) {
	good := l1Tasks()
	classes, _ := Covertype(1, 10, 0)
	for want, m := range map[string]*L1{
		"no training samples":       {},
		"no sample has a feature":   {Train: &Samples{label: []int32{0}}},
		"l1-lr: 7 classes":          {Train: classes, Lambda: 1},
		"lasso: lambda 0":           {Train: good["lasso"].Train},
		"lasso: lambda NaN":         {Train: good["lasso"].Train, Lambda: math.NaN()},
		"lasso: test samples are n": {Train: good["lasso"].Train, Test: classes, Lambda: 1},
	} {
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	m := good["lasso"]
	_, _, err := runL1(t, 1, m, Worker{From: &State{Rows: [][]float32{{1}}}})
	if err == nil || !strings.Contains(err.Error(), "lasso: a state of 1 parameters") {
		t.Error(err)
	}
	if err := fmt.Sprint(m.Run(t.Context(), nil, Worker{Rank: 2, Of: 2})); err != "worker 2 of 2" {
		t.Error(err)
	}
}
