package command

import (
	"context"
	"errors"
	"io"

	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/internal/regular"
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
func (c *diffCmd) Run(ctx context.Context, e *env) error {
	a, err := readPlan(ctx, string(c.A))
	if err != nil {
		return err
	}
	b, err := readPlan(ctx, string(c.B))
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
func readPlan(ctx context.Context, path string) (*plan.Plan, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, usagef("%s: %w", path, bare(err))
	}
	defer f.Close()
	p, err := plan.Parse(untilDone{ctx, f})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, usagef("%s: %w", path, bare(err))
	}
	return p, nil
}

// untilDone is a reader that ends with a context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read is the reader's; the error of a context that has ended is the context's.
func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
