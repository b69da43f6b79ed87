package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/train"
)

// advised is whether a model fits, and what would do if it does not: remedies that have been
// planned, each with what it takes. Sizes are bytes.
type advised struct {
	Type         string   `json:"type"` // advice
	Model        string   `json:"model"`
	Size         string   `json:"size"`
	Fits         bool     `json:"fits"`
	Refusal      string   `json:"refusal,omitempty"`
	DeviceBudget int64    `json:"device_budget_bytes"`
	DevicePeak   int64    `json:"device_peak_bytes,omitempty"` // of what fits as it is
	HostBudget   int64    `json:"host_budget_bytes"`
	HostPeak     int64    `json:"host_peak_bytes,omitempty"`
	DiskBudget   int64    `json:"disk_budget_bytes"`
	Machine      string   `json:"machine"` // that times are of
	Drafts       bool     `json:"drafts"`  // times are of first plans: searches find faster ones
	Remedies     []remedy `json:"remedies"`
	Failed       []string `json:"failed"`  // flags that were tried, and do not fit either
	Untried      []string `json:"untried"` // flags that there was no time for
}

// remedy is a change that has been planned and fits.
type remedy struct {
	Remedy  string `json:"remedy"`
	Flags   string `json:"flags"`
	Device  int64  `json:"device_peak_bytes"`
	Host    int64  `json:"host_peak_bytes"`
	Disk    int64  `json:"disk_peak_bytes"`
	Changes bool   `json:"changes_results"`
	More    bool   `json:"more_memory"` // than the budgets at hand
	// Ratio is the time of a step by prices, per example, over that of the model as it was asked
	// for with everything on the device and no budgets.
	Ratio float64 `json:"step_ratio"`
}

// proposal is a remedy to be tried: what it changes in the command line.
type proposal struct {
	remedy
	model modelFlags
	plan  planFlags
}

// adviceTime is how long remedies are tried, and draftNodes from how large a graph on their
// plans are the first that are found.
const (
	adviceTime = 2 * time.Minute
	draftNodes = 1500
)

// advisor tries remedies.
type advisor struct {
	ctx     context.Context
	cmd     *planCmd
	model   *built
	options gomem.Options
	said    *progress
	vanilla time.Duration // a step, per example
	advised
}

// advise answers whether the model fits, and what would do if not.
func (c *planCmd) advise(ctx context.Context, e *env, b *built, o gomem.Options) error {
	a := &advisor{ctx: ctx, cmd: c, model: b, options: o, said: newProgress(e.stderr)}
	a.advised = advised{Type: "advice", Model: b.model.Name, Size: b.model.Size,
		DeviceBudget: o.DeviceBytes, HostBudget: o.HostBytes, DiskBudget: o.DiskBytes,
		Drafts: b.model.Graph.Len() > draftNodes, Remedies: []remedy{}, Failed: []string{},
		Untried: []string{}}
	short, err := a.asked()
	if err != nil {
		return err
	}
	if short != nil {
		a.Refusal = short.said()
		if err := a.try(); err != nil {
			return err
		}
	}
	if c.JSON {
		err = json.NewEncoder(e.stdout).Encode(a.advised)
	} else {
		a.print(e.stdout)
	}
	if err == nil && short != nil && len(a.Remedies) == 0 {
		return errSome
	}
	return err
}

// asked plans what was asked for, and vanilla, whose time is the unit. It returns what is short,
// nil if it fits.
func (a *advisor) asked() (*shortage, error) {
	v, err := planAll(a.ctx, io.Discard, a.model, vanillaOptions(a.options))
	if err != nil {
		return nil, err
	}
	a.Machine = v.Results[0].Model.Name()
	a.vanilla = a.perExample(a.model, a.cmd.modelFlags, v)
	done := a.said.during("gomem: planning what was asked for")
	p, ranks, err := a.planned(a.model, a.options)
	done()
	if short, ok := errors.AsType[shortage](err); ok {
		return &short, nil
	}
	a.Fits = err == nil
	if err == nil {
		a.DevicePeak, a.HostPeak = peaksOf(p, ranks)
	}
	return nil, err
}

// planned plans a model for all processes that there are.
func (a *advisor) planned(b *built, o gomem.Options) (planned, []rankPeak, error) {
	o.Draft = a.Drafts
	p, err := planAll(a.ctx, io.Discard, b, o)
	if err != nil {
		return p, nil, err
	}
	ranks, err := ofRanks(a.ctx, io.Discard, b, o, p, nil)
	return p, ranks, err
}

// peaksOf are the peaks of plans, the largest of all processes.
func peaksOf(p planned, ranks []rankPeak) (device, host int64) {
	most := mostOf(ranks)
	return max(p.Peak(space.Device), most.Device), max(p.Peak(space.Host), most.Host)
}

// perExample is the time of a step for each example of its batches.
func (a *advisor) perExample(b *built, f modelFlags, p planned) time.Duration {
	return stepTime(b, p) / time.Duration(max(batchOf(b), 1))
}

// batchOf is the batch of a model, 0 if it has none.
func batchOf(b *built) int {
	var batch int
	if _, err := fmt.Sscan(b.numbers["batch"], &batch); err != nil {
		return 0
	}
	return batch
}

// try plans all that may help, as long as there is time, and ranks what does: what keeps the
// results and the budgets first, then the faster.
func (a *advisor) try() error {
	limited, cancel := context.WithTimeout(a.ctx, adviceTime)
	defer cancel()
	whole := a.ctx
	a.ctx = limited
	list := a.proposals()
	for i, ways := range list {
		done := a.said.during(fmt.Sprintf("gomem: trying what would fit (%d of %d)", i+1,
			len(list)))
		err := a.first(ways)
		done()
		if whole.Err() != nil {
			return whole.Err()
		}
		if err != nil && limited.Err() == nil {
			return err
		}
	}
	slices.SortStableFunc(a.Remedies, func(x, y remedy) int {
		return cmp.Or(rankOf(x)-rankOf(y), cmp.Compare(x.Ratio, y.Ratio))
	})
	return nil
}

// rankOf orders remedies by what they ask for beside time.
func rankOf(r remedy) int {
	switch {
	case r.More:
		return 2
	case r.Changes:
		return 1
	}
	return 0
}

// first tries proposals of which one is enough, in order.
func (a *advisor) first(ways func(*advisor) ([]proposal, error)) error {
	list, err := ways(a)
	if err != nil {
		return err
	}
	for _, p := range list {
		if a.ctx.Err() != nil {
			a.Untried = append(a.Untried, p.Flags)
			continue
		}
		ok, err := a.plan(p)
		switch {
		case a.ctx.Err() != nil:
			a.Untried = append(a.Untried, p.Flags)
		case err != nil:
			return err
		case ok:
			return nil
		default:
			a.Failed = append(a.Failed, p.Flags)
		}
	}
	return nil
}

// plan plans a proposal, and keeps it if it fits. What makes no sense for the model is no remedy.
func (a *advisor) plan(p proposal) (fits bool, err error) {
	b, o, err := a.reading(p)
	if err == nil {
		var made planned
		var ranks []rankPeak
		if made, ranks, err = a.planned(b, o); err == nil {
			r := p.remedy
			r.Device, r.Host = peaksOf(made, ranks)
			r.Ratio = ratio(a.perExample(b, p.model, made), a.vanilla)
			if o.DiskBytes > 0 {
				r.Disk = made.Peak(space.Disk)
			}
			a.Remedies = append(a.Remedies, r)
			return true, nil
		}
	}
	_, short := errors.AsType[*gomem.ErrOutOfMemory](err)
	_, useless := errors.AsType[*usageError](err)
	_, divided := errors.AsType[*mesh.Error](err)
	if short || useless || divided {
		return false, nil
	}
	return false, err
}

// reading is the model and the options of a proposal, by the same prices.
func (a *advisor) reading(p proposal) (*built, gomem.Options, error) {
	b := a.model
	if p.model != a.cmd.modelFlags {
		var err error
		if b, err = p.model.build(io.Discard); err != nil {
			return nil, gomem.Options{}, err
		}
	}
	o, err := p.plan.options(a.options.DeviceBytes, a.options.HostBytes)
	if o.ReserveBytes = a.options.ReserveBytes; err == nil {
		o, err = b.priced(o, a.cmd.Device)
	}
	if a.options.Machine != nil {
		o.Machine = a.options.Machine
	}
	if a.cmd.HostBytes > 0 || o.HostBytes > a.options.HostBytes {
		o.ProcessBytes = b.beside.total()
	}
	return b, o, err
}

// print writes the advice for people.
func (x *advised) print(w io.Writer) {
	fold := func(text string) { fmt.Fprintln(w, train.Folded(text, widthOf(w))) }
	if x.Fits {
		fold(fmt.Sprintf("It fits, and nothing needs to change: device %s, host %s.",
			within(x.DevicePeak, x.DeviceBudget), within(x.HostPeak, x.HostBudget)))
		return
	}
	fold("It does not fit: " + x.Refusal + ".")
	if len(x.Remedies) > 0 {
		fmt.Fprintln(w)
		x.table(w)
		fmt.Fprintln(w)
		text := "All of these were planned. Memory is in MiB; time is of a step by the prices of " +
			x.Machine + ", for each example, over that of vanilla without budgets"
		if x.Drafts {
			text += "; plans are the first that were found, and train looks for faster ones"
		}
		fold(text + ".")
	}
	if len(x.Failed) > 0 {
		fold("These do not fit either: " + strings.Join(x.Failed, "; ") + ".")
	}
	if len(x.Untried) > 0 {
		fold(fmt.Sprintf("There was no time, within %s, for: %s.", adviceTime,
			strings.Join(x.Untried, "; ")))
	}
}

// table writes the remedies, the best first, a flag a line.
func (x *advised) table(w io.Writer) {
	t := grid.New(1, 3, 4, 5)
	t.AppendHeader(table.Row{"", "", "device", "host", "time", "results"})
	for i, r := range x.Remedies {
		results := "the same"
		if r.Changes {
			results = "others"
		}
		flags, more, two := strings.Cut(r.Flags, " --")
		t.AppendRow(table.Row{i + 1, flags, mebibytes(r.Device), mebibytes(r.Host),
			fmt.Sprintf("%.2f", r.Ratio), results})
		if two {
			t.AppendRow(table.Row{"", "--" + more})
		}
	}
	printTable(w, t)
}

// mebibytes prints bytes as a number of MiB, with three figures.
func mebibytes(bytes int64) string {
	x := float64(bytes) / (1 << 20)
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
