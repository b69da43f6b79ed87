package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/workers"
)

// restoreCmd is gomem-cluster restore.
type restoreCmd struct {
	From location `group:"run" required:"" placeholder:"DIR"`
	At   *whole   `group:"run" placeholder:"STEP"`
	Save location `group:"output" required:"" placeholder:"DIR"`
	JSON bool     `name:"json" group:"output"`
}

// Help is the long help.
func (restoreCmd) Help() string {
	return `Makes the checkpoint that a run would have saved after a step, from the log of
updates that it kept with --svlog: the values of the last time that all of them were
logged, and all updates since, in the order in which they were folded in. The bits are
those that the workers had. The run may have ended in any way, or still be at work. What
is made, gomem train --resume, eval, predict and export take.`
}

func (restoreCmd) examples() string {
	return `
  gomem-cluster train --local 4 --sync orpheus --svlog log
  gomem-cluster restore --from log --save back               the latest step
  gomem-cluster restore --from log --at 120 --save back      after step 120
  gomem-cluster train --local 4 --sync orpheus --resume back
`
}

// Run restores.
func (c *restoreCmd) Run(_ context.Context, e *env) error {
	if e.extras.Cluster == nil {
		return usagef("restore needs gomem-cluster: go run ./cmd/gomem-cluster restore")
	}
	step := -1
	if c.At != nil {
		step = int(*c.At)
	}
	r, err := workers.Restore(string(c.From), step, string(c.Save))
	if err != nil {
		return err
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(e.stderr, "gomem: the logs of workers %s do not have step %d: they go on with "+
			"what the first worker had\n", strings.Trim(fmt.Sprint(r.Missing), "[]"), r.Step)
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(map[string]any{"type": "restore", "step": r.Step,
			"checkpoint": r.Path, "workers": r.Workers, "missing": r.Missing})
	}
	_, err = fmt.Fprintf(e.stdout, "wrote %s: %s %s after step %d of %d workers\n", r.Path, r.Model,
		r.Size, r.Step, r.Workers)
	return err
}

// logs refuses to log updates where that would be of no use.
func (c *trainCmd) logs(s workers.Scheme) error {
	switch {
	case c.SVLog == "" && c.SVLogKeep > 0:
		return usagef("--svlog-keep needs --svlog DIR")
	case c.SVLog == "":
		return nil
	case c.Min > 0:
		return usagef("--svlog is for workers that do not come and go: leave --min out")
	case !s.Logs():
		return usagef("--svlog does nothing for --sync %s, whose workers fold no updates into "+
			"variables of their own: give orpheus, lossy, svb, exponential or halton", s.Name)
	}
	return nil
}

// newLogs refuses a directory that has the log of another run, before workers are started here,
// who may begin again from where they were.
func (c *trainCmd) newLogs(e *env) error {
	if c.SVLog == "" || c.Local < 2 || e.extras.Cluster == nil {
		return nil
	}
	w, err := e.extras.Cluster.World(c.flags())
	if err != nil || w.Launched { // if it is wrong, that is said later
		return nil
	}
	return c.another(len(workers.Logged(string(c.SVLog))) > 0)
}

// newLog is the same for a worker that somebody else has started.
func (c *trainCmd) newLog(w World) error {
	if c.SVLog == "" || w.Launched || c.Local > 1 {
		return nil
	}
	return c.another(slices.Contains(workers.Logged(string(c.SVLog)), w.Rank))
}

func (c *trainCmd) another(logged bool) error {
	if !logged || c.Resume != "" {
		return nil
	}
	return fmt.Errorf("--svlog %s: the directory has the log of another run: resume that one, or "+
		"log to another directory", c.SVLog)
}
