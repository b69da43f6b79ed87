package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/train"
)

// launch starts workers here and ends as they do. Where all must be there, all begin again after
// one has failed, as often as the flags say, by what again makes of the command line.
func (f meetFlags) launch(ctx context.Context, e *env, again func(args []string) []string) error {
	job := f.flags()
	job.Workers = int(f.Local)
	args := e.args
	for restarts := 1; ; restarts++ {
		err := e.extras.Cluster.Launch(ctx, job, args, e.stdout, e.stderr)
		if err == nil {
			return &launchedError{exitOK}
		}
		said, worker := errors.AsType[*WorkerError](err)
		useless := worker && said.Status == exitUsage || ctx.Err() != nil || again == nil
		if useless || f.Min > 0 || restarts > int(f.Restarts) {
			if worker {
				return &launchedError{said.Status}
			}
			return err
		}
		args = again(e.args)
		from := "from the start"
		if i := slices.Index(args, "--resume"); i >= 0 {
			from = "from the latest checkpoint in " + args[i+1]
		}
		fmt.Fprintf(e.stderr, "gomem: %v: all begin again %s, restart %d of %d\n", err, from,
			restarts, f.Restarts)
	}
}

// again is the command line by which all workers begin again: from the latest checkpoint of the
// run, if there is one by now.
func (c *trainCmd) again(args []string) []string {
	if _, err := train.Inspect(string(c.Save)); c.Save == "" || err != nil {
		return args
	}
	return append(without(args, "--resume", "--init"), "--resume", string(c.Save))
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

// restartable reports restarts that cannot be.
func (c *trainCmd) restartable() error {
	switch {
	case c.Restarts == 0:
		return nil
	case c.Local < 2:
		return usagef("--restarts needs --local: elsewhere the launcher starts workers again")
	case c.Min == 0 && c.Save == "":
		return usagef("--restarts without --min needs --save DIR: all workers begin again " +
			"from its latest checkpoint")
	}
	return nil
}
