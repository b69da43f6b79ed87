package command

import (
	"context"
	"fmt"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/mesh"
)

// benchCmd is gomem bench.
type benchCmd struct {
	Thesis thesisCmd `cmd:"" help:"Reproduce the tables of the thesis that gomem starts from."`
}

func (benchCmd) examples() string {
	return `
  gomem bench thesis --table 6.4                 memory and time of five models
`
}

// thesisCmd is gomem bench thesis.
type thesisCmd struct {
	Table    []string `placeholder:"ID"`
	Size     string   `enum:"s64,base" default:"s64" placeholder:"SIZE"`
	Runs     count    `placeholder:"N"`
	CopyGbps speed    `placeholder:"GB/S"`
	Plots    location `placeholder:"DIR" help:"Draw the figures as PNG and SVG into a directory."`
	tableFlags
}

// tableFlags say how tables are printed.
type tableFlags struct {
	JSON     bool `name:"json" xor:"format" help:"Print one JSON object a table."`
	CSV      bool `name:"csv" xor:"format"`
	Markdown bool `xor:"format" help:"Print Markdown."`
}

// writer prints tables, one after the other.
func (f tableFlags) writer(e *env) func(thesis.Table) error {
	first := true
	return func(t thesis.Table) error {
		if !first && !f.JSON {
			fmt.Fprintln(e.stdout)
		}
		first = false
		switch {
		case f.JSON:
			return t.WriteJSON(e.stdout)
		case f.CSV:
			return t.WriteCSV(e.stdout)
		case f.Markdown:
			return t.WriteMarkdown(e.stdout)
		}
		return t.WriteText(e.stdout)
	}
}

// patiently says what is under way, at times.
func (e *env) patiently() func(what string) {
	last := time.Now()
	return func(what string) {
		if time.Since(last) > patience {
			last = time.Now()
			fmt.Fprintf(e.stderr, "gomem: %s\n", what)
		}
	}
}

// Help is the long help.
func (thesisCmd) Help() string {
	return `Makes the tables and figures of chapter 6 of J. Wei's thesis (2019), with what
TensorFlow and TensorFlowMem did there beside what gomem does here. Capacity is
compared under equal caps, 12GiB of device and 64GiB of host memory, by planning,
and by running at a 64th of both. Times are relative to gomem's own baseline, with
copies slowed down to the thesis' ratio of computing to copying. The four machines
of tables 6.10 and 6.14 are run in one process, each within budgets of its own.
Everything takes about an hour on two cores.`
}

func (thesisCmd) examples() string {
	return `
  gomem bench thesis --table 6.4 --plots figures     figure 6.8 too
  gomem bench thesis --table 6.5 --table 6.7         largest batch, deepest network
  gomem bench thesis --size base --csv               only plan, for a spreadsheet
`
}

// Run makes the tables.
func (c *thesisCmd) Run(ctx context.Context, e *env) error {
	o := thesis.Options{
		Tables: c.Table, Size: c.Size, Runs: int(c.Runs),
		CopyGbps: float64(c.CopyGbps), Plots: string(c.Plots),
		Join:     together,
		Progress: e.patiently(),
	}
	if err := o.Validate(); err != nil {
		return usagef("%w", err)
	}
	return thesis.Run(ctx, o, c.writer(e))
}

// together joins the processes of a mesh in this one.
func together(m mesh.Mesh) (networks []gomem.Network, leave func() error, err error) {
	all, leave, err := workers.Together(collective.Mesh{Shape: m.Cluster, Names: m.Axes}, nil)
	for _, w := range all {
		networks = append(networks, w.Network())
	}
	return networks, leave, err
}
