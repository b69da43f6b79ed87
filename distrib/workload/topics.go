package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/lda"
)

// Topics is latent Dirichlet allocation, by the schedule of LightLDA (J. Wei's thesis, section
// 4.1): workers have documents of their own, and the slices of the vocabulary rotate among them.
type Topics struct {
	Train  *lda.Corpus
	Test   *lda.Corpus // of the same words; nil: none
	Model  lda.Options
	Epochs int

	// Learnt is called by worker 0 with the word-topic table at the end; nil: nobody asks.
	Learnt func(*lda.Table)
}

// Rounds are how many epochs there are, of one clock each.
func (t *Topics) Rounds() (epochs, clocks int) { return t.Epochs, 1 }

// Check reports what is wrong with the task.
func (t *Topics) Check() error {
	switch {
	case t.Train == nil || t.Train.Tokens() == 0:
		return errors.New("lda: no document has a word")
	case t.Test != nil && t.Test.Vocab != t.Train.Vocab:
		return fmt.Errorf("lda: test documents of %d words, training documents of %d", t.Test.Vocab,
			t.Train.Vocab)
	case t.Epochs < 1:
		return fmt.Errorf("lda: %d epochs", t.Epochs)
	}
	return t.Model.Check()
}

// Params are what is learnt: the topic of each token, in the order of the documents, and the
// word-topic table, which follows from them.
func (t *Topics) Params() []*distrib.Param {
	return []*distrib.Param{
		{Name: "lda/topics", Rows: t.Train.Tokens(), Cols: 1, Data: make([]float32,
			t.Train.Tokens())},
		{Name: "lda/words", Rows: t.Train.Vocab, Cols: t.Model.Topics, Kind: distrib.IntRows{}},
	}
}

// Run is a worker's part. There is nothing to synchronise, so it takes no synchronizer.
func (t *Topics) Run(ctx context.Context, _ distrib.Synchronizer, w Worker) (err error) {
	if err := errors.Join(t.Check(), w.check()); err != nil {
		return err
	}
	m, err := lda.New(t.Train, t.Model, w.Group)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	r := &topicsRun{Topics: t, w: w, model: m}
	if w.From != nil {
		if err := r.resume(); err != nil {
			return err
		}
	}
	for epoch := r.done; epoch < t.Epochs; epoch++ {
		if err := m.Sweep(ctx); err != nil {
			return err
		}
		if err := r.after(ctx, epoch+1); err != nil {
			return err
		}
	}
	return r.finish(ctx)
}

// topicsRun is a worker's part in a run.
type topicsRun struct {
	*Topics
	w     Worker
	model *lda.Model
	done  int // epochs, before the run
}

// resume goes on from a state.
func (r *topicsRun) resume() error {
	if n := len(r.w.From.Rows); n != 2 {
		return fmt.Errorf("lda: a state of %d parameters, want 2", n)
	}
	topics, err := topicsIn(r.w.From.Rows[0], r.Model.Topics)
	if err != nil {
		return fmt.Errorf("lda: %w", err)
	}
	r.done = r.w.From.Epoch
	return r.model.Resume(r.done, topics)
}

// topicsIn are the topics of tokens, as a state has them.
func topicsIn(state []float32, of int) ([]uint16, error) {
	topics := make([]uint16, len(state))
	for i, k := range state {
		if !(k >= 0 && k < float32(of)) {
			return nil, fmt.Errorf("a state in which token %d has topic %v", i, k)
		}
		topics[i] = uint16(k)
	}
	return topics, nil
}

// after reports an epoch, keeps what is due, and hands out the state if somebody asks.
func (r *topicsRun) after(ctx context.Context, epoch int) error {
	if err := r.report(ctx, epoch); err != nil {
		return err
	}
	if r.w.Keep != nil {
		if err := r.w.Keep(epoch, epoch == r.Epochs, r.own); err != nil {
			return err
		}
	}
	if r.w.Between == nil || epoch == r.Epochs {
		return nil
	}
	x, err := r.state(ctx, epoch)
	if err != nil {
		return err
	}
	stop, err := r.w.Between(ctx, x)
	if err == nil && stop {
		err = ErrStopped
	}
	return err
}

// report says how likely the documents are, and those that are held out.
func (r *topicsRun) report(ctx context.Context, epoch int) error {
	likelihood, err := r.model.LogLikelihood(ctx)
	if err != nil {
		return err
	}
	p := Progress{Epoch: epoch, Loss: -likelihood, Count: r.model.Tokens()}
	if r.Test != nil {
		table, err := r.model.Table(ctx)
		if err != nil {
			return err
		}
		if r.w.Rank == 0 {
			p.TestLoss, p.TestCount = table.Complete(r.Test)
			p.TestLoss = -p.TestLoss
		}
	}
	if r.w.Total != nil && r.w.Rank == 0 {
		r.w.Total(p)
	}
	return nil
}

// own are the rows that this worker has between epochs.
func (r *topicsRun) own() ([]distrib.SavedRows, error) {
	first, topics, err := r.model.Assignments()
	if err != nil {
		return nil, err
	}
	of := distrib.SavedRows{Param: "lda/topics", Cols: 1, Row: int32(first), N: int32(len(topics)),
		Data: make([]float32, 0, len(topics))}
	for _, k := range topics {
		of.Data = append(of.Data, float32(k))
	}
	word, words := r.model.Words()
	table := distrib.SavedRows{Param: "lda/words", Cols: r.Model.Topics, Row: int32(word),
		N: int32(len(words)), Kind: distrib.IntRows{}.Name()}
	for _, entries := range words {
		table.Cells = append(table.Cells, counts(entries, r.Model.Topics))
	}
	return []distrib.SavedRows{of, table}, nil
}

// state is what all workers have together.
func (r *topicsRun) state(ctx context.Context, epoch int) (State, error) {
	x := State{Epoch: epoch, Rows: [][]float32{make([]float32, r.Train.Tokens()),
		make([]float32, r.Train.Vocab*r.Model.Topics)}}
	topics, err := r.model.Gather(ctx)
	if err != nil {
		return x, err
	}
	for i, k := range topics {
		x.Rows[0][i] = float32(k)
	}
	table, err := r.model.Table(ctx)
	if err != nil {
		return x, err
	}
	for w, entries := range table.Words() {
		for _, e := range entries {
			rowOf(x.Rows[1], r.Model.Topics, int32(w))[e.Topic] = float32(e.N)
		}
	}
	return x, nil
}

// finish hands out the table.
func (r *topicsRun) finish(ctx context.Context) error {
	table, err := r.model.Table(ctx)
	if err == nil && r.Learnt != nil && r.w.Rank == 0 {
		r.Learnt(table)
	}
	return err
}
