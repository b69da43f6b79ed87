package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/lda"
)

func topicsTask(t *testing.T) *Topics {
	t.Helper()
	d := lda.Drawing{Docs: 200, Length: 40, Vocab: 150, Topics: 5, Seed: 2}
	train, err := d.Corpus(0)
	if err != nil {
		t.Fatal(err)
	}
	test, err := d.Corpus(5000)
	if err != nil {
		t.Fatal(err)
	}
	return &Topics{Train: train, Test: test, Epochs: 6,
		Model: lda.Options{Topics: 5, Alpha: .1, Beta: .05, Seed: 4}}
}

// TestTopics: what is kept after an epoch, of any number of workers, is what a run goes on from,
// and ends as one that was not interrupted.
func TestTopics(t *testing.T) {
	var whole []Progress
	if err := topicsTask(t).Run(context.Background(), nil, Worker{Of: 1, Total: func(p Progress) {
		whole = append(whole, p)
	}}); err != nil {
		t.Fatal(err)
	}
	if len(whole) != 6 || whole[5].Loss >= whole[0].Loss || whole[5].TestLoss >= whole[0].TestLoss {
		t.Fatalf("progress %+v", whole)
	}
	task := topicsTask(t)
	var mu sync.Mutex
	var from State
	stop := func(_ context.Context, x State) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		from = x
		return x.Epoch == 3, nil
	}
	rows := map[string]int{}
	keep := func(epoch int, _ bool, own func() ([]distrib.SavedRows, error)) error {
		mu.Lock()
		defer mu.Unlock()
		saved, err := own()
		for _, s := range saved {
			if epoch == 2 {
				rows[s.Param] += int(s.N)
			}
		}
		return err
	}
	for rank, err := range grouped(3, func(w Worker) error {
		w.Between, w.Keep = stop, keep
		if err := task.Run(context.Background(), nil, w); !errors.Is(err, ErrStopped) {
			return fmt.Errorf("it ends with %v", err)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
	if rows["lda/topics"] != task.Train.Tokens() || rows["lda/words"] != task.Train.Vocab {
		t.Errorf("rows %v are kept", rows)
	}
	var rest []Progress
	if err := errors.Join(grouped(2, func(w Worker) error {
		w.From, w.Total = &from, func(p Progress) { rest = append(rest, p) }
		return task.Run(context.Background(), nil, w)
	})...); err != nil {
		t.Fatal(err)
	}
	if len(rest) != 3 || rest[2] != whole[5] {
		t.Errorf("goes on to %+v, want %+v", rest, whole[5])
	}
	from.Rows[0][3] = 5
	if task.Run(context.Background(), nil, Worker{Of: 1, From: &from}) == nil {
		t.Error("a topic that is none is taken")
	}
}
