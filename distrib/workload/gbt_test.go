package workload

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/gbt"
)

// boosted runs the task by n workers, from a state or the beginning, and is what the first kept
// last and what it told.
func boosted(t *testing.T, m *GBT, n int, from *State) (last State, told []Progress) {
	t.Helper()
	keep := func(epoch int, _ bool, rows func() ([]distrib.SavedRows, error)) error {
		own, err := rows()
		ps := m.Grown(epoch)
		_, bad := distrib.Restore(ps, []*distrib.Shard{{Rows: own}})
		last = StateOf(ps, epoch)
		return errors.Join(err, bad)
	}
	errs := grouped(n, func(w Worker) error {
		w.Keep, w.From = keep, from
		w.Total = func(p Progress) { told = append(told, p) }
		return m.Run(t.Context(), nil, w)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return last, told
}

// TestBoosted: trees learn Friedman's function and its classes, by any number of workers with the
// same bits, also from the middle on, and test samples are told of as a run that was not stopped
// tells of them.
func TestBoosted(t *testing.T) {
	for _, loss := range []gbt.Loss{gbt.Squares, gbt.Logistic} {
		train, test := Friedman(1, 1500, 500, loss == gbt.Logistic)
		m := &GBT{Options: gbt.Options{Loss: loss, Trees: 12, Depth: 4, Rate: 0.3, L2: 1,
			MinLeaf: 20}, Train: train, Test: test}
		want, told := boosted(t, m, 1, nil)
		if have, _ := boosted(t, m, 3, nil); !equal(have, want) {
			t.Errorf("%v: other bits by 3 workers", loss)
		}
		half := State{5, [][]float32{want.Rows[0], want.Rows[1][:5*len(want.Rows[1])/12]}}
		have, again := boosted(t, m, 2, &half)
		if !equal(have, want) || len(again) != 8 || again[7].TestLoss != told[12].TestLoss {
			t.Errorf("%v: other bits from the middle on: %+v", loss, again)
		}
		first, end := told[0], told[12]
		if !(end.Loss < first.Loss/3) || !(end.TestLoss < first.TestLoss/2) ||
			loss == gbt.Logistic && !(end.AUC > 0.94) {
			t.Errorf("%v: %+v, at first %+v", loss, end, first)
		}
		errs := grouped(2, func(w Worker) error {
			w.Between = func(_ context.Context, x State) (bool, error) {
				if x.Epoch == 5 && !equal(x, half) {
					return false, errors.New("other bits")
				}
				return x.Epoch == 5, collective.Barrier(t.Context(), w.Group)
			}
			return m.Run(t.Context(), nil, w)
		})
		for _, err := range errs {
			if !errors.Is(err, ErrStopped) {
				t.Errorf("%v: %v", loss, err)
			}
		}
	}
}

// TestBoostedRefuses: data and states that nothing can be learnt from, or gone on from.
func TestBoostedRefuses(t *testing.T) {
	train, _ := Friedman(1, 30, 0, false)
	ok := GBT{Options: gbt.Options{Trees: 3, Depth: 1, Rate: 0.1, MinLeaf: 1}, Train: train}
	for want, change := range map[string]func(m *GBT){
		"no training samples":     func(m *GBT) { m.Train = &Samples{} },
		"no sample has a feature": func(m *GBT) { m.Train = &Samples{label: []int32{0}} },
		"want two":                func(m *GBT) { m.Loss = gbt.Logistic },
		"than 8589934592 numbers": func(m *GBT) {
			m.Train = &Samples{Features: 1 << 30, label: make([]int32, 9)}
		},
		"test samples of 9 feature": func(m *GBT) { m.Test = &Samples{Features: 9} },
		"want 131072 at most":       func(m *GBT) { m.Trees = maxTrees + 1 },
		"trees of depth 0":          func(m *GBT) { m.Depth = 0 },
	} {
		m := ok
		change(&m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	whole := []float32{0, 0, 0, -1, 0, 0, -1, 0, 0}
	for want, rows := range map[string][]float32{
		"node 0 of tree 0 asks for feature 10": slices.Concat([]float32{10}, whole[1:]),
		"node 1 of tree 0 asks for feature 0":  slices.Concat(whole[:3], []float32{0}, whole[4:]),
		"a state of 8 elements":                whole[1:],
	} {
		from := &State{1, [][]float32{{0}, rows}}
		err := ok.Run(t.Context(), nil, Worker{Of: 1, From: from})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
