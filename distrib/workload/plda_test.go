package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/lda"
)

// attached is a synchronizer that remembers what was attached.
type attached struct {
	distrib.Synchronizer
	ps []*distrib.Param
}

func (a *attached) Attach(ps ...*distrib.Param) error {
	a.ps = ps
	return a.Synchronizer.Attach(ps...)
}

// all pulls everything.
func (a *attached) all(ctx context.Context) error {
	for i := range a.ps {
		if _, err := a.Pull(ctx, distrib.Ref{Param: distrib.ParamID(i)}); err != nil {
			return err
		}
	}
	return nil
}

// TestTableConserves: in the end the table and the summary count the topics that the workers'
// tokens have, whatever order the changes came in, and worker 0 was told of each epoch.
func TestTableConserves(t *testing.T) {
	for n, plan := range map[int]distrib.Plan{1: {Consistency: distrib.BSP{}},
		2: {Consistency: distrib.SSP{S: 3}}, 3: {Consistency: distrib.Async{}}} {
		task := &PLDA{Topics: *topicsTask(t), Slack: 3, Both: true}
		synctest.Test(t, func(t *testing.T) {
			_, told := together(t, n, plan, func(s distrib.Synchronizer, w Worker) error {
				a, ctx := &attached{Synchronizer: s}, context.Background()
				if err := task.Run(ctx, a, w); err != nil {
					return err
				}
				if err := settle(ctx, s, 3); err != nil {
					return err
				}
				if err := a.all(ctx); err != nil {
					return err
				}
				if _, never := plan.Consistency.(distrib.Async); never && n > 1 {
					return nil // what others have sent may be on its way
				}
				return conserved(task, a.ps)
			})
			if len(told) != task.Epochs+1 || !(told[6].Loss < told[0].Loss) ||
				!(told[6].TestLoss < told[0].TestLoss) {
				t.Errorf("%d workers: %+v", n, told)
			}
		})
	}
}

// conserved compares a table with the tokens' topics.
func conserved(task *PLDA, ps []*distrib.Param) error {
	topics, err := topicsIn(ps[pldaTopics].Data, task.Model.Topics)
	if err != nil {
		return err
	}
	want := task.params(topics)
	for _, id := range []distrib.ParamID{pldaWords, pldaSummary} {
		if fmt.Sprint(values(ps[id])) != fmt.Sprint(values(want[id])) {
			return fmt.Errorf("%s does not count the tokens' topics", ps[id].Name)
		}
	}
	return nil
}

// TestPLDALikelihood: after equal sweeps the likelihood is within 1 % of the rotation's, of any
// number of workers, stale or not: the medians of three seeds, since a run may take its time to
// tell two topics apart.
func TestPLDALikelihood(t *testing.T) {
	const epochs, seeds = 60, 3
	d := lda.Drawing{Docs: 300, Length: 30, Vocab: 200, Topics: 5, Seed: 4}
	train, err := d.Corpus(0)
	if err != nil {
		t.Fatal(err)
	}
	median := func(loss func(task Topics) float64) float64 {
		var all []float64
		for seed := range uint64(seeds) {
			all = append(all, loss(Topics{Train: train, Epochs: epochs,
				Model: lda.Options{Topics: 5, Alpha: .1, Beta: .05, Seed: seed}}))
		}
		slices.Sort(all)
		return all[seeds/2]
	}
	want := median(func(task Topics) (loss float64) {
		if err := task.Run(context.Background(), nil, Worker{Of: 1, Total: func(p Progress) {
			loss = p.Loss
		}}); err != nil {
			t.Fatal(err)
		}
		return loss
	})
	for _, c := range []struct{ workers, slack int }{{1, 0}, {2, 2}, {3, 0}} {
		got := median(func(task Topics) (loss float64) {
			synctest.Test(t, func(t *testing.T) {
				served := &PLDA{Topics: task, Slack: c.slack}
				_, told := together(t, c.workers, distrib.Plan{
					Consistency: distrib.SSP{S: c.slack}},
					func(s distrib.Synchronizer, w Worker) error {
						return served.Run(context.Background(), s, w)
					})
				loss = told[epochs].Loss
			})
			return loss
		})
		t.Logf("%+v: loss %.0f, rotation %.0f, off by %.2f %%", c, got, want, 100*(got/want-1))
		if math.Abs(got/want-1) > .01 {
			t.Errorf("%+v: off by %.2f %%", c, 100*(got/want-1))
		}
	}
}

// TestPLDAInStep: workers in step come to the same topics whatever the network does, and who goes
// on from a state in between ends as they do.
func TestPLDAInStep(t *testing.T) {
	var first string
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			task := &PLDA{Topics: *topicsTask(t), Both: true}
			var end string
			var state State
			between := func(_ context.Context, x State) (bool, error) {
				if x.Epoch == 2 {
					state = x
				}
				return false, nil
			}
			run := func(seed uint64, from *State) {
				joined(t, 3, distrib.Config{Ordered: true, Plan: distrib.Plan{
					Consistency: distrib.BSP{}}}, seed,
					func(s distrib.Synchronizer, w Worker) error {
						a := &attached{Synchronizer: s}
						if w.From = from; w.Rank == 0 && from == nil {
							w.Between = between
						}
						if err := task.Run(context.Background(), a, w); err != nil {
							return err
						}
						if err := a.all(context.Background()); err != nil || w.Rank > 0 {
							return err
						}
						end = fmt.Sprint(a.ps[pldaTopics].Data)
						return conserved(task, a.ps)
					})
			}
			run(seed, nil)
			if first == "" {
				first = end
			}
			if end != first {
				t.Error("a network with other delays makes other topics")
			}
			end = ""
			run(seed+10, &state)
			if end != first {
				t.Error("who goes on ends elsewhere")
			}
		})
	}
}

func TestPLDARefuses(t *testing.T) {
	shelf, err := lda.Shelved(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer shelf.Close()
	if err := (lda.Drawing{Docs: 9, Length: 9, Vocab: 150, Topics: 5}).Fill(shelf, 0); err != nil {
		t.Fatal(err)
	}
	shelved := &PLDA{Topics: *topicsTask(t)}
	shelved.Train = shelf
	alone, spoilt := &PLDA{Topics: *topicsTask(t)}, &PLDA{Topics: *topicsTask(t), Both: true}
	bad := StateOf(spoilt.Params(), 1)
	bad.Rows[pldaTopics][7] = 5
	for want, c := range map[string]struct {
		task *PLDA
		from *State
	}{"documents on a disk": {shelved, nil}, "have both shared": {alone, &State{}},
		"a state of 0 parameters": {spoilt, &State{}}, "has topic 5": {spoilt, &bad}} {
		err := c.task.Run(context.Background(), nil, Worker{Of: 1, From: c.from})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
