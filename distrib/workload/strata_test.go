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
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/orion"
)

// grouped runs a part of each of n workers, who have a group, and is what each came to. Who has
// only stopped does not abort.
func grouped(n int, part func(w Worker) error) []error {
	stopped := make([]error, n)
	errs := collective.Together(memnet.New(n, memnet.Options{}), collective.Options{},
		func(g *collective.Group) error {
			err := part(Worker{Rank: g.Rank(), Of: n, Group: g})
			if errors.Is(err, ErrStopped) {
				stopped[g.Rank()], err = err, nil
			}
			return err
		})
	for rank, err := range errs {
		errs[rank] = errors.Join(err, stopped[rank])
	}
	return errs
}

// kept collects what workers keep.
type kept struct {
	mu     sync.Mutex
	epochs map[int][]distrib.SavedRows
}

func (k *kept) keep(epoch int, _ bool, rows func() ([]distrib.SavedRows, error)) error {
	own, err := rows()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range own {
		r.Data = slices.Clone(r.Data)
		k.epochs[epoch] = append(k.epochs[epoch], r)
	}
	return err
}

// state is what all kept after an epoch: each row once, or it is an error.
func (k *kept) state(m *Strata, epoch int) (State, error) {
	ps := m.Params()
	_, err := distrib.Restore(ps, []*distrib.Shard{{Rows: k.epochs[epoch]}})
	return StateOf(ps, epoch), err
}

// factored runs the task by n workers, from a state or the beginning.
func factored(t *testing.T, m *Strata, n int, from *State) (*kept, []Progress) {
	t.Helper()
	k := &kept{epochs: map[int][]distrib.SavedRows{}}
	var told []Progress
	errs := grouped(n, func(w Worker) error {
		w.Keep, w.From = k.keep, from
		w.Total = func(p Progress) { told = append(told, p) }
		return m.Run(t.Context(), nil, w)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return k, told
}

// serial is the task as one loop, of which each pass is in the order of a schedule for n workers.
func (m *Strata) serial(t *testing.T, n int) (State, []float64) {
	t.Helper()
	s, err := m.plan(n)
	if err != nil {
		t.Fatal(err)
	}
	ps, at := m.Params(), map[[2]int64]float32{}
	var points [][]int64
	for i, v := range m.Data.value {
		p := [2]int64{int64(m.Data.row[i]), int64(m.Data.col[i])}
		points, at[p] = append(points, p[:]), v
	}
	var losses []float64
	for _, rate := range m.schedule().rates() {
		loss := 0.0
		r := orion.Run{Schedule: s, Points: points, Debug: true,
			Body: func(it *orion.Iteration) error {
				row, col := it.Index[0], it.Index[1]
				for _, access := range []orion.Access{orion.Read, orion.Write} {
					it.Use(access, "W", row, orion.Every)
					it.Use(access, "H", col, orion.Every)
				}
				loss += descend(rowOf(ps[1].Data, m.Rank, int32(row)),
					rowOf(ps[0].Data, m.Rank, int32(col)), at[[2]int64{row, col}], float32(rate),
					float32(1-rate*m.Lambda))
				return nil
			}}
		if err := r.Serial(t.Context()); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss)
	}
	return StateOf(ps, m.Epochs), losses
}

func equal(a, b State) bool {
	return a.Epoch == b.Epoch && slices.EqualFunc(a.Rows, b.Rows, slices.Equal[[]float32])
}

// TestStrataAreSerial: any number of workers come to the bits of one loop in the order of their
// schedule, with more rows than columns and the other way round, and report its loss; and so do
// those that begin from what others kept in the middle.
func TestStrataAreSerial(t *testing.T) {
	for workers := 1; workers <= 6; workers++ {
		rows, cols := 60, 40
		if workers%2 == 0 {
			rows, cols = cols, rows
		}
		m := &Strata{Data: LowRank(1, rows, cols, 4, 1500, 0.1), Rank: 5, Seed: 7, Epochs: 5,
			Rate: 0.03, Decay: 0.9, Lambda: 0.02}
		want, losses := m.serial(t, workers)
		k, told := factored(t, m, workers, nil)
		have, err := k.state(m, m.Epochs)
		if err != nil || !equal(have, want) {
			t.Fatalf("%d workers: other bits, %v", workers, err)
		}
		for i, p := range told {
			if p.Epoch != i+1 || p.Count != m.Data.Len() ||
				p.Loss < losses[i]*0.999999 || p.Loss > losses[i]*1.000001 {
				t.Errorf("%d workers: %+v, want a loss of %v", workers, p, losses[i])
			}
		}
		if len(told) != m.Epochs || !(losses[4] < losses[0]) {
			t.Errorf("%d workers: %d epochs, losses %v", workers, len(told), losses)
		}
		half, err := k.state(m, 2)
		if err != nil {
			t.Fatal(err)
		}
		if k, _ = factored(t, m, workers, &half); len(k.epochs) != 3 {
			t.Errorf("%d workers: %d epochs after the second", workers, len(k.epochs))
		}
		if have, err = k.state(m, m.Epochs); err != nil || !equal(have, want) {
			t.Errorf("%d workers: other bits from the middle on, %v", workers, err)
		}
	}
}

// TestStrataStop: between epochs all workers have all that is learnt, and a run that is ended there
// has told of all epochs before.
func TestStrataStop(t *testing.T) {
	m := &Strata{Data: LowRank(1, 50, 30, 4, 900, 0.1), Rank: 3, Epochs: 4, Rate: 0.03}
	k, _ := factored(t, m, 3, nil)
	want, err := k.state(m, 2)
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	errs := grouped(3, func(w Worker) error {
		w.Total = func(p Progress) { told = append(told, p.Epoch) }
		w.Between = func(_ context.Context, x State) (bool, error) {
			if x.Epoch < 2 {
				return false, nil
			}
			if !equal(x, want) {
				return false, errors.New("other bits")
			}
			if w.Rank == 0 && !slices.Equal(told, []int{1, 2}) {
				return false, fmt.Errorf("told %v", told)
			}
			return true, collective.Barrier(t.Context(), w.Group)
		}
		return m.Run(t.Context(), nil, w)
	})
	for rank, err := range errs {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
}

// TestStrataFail: what cannot be learnt, and steps that are too long, are errors.
func TestStrataFail(t *testing.T) {
	data := LowRank(1, 50, 30, 4, 900, 0.1)
	for want, m := range map[string]*Strata{
		"no known elements": {Data: &Ratings{Rows: 1, Cols: 1}, Rank: 2, Epochs: 1, Rate: 1},
		"mf: rank 0":        {Data: data, Epochs: 1, Rate: 1},
		"mf: 0 epochs":      {Data: data, Rank: 2, Rate: 1},
		"mf: lambda -1":     {Data: data, Rank: 2, Epochs: 1, Rate: 1, Lambda: -1},
		"no number any mor": {Data: data, Rank: 2, Epochs: 9, Rate: 1e30},
	} {
		errs := grouped(2, func(w Worker) error { return m.Run(t.Context(), nil, w) })
		if !strings.Contains(errors.Join(errs...).Error(), want) {
			t.Errorf("%v, want %q", errs, want)
		}
	}
	one := &Strata{Data: LowRank(1, 1, 30, 1, 20, 0.1), Rank: 2, Epochs: 2, Rate: 0.1}
	want, _ := one.serial(t, 3)
	k, _ := factored(t, one, 3, nil)
	if have, err := k.state(one, 2); err != nil || !equal(have, want) {
		t.Errorf("a matrix of one row: other bits, %v", err)
	}
}

// BenchmarkStrata measures ratings a second of one worker, rank 32 and 100.
func BenchmarkStrata(b *testing.B) {
	for _, rank := range []int{10, 32, 100} {
		m := &Strata{Data: LowRank(1, 3000, 2000, 4, 200_000, 0.1), Rank: rank, Epochs: 1,
			Rate: 0.01}
		s, err := m.plan(1)
		if err != nil {
			b.Fatal(err)
		}
		r := &strataRun{Strata: m, params: m.Params(), blocks: m.Data.blocks(s, 0),
			rates: []float64{0.01}, worker: &orion.Worker{Sums: []float64{0}}}
		b.Run(fmt.Sprint("rank ", rank), func(b *testing.B) {
			for b.Loop() {
				for i := range r.blocks {
					if err := r.block(b.Context(), 0, i); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(m.Data.Len())*float64(b.N)/b.Elapsed().Seconds(), "ratings/s")
		})
	}
}

// TestStrataStayDivided: rows of the larger matrix that are another worker's are never written, so
// that they take no memory.
func TestStrataStayDivided(t *testing.T) {
	m := &Strata{Data: LowRank(1, 60, 40, 4, 1500, 0.1), Rank: 3, Epochs: 2, Rate: 0.01}
	counts := make([]int, 3)
	errs := grouped(3, func(w Worker) error {
		r, err := m.part(w)
		if err == nil {
			err = r.worker.Run(t.Context(), m.Epochs)
		}
		for k := range 60 {
			if slices.ContainsFunc(rowOf(r.params[1].Data, m.Rank, int32(k)),
				func(x float32) bool { return x != 0 }) {
				counts[w.Rank]++
			}
		}
		return err
	})
	if err := errors.Join(errs...); err != nil || counts[0]+counts[1]+counts[2] != 60 ||
		slices.Min(counts) < 10 {
		t.Errorf("%v: workers have %v rows of 60", err, counts)
	}
}

// TestStrataBeginAtTheMean: products of rows are about the mean of the known elements before the
// first step, so that the first epochs need not find it.
func TestStrataBeginAtTheMean(t *testing.T) {
	data := LowRank(1, 60, 40, 4, 1500, 0.1)
	for i := range data.value {
		data.value[i] += 4
	}
	ps := (&Strata{Data: data, Rank: 16}).Params()
	sum := 0.0
	for i := range data.value {
		sum += float64(dot4(rowOf(ps[1].Data, 16, data.row[i]), rowOf(ps[0].Data, 16, data.col[i])))
	}
	if mean := sum / float64(data.Len()); math.Abs(mean-data.mean()) > 0.3 || data.mean() < 3 {
		t.Errorf("products are %.2f in the mean, and elements %.2f", mean, data.mean())
	}
}
