package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/train"
)

// restart is how a run begins again: by what command line, and from what was saved last: "step 40",
// or of a model without layers "epoch 4"; "" if nothing was.
type restart func(args []string) (now []string, saved string)

// launch starts workers here and ends as they do. Where all must be there, all begin again after
// one has failed, as often as the flags say; but not where a worker has said what is wrong and
// nothing was saved since, since it would say so again.
func (f meetFlags) launch(ctx context.Context, e *env, again restart) error {
	job := f.flags()
	job.Workers = int(f.Local)
	args, saved := e.args, ""
	if again != nil {
		_, saved = again(e.args)
		job.Again = func() []string {
			now, _ := again(e.args)
			return now
		}
	}
	for restarts := 1; ; restarts++ {
		err := e.extras.Cluster.Launch(ctx, job, args, e.stdout, e.stderr)
		if err == nil {
			return &launchedError{exitOK}
		}
		before := saved
		if again != nil {
			args, saved = again(e.args)
		}
		said, worker := errors.AsType[*WorkerError](err)
		vain := worker && saved == before || ctx.Err() != nil
		if vain || f.Min > 0 || restarts > int(f.Restarts) {
			if worker {
				return &launchedError{said.Status}
			}
			return err
		}
		from := "from the start"
		if saved != "" {
			from = "from " + saved
		}
		fmt.Fprintf(e.stderr, "gomem: %v: all begin again %s, restart %d of %d\n", err, from,
			restarts, f.Restarts)
	}
}

// without are arguments but for some flags and their values.
func without(args []string, flags ...string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, _, valued := strings.Cut(args[i], "=")
		if !slices.Contains(flags, name) {
			out = append(out, args[i])
		} else if !valued {
			i++
		}
	}
	return out
}

// restartable reports restarts that cannot be, of a run that is saved or not.
func (f meetFlags) restartable(e *env, saved bool) error {
	switch {
	case f.Restarts == 0 || e.extras.Cluster == nil: // refused as all of a job's flags are
		return nil
	case f.Local < 2:
		return usagef("--restarts needs --local: elsewhere the launcher starts workers again")
	case f.Min == 0 && !saved:
		return usagef("--restarts without --min needs --save DIR: all workers begin again " +
			"from its latest checkpoint")
	}
	return nil
}

// savedRun is a run by where it is saved; dir is "" if it is nowhere.
type savedRun struct {
	dir     location
	shallow bool // its model has no layers
}

// again goes on from the latest checkpoint of the run, if there is one by now.
func (p savedRun) again(args []string) (now []string, saved string) {
	if p.dir == "" {
		return args, ""
	}
	if p.shallow {
		if latest, ok := snapshot.Open(string(p.dir)).Latest(); ok {
			saved = fmt.Sprintf("epoch %d", latest.Epoch)
		}
	} else if latest, err := train.Inspect(string(p.dir)); err == nil {
		saved = fmt.Sprintf("step %d", latest.Step)
	}
	if saved == "" {
		return args, ""
	}
	return append(without(args, "--resume", "--init"), "--resume", string(p.dir)), saved
}
