package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/lda"
)

// PLDA is latent Dirichlet allocation by workers who have documents of their own and share the
// word-topic table and the topic summary by the synchronizer (PLDA, Wang et al. 2009; MLfabric's).
// In a clock a worker pulls the rows of the words of some of its documents, samples these, and
// pushes by how much the counts of their words have changed. Model.Parts is how many clocks an
// epoch has. The corpus is in memory.
type PLDA struct {
	Topics
	Slack int // clocks that reads may be stale: the last report sees all updates

	// Both shares the topics of tokens, too, which are a state to go on from.
	Both bool
}

// The parameters of PLDA, by their places, without the tokens' topics, which come last.
const (
	pldaWords distrib.ParamID = iota
	pldaSummary
	pldaLoss
	pldaTopics
)

// Rounds are how many epochs there are, and clocks in each.
func (t *PLDA) Rounds() (epochs, clocks int) { return t.Epochs, t.Model.WithDefaults().Parts }

// Check reports what is wrong with the task.
func (t *PLDA) Check() error {
	if err := t.Topics.Check(); err != nil {
		return err
	}
	if _, shelved := t.Train.Shelf(); shelved {
		return errors.New("lda: documents on a disk: workers who share a table have theirs in " +
			"memory")
	}
	return nil
}

// Params are the table, the summary and the losses, and, if they are shared, the tokens' topics,
// as all begin with them.
func (t *PLDA) Params() []*distrib.Param { return t.params(lda.Drawn(t.Train, t.Model)) }

// params are those of tokens that have these topics. The summary follows from the table, and is not
// learnt: it has a plan of its own, as losses have.
func (t *PLDA) params(topics []uint16) []*distrib.Param {
	words := lda.Count(t.Train, topics, t.Model.Topics)
	table := &distrib.Param{Name: "lda/words", Rows: t.Train.Vocab, Cols: t.Model.Topics,
		Kind: distrib.IntRows{}, Cells: make([]distrib.Update, t.Train.Vocab)}
	all := make([]int32, t.Model.Topics)
	for w, entries := range words {
		table.Cells[w] = counts(entries, t.Model.Topics)
		for _, e := range entries {
			all[e.Topic] += int32(e.N)
		}
	}
	ps := []*distrib.Param{table, {Name: "lda/summary", Rows: 1, Cols: t.Model.Topics,
		Kind: distrib.IntRows{}, Cells: []distrib.Update{distrib.Ints{N: len(all), Val: all}},
		Sync: &distrib.Plan{Consistency: distrib.SSP{S: t.Slack}}},
		tallyParam("lda/loss", t.Epochs, t.Slack)}
	if t.Both {
		of := &distrib.Param{Name: "lda/topics", Rows: len(topics), Cols: 1,
			Data: make([]float32, len(topics))}
		for i, k := range topics {
			of.Data[i] = float32(k)
		}
		ps = append(ps, of)
	}
	return ps
}

// counts is a row of the table.
func counts(entries []lda.Entry, topics int) distrib.Ints {
	u := distrib.Ints{N: topics}
	for _, e := range entries {
		u.Idx, u.Val = append(u.Idx, uint32(e.Topic)), append(u.Val, int32(e.N))
	}
	return u
}

// Run is a worker's part. It attaches [PLDA.Params], and leaves the synchronizer open.
func (t *PLDA) Run(ctx context.Context, s distrib.Synchronizer, w Worker) error {
	if err := errors.Join(t.Check(), w.check()); err != nil {
		return err
	}
	topics, done, err := t.begin(w)
	if err != nil {
		return fmt.Errorf("lda: %w", err)
	}
	ps := t.params(topics)
	if err := s.Attach(ps...); err != nil {
		return err
	}
	r := &pldaRun{PLDA: t, s: s, w: w, params: ps, done: done,
		own: lda.NewReplica(t.Train, topics, t.Model, w.Rank, w.Of),
		tally: tally{s: s, w: w, id: pldaLoss, param: ps[pldaLoss], total: t.Train.Tokens(),
			shown: done}}
	return r.run(ctx)
}

// begin is the topics of all tokens at the beginning, and the epochs that are done.
func (t *PLDA) begin(w Worker) (topics []uint16, done int, err error) {
	topics = lda.Drawn(t.Train, t.Model)
	if !t.Both && (w.From != nil || w.Between != nil) {
		return nil, 0, errors.New("topics that one worker has are in no state: have both shared")
	}
	if w.From == nil {
		return topics, 0, nil
	}
	ps := t.params(topics)
	if done, err = w.resume(ps, t.Epochs); err != nil {
		return nil, 0, err
	}
	topics, err = topicsIn(ps[pldaTopics].Data, t.Model.Topics)
	return topics, done, err
}

// pldaRun is a worker's part in a run.
type pldaRun struct {
	*PLDA
	s      distrib.Synchronizer
	w      Worker
	params []*distrib.Param
	done   int // epochs, before the run
	own    *lda.Replica
	clock  distrib.Clock
	tally  tally
}

func (r *pldaRun) run(ctx context.Context) error {
	_, clocks := r.Rounds()
	for epoch := r.done; epoch < r.Epochs; epoch++ {
		if err := r.look(ctx, epoch); err != nil {
			return err
		}
		for c := range clocks {
			if err := r.tick(ctx, epoch, c); err != nil {
				return err
			}
		}
		if err := between(ctx, &r.tally, r.Slack, epoch+1, r.Epochs, r.params); err != nil {
			return err
		}
	}
	if err := finish(ctx, r.s, r.Slack, r.Epochs, &r.tally, r.pullAll, r.progress); err != nil {
		return err
	}
	if r.Learnt != nil && r.w.Rank == 0 {
		r.Learnt(r.table())
	}
	return nil
}

// look reports how likely all is by the table that there is.
func (r *pldaRun) look(ctx context.Context, epoch int) error {
	if err := r.pullAll(ctx); err != nil {
		return err
	}
	return report(ctx, &r.tally, r.progress(epoch))
}

// share is the words whose rows this worker's share of the likelihood is of.
func (r *pldaRun) share() (from, to int) { return part(r.Train.Vocab, r.w.Rank, r.w.Of) }

// pullAll pulls what progress is of, and all of the table where it is asked for.
func (r *pldaRun) pullAll(ctx context.Context) error {
	from, to := r.share()
	if r.w.Rank == 0 && (r.Test != nil || r.Learnt != nil) {
		to = r.Train.Vocab
	}
	refs := []distrib.Ref{{Param: pldaSummary, N: 1}}
	if from < to {
		refs = append(refs, distrib.Ref{Param: pldaWords, Row: int32(from), N: int32(to - from)})
	}
	return pullRows(ctx, r.s, refs)
}

// row is that of a word, and summary is of all, as they were last pulled.
func (r *pldaRun) row(word uint32) distrib.Ints {
	return r.params[pldaWords].Cells[word].(distrib.Ints)
}

func (r *pldaRun) summary() distrib.Ints { return r.params[pldaSummary].Cells[0].(distrib.Ints) }

// tick is one clock's work, on a part of the documents.
func (r *pldaRun) tick(ctx context.Context, epoch, part int) (err error) {
	refs := []distrib.Ref{{Param: pldaSummary, N: 1}}
	for _, w := range r.own.Words(part) {
		if last := &refs[len(refs)-1]; last.Param == pldaWords && last.Row+last.N == int32(w) {
			last.N++
			continue
		}
		refs = append(refs, distrib.Ref{Param: pldaWords, Row: int32(w), N: 1})
	}
	if err := pullRows(ctx, r.s, refs); err != nil {
		return err
	}
	first, topics := r.own.Part(part)
	before := append([]uint16(nil), topics...)
	changes, all := r.own.Sample(part, epoch+1, r.row, r.summary())
	if err := r.w.compute(ctx, 1); err != nil {
		return err
	}
	for _, c := range changes {
		ref := distrib.Ref{Param: pldaWords, Row: int32(c.Word), N: 1}
		if err := r.s.Push(ctx, ref, c.Ints); err != nil {
			return err
		}
	}
	if len(all.Val) > 0 {
		if err := r.s.Push(ctx, distrib.Ref{Param: pldaSummary, N: 1}, all); err != nil {
			return err
		}
	}
	if r.Both {
		if err := r.pushTopics(ctx, first, before, topics); err != nil {
			return err
		}
	}
	r.clock, err = r.s.Tick(ctx)
	return err
}

// pushTopics says which topics tokens have now.
func (r *pldaRun) pushTopics(ctx context.Context, first int, before, now []uint16) error {
	u := distrib.Sparse{N: len(now)}
	for i, k := range now {
		if k != before[i] {
			u.Idx = append(u.Idx, uint32(i))
			u.Val = append(u.Val, float32(k)-float32(before[i]))
		}
	}
	if len(u.Idx) == 0 {
		return nil
	}
	return r.s.Push(ctx, distrib.Ref{Param: pldaTopics, Row: int32(first), N: int32(len(now))}, u)
}

// progress is how likely this worker's documents are, and its share of the words.
func (r *pldaRun) progress(epoch int) Progress {
	p := Progress{Worker: r.w.Rank, Epoch: epoch, Clock: r.clock, At: time.Now()}
	from, to := r.share()
	var rows []distrib.Ints
	for w := from; w < to; w++ {
		rows = append(rows, r.row(uint32(w)))
	}
	_, clocks := r.Rounds()
	for c := range clocks {
		_, topics := r.own.Part(c)
		p.Count += len(topics)
	}
	if r.w.Rank > 0 {
		p.Loss = -r.own.LogLikelihood(rows, nil)
		return p
	}
	all := r.summary()
	p.Loss = -r.own.LogLikelihood(rows, &all)
	if r.Test != nil {
		p.TestLoss, p.TestCount = r.table().Complete(r.Test)
		p.TestLoss = -p.TestLoss
	}
	return p
}

// table is that which was last pulled.
func (r *pldaRun) table() *lda.Table {
	words := make([][]lda.Entry, r.Train.Vocab)
	for w := range words {
		for k, n := range r.row(uint32(w)).All() {
			if n > 0 {
				words[w] = append(words[w], lda.Entry{Topic: uint16(k), N: uint32(n)})
			}
		}
	}
	return lda.NewTable(words, r.Model)
}
