package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gomem/gomem/internal/grid"
)

// doctorCmd is gomem-cluster doctor.
type doctorCmd struct {
	meetFlags

	JSON bool `name:"json" group:"output"`
}

// Help is the long help.
func (doctorCmd) Help() string {
	return `Checks the machines of a job before it is run: that every process reaches
every other, how long a message takes, clocks, versions, certificates, and free
memory and disk. Start it as the job will be, by the same launcher and with the same
flags; the first process prints what all have found, and what to do about it. The exit
status is 1 if something is wrong.`
}

func (doctorCmd) examples() string {
	return `
  gomem-cluster doctor --local 2                   this machine
  srun -N 4 gomem-cluster doctor                   the machines of a Slurm job
  gomem-cluster doctor --etcd https://a:2379       an etcd that is there
`
}

// Run checks.
func (c *doctorCmd) Run(ctx context.Context, e *env) error {
	if e.extras.Cluster == nil {
		return usagef("doctor needs gomem-cluster: go run ./cmd/gomem-cluster doctor")
	}
	if c.Restarts > 0 {
		return usagef("--restarts does nothing for doctor: leave it out")
	}
	w, err := c.world(ctx, e, nil, nil)
	if err != nil {
		return err
	}
	findings, err := e.extras.Cluster.Diagnose(ctx, c.flags(), w)
	if err != nil || w.Rank > 0 {
		return err
	}
	if err := c.print(e, findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return !f.OK }) {
		return errSome
	}
	return nil
}

// print prints findings: a table, and what to do.
func (c *doctorCmd) print(e *env, findings []Finding) error {
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(struct {
			Type     string    `json:"type"`
			Findings []Finding `json:"findings"`
		}{"doctor", findings})
	}
	t := grid.New()
	t.AppendHeader(grid.Row("node", "check", "", "found"))
	bad := 0
	for _, f := range findings {
		verdict := "ok"
		if !f.OK {
			verdict = "bad"
			bad++
		}
		t.AppendRow(grid.Row(f.Node, f.Check, verdict, f.Detail))
	}
	fmt.Fprintln(e.stdout, t.Render())
	for _, f := range findings {
		if !f.OK && f.Remedy != "" {
			fmt.Fprintln(e.stdout, grid.Wrap(fmt.Sprintf("node %s, %s: %s", f.Node, f.Check,
				f.Remedy), pageWidth))
		}
	}
	_, err := fmt.Fprintf(e.stdout, "%s, %d of them bad\n", counted(len(findings), "check"), bad)
	return err
}
