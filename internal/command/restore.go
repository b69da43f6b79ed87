package command

import (
	"context"
	"encoding/json"
	"fmt"
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
