package command

import (
	"errors"
	"os"

	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/plan"
)

// diffCmd is gomem diff.
type diffCmd struct {
	A location `arg:"" help:"A plan, as gomem plan --dump writes it."`
	B location `arg:"" help:"The plan to compare it with."`

	JSON bool `name:"json" group:"output"`
}

// Help is the long help.
func (diffCmd) Help() string {
	return `Says what changed between two plans that gomem plan --dump wrote: budgets, peaks,
what is copied for what reason, values that now leave the device or stay, are
computed again or staged, and operations that were added. The exit status is 0
if the plans are the same, 1 if they differ, and 2 if one cannot be read.`
}

func (diffCmd) examples() string {
	return `
  gomem plan --size s512 --partition 20 --dump a.plan
  gomem plan --size s512 --partition 50 --dump b.plan
  gomem diff a.plan b.plan                       what do larger ones change?
`
}

// errDiffer is the end of a comparison that found differences: no failure.
var errDiffer = errors.New("the plans differ")

// Run compares.
func (c *diffCmd) Run(e *env) error {
	a, err := readPlan(string(c.A))
	if err != nil {
		return err
	}
	b, err := readPlan(string(c.B))
	if err != nil {
		return err
	}
	d, err := profile.Compare(a, b)
	if err != nil {
		return usagef("%w", err)
	}
	if c.JSON {
		err = d.WriteJSON(e.stdout)
	} else {
		err = d.WriteText(e.stdout)
	}
	if err == nil && !d.Same {
		return errDiffer
	}
	return err
}

// readPlan reads a plan. One that cannot be read is a usage error, as diff has it.
func readPlan(path string) (*plan.Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("%s: %w", path, bare(err))
	}
	defer f.Close()
	p, err := plan.Parse(f)
	if err != nil {
		return nil, usagef("%s: %w", path, bare(err))
	}
	return p, nil
}
