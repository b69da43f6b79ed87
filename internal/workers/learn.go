package workers

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/train"
)

// Task is learning that brings parameters of its own: one of package workload.
type Task interface {
	Run(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error
}

// Learning is what a member does with a [Task].
type Learning struct {
	Settings string                  // what all must have been started with alike
	Total    func(workload.Progress) // as of [workload.Worker]; may be nil
	// View is told when workers have come or gone, and how many go on; it may be nil.
	View func(text string, workers int)
	// From is where all begin; nil: at the task's beginning.
	From *Snapshot
	// Saving is when and where what is learnt is kept; nil: nowhere.
	Saving *Saving
}

// Learnt is how a member's part in a task has ended.
type Learnt struct {
	Epoch   int  // that were done, of a part that ended early
	Stopped bool // all have, before the task was done
	Left    bool // this one has, and the others go on
}

// mostBroken is how often a group may break before it has come to the end of an epoch.
const mostBroken = 5

// Learn is this worker's whole part in a task. Where workers come and go, they have one state
// after every epoch: who is lost costs the epoch under way, which the others begin again from
// the state of the one that is farthest, and who has come is let in after it. When ctx is
// done, the worker ends after the epoch, and all do if it is the first or too few would be
// left.
func (m *Member) Learn(ctx context.Context, t Task, l Learning) (Learnt, error) {
	x := &learner{Member: m, Learning: l, restored: l.From, told: -1}
	if l.From != nil {
		x.have = l.From.State
	}
	if m.options.Elastic == nil {
		return Learnt{}, x.once(ctx, t)
	}
	return x.learn(ctx, t)
}

// once learns with one group, which stays as it is.
func (l *learner) once(ctx context.Context, t Task) error {
	l.Settings += l.restored.String() // nobody hands out a state: all must have read the same
	if _, _, err := l.compare(ctx); err != nil {
		return err
	}
	s, err := l.synchronizer(0)
	if err != nil {
		return err
	}
	if err := l.Finish(ctx, t.Run(ctx, s, l.worker())); err != nil {
		return err
	}
	return l.saved(ctx)
}

// worker is this one, as a task knows it.
func (l *learner) worker() workload.Worker {
	w := workload.Worker{Rank: l.Rank(), Of: l.Size(), Group: l.at().group}
	if l.Total != nil {
		w.Total = l.total
	}
	if l.scheme.scheduled && l.Saving != nil {
		w.Keep = l.keep
	}
	if l.have.Rows != nil {
		w.From = &l.have
	}
	return w
}

// total tells of an epoch, once: one that was told may be begun again, when a worker is lost before
// all have its state.
func (l *learner) total(p workload.Progress) {
	if p.Epoch > l.told {
		l.told = p.Epoch
		l.Total(p)
	}
}

// learner is a member that learns with others who come and go.
type learner struct {
	*Member
	Learning
	have     workload.State // after the last epoch
	restored *Snapshot      // that it is of; nil once an epoch is done
	told     int            // the last epoch of which Total has heard, -1 if of none
	ended    int            // the epoch that a scheduled task ended with; 0: it is not known yet
	broken   int            // groups that broke before they came to the end of an epoch
	what     verdict
}

// verdict is what all have agreed on after an epoch.
type verdict struct{ stop, change, leave bool }

func (l *learner) learn(ctx context.Context, t Task) (Learnt, error) {
	for {
		before := l.Numbers()
		err := l.epochs(ctx, t)
		switch {
		case err == nil && (l.what.stop || l.what.leave):
			return Learnt{Epoch: l.have.Epoch, Stopped: l.what.stop, Left: l.what.leave}, nil
		case err == nil && !l.what.change:
			return Learnt{}, nil
		case err != nil:
			l.broken++
		}
		if l.broken > mostBroken {
			return Learnt{}, fmt.Errorf("%d groups of workers broke one after the other: %w",
				l.broken, err)
		}
		if err := l.regroup(context.WithoutCancel(ctx), err); err != nil {
			return Learnt{}, err
		}
		l.tell(before)
		for l.Size() < l.Least() {
			if err := l.More(ctx); err != nil {
				return Learnt{}, err
			}
			if err := l.regroup(context.WithoutCancel(ctx), nil); err != nil {
				return Learnt{}, err
			}
		}
	}
}

// tell tells who goes on.
func (l *learner) tell(before []int) {
	if l.View != nil {
		now := l.Numbers()
		l.View(fmt.Sprintf("%s after epoch %d", train.Changes(before, now), l.have.Epoch), len(now))
	}
}

// epochs learns with one group, until it has done all, or breaks, or has agreed to end.
func (l *learner) epochs(ctx context.Context, t Task) error {
	l.what = verdict{}
	wait := context.WithoutCancel(ctx)
	if err := l.rally(wait); err != nil {
		return err
	}
	s, err := l.synchronizer(l.scheme.lag())
	if err != nil {
		return err
	}
	w := l.worker()
	w.Between = func(_ context.Context, x workload.State) (bool, error) {
		l.have, l.restored = x, nil
		return l.decide(wait, ctx.Err() != nil)
	}
	l.Formed()
	err = t.Run(wait, s, w)
	if errors.Is(err, workload.ErrStopped) {
		err = nil
	}
	if err := l.Finish(wait, err); err != nil || l.what != (verdict{}) {
		return err
	}
	return l.saved(wait)
}

// decide has all agree on what comes after an epoch.
func (l *learner) decide(ctx context.Context, ends bool) (stop bool, err error) {
	const isToEnd, others = 1, 2
	says := byte(0)
	if ends {
		says |= isToEnd
	}
	if l.Changed() {
		says |= others
	}
	told, err := l.agree(ctx, []byte{says})
	if err != nil {
		return false, err
	}
	l.broken = 0
	stops, v := 0, verdict{}
	for _, b := range told {
		if len(b) != 1 {
			return false, errors.New("a worker is another version")
		}
		stops += int(b[0] & isToEnd)
		v.change = v.change || b[0]&others != 0
	}
	switch {
	case stops > 0 && (told[0][0]&isToEnd != 0 || len(told)-stops < l.Least()):
		v = verdict{stop: true}
	case stops > 0:
		v = verdict{change: true, leave: ends}
	}
	l.what = v
	if v.change {
		err = l.merge(ctx)
	}
	return v != verdict{}, err
}

// merge makes one state of all workers' own before others come and some go: the mean. Nobody
// goes before all have it.
func (l *learner) merge(ctx context.Context) error {
	if !l.scheme.apart() {
		return nil
	}
	for _, x := range l.have.Rows {
		if err := l.at().mean(ctx, x); err != nil {
			return asBroken(err, true)
		}
	}
	_, err := l.agree(ctx, nil)
	return err
}

// agree waits for what all say.
func (l *learner) agree(ctx context.Context, says []byte) ([][]byte, error) {
	at := l.at()
	if err := at.desk.Tell(ctx, says); err != nil {
		return nil, err
	}
	return at.desk.Hear(ctx)
}

// standing is what a learner says of itself when a group is formed.
type standing struct {
	Settings string `json:"settings"`
	Epoch    int    `json:"epoch"`
	Rows     []int  `json:"rows"` // elements of each parameter; none before the first epoch
}

// rally has all begin with one state: that of who is farthest.
func (l *learner) rally(ctx context.Context) error {
	source, all, err := l.compare(ctx)
	if err != nil {
		return err
	}
	return l.take(ctx, source, all[source])
}

// compare hears how far all are, and who is farthest. It is an error if they were not started
// alike.
func (l *learner) compare(ctx context.Context) (source int, all []standing, err error) {
	mine := standing{Settings: l.Settings, Epoch: l.have.Epoch}
	for _, rows := range l.have.Rows {
		mine.Rows = append(mine.Rows, len(rows))
	}
	says, err := json.Marshal(mine)
	if err != nil {
		return 0, nil, err
	}
	told, err := l.agree(ctx, says)
	if err != nil {
		return 0, nil, err
	}
	all = make([]standing, len(told))
	for rank, b := range told {
		if err := json.Unmarshal(b, &all[rank]); err != nil {
			return 0, nil, fmt.Errorf("worker %d is another version: %w", l.Numbers()[rank], err)
		}
		if all[rank].Settings != all[0].Settings {
			return 0, nil, fmt.Errorf("worker %d has other settings than worker %d: start all "+
				"workers with the same flags, data and version", l.Numbers()[rank],
				l.Numbers()[0])
		}
		if all[rank].Epoch > all[source].Epoch {
			source = rank
		}
	}
	return source, all, nil
}

// portion is the most bytes of a state that are handed out at once.
const portion = 4 << 20

// take gives all the state of one.
func (l *learner) take(ctx context.Context, source int, at standing) error {
	state := workload.State{Epoch: at.Epoch}
	for i, n := range at.Rows {
		var data []byte
		if l.Rank() == source {
			data = bytesOf(l.have.Rows[i])
		}
		rows, err := l.receive(ctx, source, data, n)
		if err != nil {
			return err
		}
		state.Rows = append(state.Rows, rows)
	}
	l.have = state
	return nil
}

// receive hands out the bytes of one worker, of so many numbers.
func (l *learner) receive(ctx context.Context, source int, data []byte, n int) ([]float32,
	error) {
	var all bytes.Buffer
	for all.Len() < 4*n {
		at := all.Len()
		told, err := l.agree(ctx, data[min(at, len(data)):min(at+portion, len(data))])
		if err != nil {
			return nil, err
		}
		if len(told[source]) != min(portion, 4*n-at) {
			return nil, fmt.Errorf("worker %d gives %d bytes of its state at once",
				l.Numbers()[source], len(told[source]))
		}
		all.Write(told[source])
	}
	rows := make([]float32, n)
	return rows, binary.Read(&all, binary.LittleEndian, rows)
}

func bytesOf(x []float32) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, x)
	return slices.Clip(b)
}
