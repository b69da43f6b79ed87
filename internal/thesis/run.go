package thesis

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/mesh"
)

// Options say how tables are made. The zero value runs everything at s64 three
// times.
type Options struct {
	Tables []string // which; none means all
	Size   string   // of what is run, s64; base only plans
	Runs   int      // steps whose median is taken, after a warm-up; 0 means 3
	// speed of copies in all times, in 1e9 bytes a second, instead of the thesis' κ
	CopyGbps float64
	Plots    string // directory for figures; "" draws none
	Progress func(string)
	// Join is who has the processes of a mesh exchange with each other, by rank, until they
	// leave; nil: nothing is run that takes several.
	Join func(mesh.Mesh) (networks []gomem.Network, leave func() error, err error)
}

// runner makes tables.
type runner struct{ Options }

func (r *runner) progress(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// runs reports whether anything is executed.
func (r *runner) runs() bool { return r.Size != full }

// experiment makes a table.
type experiment struct {
	id   string
	make func(*runner, context.Context) (Table, error)
}

// experiments are what can be reproduced, in the thesis' order.
var experiments = []experiment{
	{"6.1", (*runner).parameters},
	{"6.2", (*runner).statistics},
	{"fig6.4", (*runner).timeline},
	{"fig6.6", (*runner).strategies},
	{"fig6.7", (*runner).partitionSizes},
	{"6.4", (*runner).ablation},
	{"6.5", (*runner).batches},
	{"6.6", (*runner).throughput},
	{"6.7", (*runner).depth},
	{"6.8", (*runner).experts},
	{"6.9", (*runner).lengths},
	{"6.11", (*runner).comparator},
	{"6.12", (*runner).estimator},
	{"6.10", (*runner).scheduled},
	{"6.13", (*runner).overpartition},
	{"6.14", (*runner).sliced},
}

// IDs are the tables that Options.Tables takes. Figure 6.8 is drawn with table
// 6.4.
func IDs() []string {
	var ids []string
	for _, e := range experiments {
		ids = append(ids, e.id)
	}
	return ids
}

// Validate reports an option that makes no sense.
func (o Options) Validate() error {
	for _, id := range o.Tables {
		if !slices.Contains(IDs(), id) && id != "fig6.8" {
			return fmt.Errorf("unknown table %q: want one of %s", id, strings.Join(IDs(), ", "))
		}
	}
	if o.Size != "" && o.Size != replica && o.Size != full {
		return fmt.Errorf("size %q: want %s, which is run, or %s, which is only planned", o.Size,
			replica, full)
	}
	if o.Runs < 0 || o.CopyGbps < 0 {
		return fmt.Errorf("runs and the speed of copies may not be negative")
	}
	return nil
}

// Run makes tables and hands each out as it is done.
func Run(ctx context.Context, o Options, show func(Table) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Size == "" {
		o.Size = replica
	}
	if o.Runs == 0 {
		o.Runs = 3
	}
	if i := slices.Index(o.Tables, "fig6.8"); i >= 0 {
		o.Tables = slices.Clone(o.Tables)
		o.Tables[i] = "6.4"
	}
	if o.Plots != "" {
		if err := os.MkdirAll(o.Plots, 0o777); err != nil {
			return err
		}
	}
	r := &runner{o}
	for _, e := range experiments {
		if len(o.Tables) > 0 && !slices.Contains(o.Tables, e.id) {
			continue
		}
		t, err := e.make(r, ctx)
		if err != nil {
			return fmt.Errorf("table %s: %w", e.id, err)
		}
		t.ID = e.id
		if err := r.draw(t); err != nil {
			return err
		}
		if err := show(t); err != nil {
			return err
		}
	}
	return nil
}
