package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/workers"
)

// tablesRun is what a directory of snapshots says of its run: what chose the model, and its data.
type tablesRun struct {
	Model    string   `json:"model"`
	Data     string   `json:"data,omitempty"`
	EvalData string   `json:"eval_data,omitempty"`
	Seed     uint64   `json:"seed"`
	LR       float64  `json:"lr,omitempty"`
	Epochs   int      `json:"epochs"`
	About    string   `json:"about"` // the data, in words
	Factors  int      `json:"factors,omitempty"`
	LDA      *ldaRun  `json:"lda,omitempty"`
	Lambda   float64  `json:"lambda,omitempty"`
	Gap      float64  `json:"gap,omitempty"`
	Trees    *treeRun `json:"trees,omitempty"`

	Shape  *workload.Shape `json:"shape,omitempty"`  // of samples
	Matrix *matrixRun      `json:"matrix,omitempty"` // of a factorisation
}

// snapshots is where a model without layers is saved, and gone on from; dir is nil if it is not.
type snapshots struct {
	dir     *snapshot.Dir
	resumed location // "": nothing is
	from    *workers.Snapshot
	every   int // epochs; 0: only the last
	run     tablesRun
}

// tablesOf reads what a directory of snapshots says; !ok if it is none.
func tablesOf(path location) (run tablesRun, ok bool, err error) {
	if info, err := os.Stat(string(path)); err == nil && !info.IsDir() {
		return run, false, nil // a checkpoint
	}
	err = snapshot.Open(string(path)).Run(&run)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return run, false, nil
	}
	return run, err == nil && isShallow(run.Model), err
}

// snapshots is where a run of a model without layers is saved and where it begins, so far as its
// command line says.
func (f saveFlags) snapshots(run tablesRun) snapshots {
	path := cmp.Or(f.Save, f.Resume)
	if path == "" {
		return snapshots{}
	}
	return snapshots{dir: snapshot.Open(string(path)), resumed: f.Resume, every: int(f.SaveEvery),
		run: run}
}

// begin reads where to begin, and makes the directory if this is the first worker.
func (s *snapshots) begin(task runner, first bool) error {
	if s.resumed != "" {
		if err := s.rejoin(task); err != nil {
			return err
		}
	}
	switch {
	case s.dir == nil || !first:
		return nil
	case s.resumed != "" && s.dir.Is(string(s.resumed)):
		return s.dir.Describe(s.run) // of how many epochs it is by now
	}
	err := s.dir.Begin(s.run)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("--save %v: the directory has snapshots of another run: go on from them "+
			"with --resume, or save to another directory", s.dir)
	}
	return err
}

// rejoin reads what the run goes on from.
func (s *snapshots) rejoin(task runner) (err error) {
	dir := snapshot.Open(string(s.resumed))
	var run tablesRun
	if err := dir.Run(&run); err != nil {
		return err
	}
	if run.About != s.run.About {
		return fmt.Errorf("%s: the run there learns from %s, not from %s", s.resumed, run.About,
			s.run.About)
	}
	if s.from, err = workers.ReadSnapshot(dir, tablesAfter(task)); err != nil {
		return err
	}
	if rounds, _ := task.Rounds(); s.from.State.Epoch >= rounds {
		return fmt.Errorf("%s is at epoch %d already, the run is to reach %d: ask for more "+
			"--epochs", s.resumed, s.from.State.Epoch, rounds)
	}
	return nil
}

// seen reports whether this worker sees the directory that the first one has made.
func (s *snapshots) seen() error {
	var run tablesRun
	if s.dir.Run(&run) == nil {
		return nil
	}
	return fmt.Errorf("--save %v: this worker does not see what the first one has made there: "+
		"name a directory that all workers share", s.dir)
}

// saving is when and where a task is saved.
func (s *snapshots) saving(task runner) *workers.Saving {
	if s.dir == nil {
		return nil
	}
	epochs, clocks := task.Rounds()
	saving := &workers.Saving{Dir: s.dir, Every: cmp.Or(s.every, epochs), Epochs: epochs,
		Clocks: clocks, Tables: workload.Tables(task.Params()), Seen: s.seen}
	if g, ok := task.(growing); ok {
		saving.Grown = g.Grown
	}
	return saving
}

// growing is a task whose tables have more rows from epoch to epoch.
type growing interface {
	Grown(epoch int) []*distrib.Param
}

// tablesAfter are a task's parameters after so many epochs.
func tablesAfter(task runner) func(epoch int) []*distrib.Param {
	if g, ok := task.(growing); ok {
		return g.Grown
	}
	return func(int) []*distrib.Param { return task.Params() }
}

// kept is what there is to go on from, in words; "" if nothing is.
func (s *snapshots) kept() string {
	if s.dir == nil {
		return ""
	}
	if m, ok := s.dir.Latest(); ok {
		return fmt.Sprintf("%v (after epoch %d)", s.dir, m.Epoch)
	}
	return ""
}

// stopped is the end of a run that was asked to end after an epoch.
func (s *snapshots) stopped(epoch int, model string) error {
	text := fmt.Sprintf("stopped after epoch %d; ", epoch)
	if at := s.kept(); at != "" {
		return &stoppedError{text + "go on with --resume " + at}
	}
	return &stoppedError{text + "nothing is saved of --model " + model}
}

// remembering adds to the failure of a run how to go on, where the first worker says it.
func (s *snapshots) remembering(ctx context.Context, err error, first bool) error {
	at := s.kept()
	if _, stopped := errors.AsType[*stoppedError](err); at == "" || err == nil || stopped {
		return err
	}
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return &stoppedError{"interrupted; go on with --resume " + at}
	}
	if first {
		return fmt.Errorf("%w; go on with --resume %s", err, at)
	}
	return err
}
