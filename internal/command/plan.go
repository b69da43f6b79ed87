package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// planCmd is gomem plan.
type planCmd struct {
	modelFlags
	planFlags
	amongFlags
	ldaFlags
	corpusFlags
	documentFlags

	Device string `group:"machine" placeholder:"NAME"`

	Dump     location  `group:"output" placeholder:"FILE"`
	DumpPass location  `group:"output" placeholder:"FILE"`
	Steps    stepsFlag `group:"output" xor:"report,curve" placeholder:"CONDITIONS"`
	Sharding bool      `group:"output" xor:"report"`
	Graph    location  `group:"output" placeholder:"FILE"`
	JSON     bool      `name:"json" group:"output" xor:"report"`
	Sweep    bool      `group:"output" xor:"curve"`
	Points   count     `group:"output" placeholder:"N"`
	Plot     location  `group:"output" placeholder:"FILE"`
	Advise   bool      `group:"output" xor:"curve"`
}

// Help is the long help.
func (planCmd) Help() string {
	return `Decides everything about a training step, as train would, and says what
it comes to: the peak of each memory and what sets it, the smallest device
budget that works, and what is copied in each step, beside the same for vanilla.
Nothing is run and the model's memory is not taken, so any size can be planned on
any machine.`
}

func (planCmd) examples() string {
	return `
  gomem plan                                     the small model in its budget
  gomem plan --size base --partition 200         860 million parameters
  gomem plan --size base --policy vanilla        the baseline
  gomem plan --device-memory 32MiB               does it fit? if not, what would?
  gomem plan --device-memory 1MiB --advise       what would fit, ranked
  gomem plan --no-swap --json                    numbers for a script
  gomem plan --sweep --policy auto --plot cost.png   what budgets cost
  gomem plan --dump plan.txt --graph moe.dot     every decision, in full
  gomem plan --steps op=swap-in,part=3-5         what comes back for three partitions
  gomem plan --steps time=1.5-2                  what is done in half a millisecond
  gomem plan --mesh batch:4                      in four slices of the batch
  gomem plan --mesh experts:2 --sharding         how every value is divided
  gomem plan --model gpt --data jsonl:chats.jsonl --lengths 256,512,1024   rows
  gomem plan --model lda --tokens 1000000000 --topics 1000     topics of documents
  gomem-cluster plan --workers 4 --sync hybrid   of which weights workers send factors
`
}

// explanation is all that plan prints.
type explanation struct {
	report
	cost
	Floor floor `json:"floor"`
	// a smaller partition size that needs less, and how much; 0 if none does
	LeastPartition int   `json:"least_partition"`
	LeastDevice    int64 `json:"least_device_bytes"`
	VanillaHost    int64 `json:"vanilla_host_peak_bytes"`
	// of DevicePeak's two plans, the evaluation's
	EvalDevice int64      `json:"eval_device_peak_bytes"`
	AtDevice   plan.Peak  `json:"device_peak"`
	AtHost     plan.Peak  `json:"host_peak"`
	PassMS     []passTime `json:"passes"`

	Busy    busy `json:"busy"`
	vanilla plan.Traffic

	Ranks []rankPeak `json:"ranks,omitempty"` // of a mesh of several processes
	Wire  []onWire   `json:"wire,omitempty"`

	Sent []sent `json:"sent,omitempty"` // by each of several workers, of variables

	Documents *documentLengths `json:"documents,omitempty"` // that it is planned for

	Trains bool `json:"trains"` // false of a network without a loss

	spread bool   // experts are divided over a mesh
	loops  string // which are in parts
}

// passTime is how long a pass took.
type passTime struct {
	Pass string  `json:"pass"`
	MS   float64 `json:"ms"`
}

// Run plans and explains.
func (c *planCmd) Run(ctx context.Context, e *env) error {
	if c.Model == "lda" {
		return c.topics(e)
	}
	if name := firstGiven(c.ldaFlags.given(), []option{{"tokens", c.Tokens > 0}}); name != "" {
		return usagef("plan --%s is for --model lda: leave it out", name)
	}
	if ext := filepath.Ext(string(c.Graph)); c.Graph != "" && ext != ".dot" && ext != ".txt" {
		return usagef("--graph %s: want a name that ends in .dot or .txt", c.Graph)
	}
	if c.Sharding && c.Mesh == "" {
		return usagef("--sharding needs --mesh: without, nothing is divided")
	}
	if err := cmp.Or(c.sweepable(), c.advisable(), c.documentary()); err != nil {
		return err
	}
	err := outputs{{"--dump", string(c.Dump)}, {"--dump-pass", string(c.DumpPass)},
		{"--graph", string(c.Graph)}, {"--plot", string(c.Plot)}}.ready()
	if err != nil {
		return err
	}
	devices, err := several(c.Device)
	if err != nil {
		return err
	}
	c.plans, c.reach = true, gomem.Reach(devices)
	scheme, err := c.workers(e, devices)
	if err != nil {
		return err
	}
	c.Device = e.onto(devices[0])
	if err := c.keeping(e, c.Device, false); err != nil {
		return err
	}
	documents, err := c.documents(ctx, e)
	if err != nil {
		return err
	}
	if len(c.Lengths) > 0 {
		return c.byLengths(ctx, e, documents)
	}
	return c.explain(ctx, e, scheme, devices, documents)
}

// explain plans a model, once or within many budgets, and says what it comes to.
func (c *planCmd) explain(ctx context.Context, e *env, scheme *workers.Scheme, devices []string,
	documents *data.PackedLoader) error {
	b, o, err := c.begin(e.stderr, c.planFlags, c.Device)
	if err == nil {
		err = b.reserve(&o, scheme, max(len(devices), int(c.Workers)))
	}
	if err != nil {
		return err
	}
	within := o
	if c.Sweep {
		within.DeviceBytes = 1 // most budgets of a sweep are too small for vanilla
	}
	if within, err = b.measured(ctx, e.stderr, within, func() {}); err != nil {
		return err
	}
	o.Machine = within.Machine
	if c.Sweep {
		return c.sweep(ctx, e, b, o)
	}
	if c.Advise {
		return c.advise(ctx, e, b, o)
	}
	var candidates planner.Log
	p, err := c.planLong(planner.WithLog(ctx, &candidates), e, b, o)
	if err != nil {
		return err
	}
	if err := c.write(p, &candidates); err != nil {
		return err
	}
	if c.Sharding {
		return p.Mesh.Print(e.stdout)
	}
	if c.Steps.given {
		return c.Steps.list(e.stdout, e.stderr, p)
	}
	x, err := explain(ctx, e.stderr, b, o, p, devices)
	if err != nil {
		return err
	}
	if c.Workers > 0 {
		x.Sent = sentOf(b.model)
	}
	if documents != nil {
		facts := documentFacts(documents.Packing())
		x.Documents = &facts
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(x)
	}
	x.print(e.stdout)
	printSent(e.stdout, x.Sent, int(c.Workers), scheme)
	if documents != nil {
		fmt.Fprintln(e.stdout)
		x.Documents.print(e.stdout)
	}
	return nil
}

// write writes the files that were asked for.
func (c *planCmd) write(p planned, candidates *planner.Log) error {
	for _, f := range []struct {
		path location
		from []io.WriterTo
	}{{c.Dump, []io.WriterTo{p.training()}},
		{c.DumpPass, []io.WriterTo{p.Results[0].Program, candidates}}} {
		if f.path == "" {
			continue
		}
		err := writeFile(string(f.path), func(w io.Writer) error {
			for _, x := range f.from {
				if _, err := x.WriteTo(w); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if c.Graph == "" {
		return nil
	}
	return writeFile(string(c.Graph), func(w io.Writer) error {
		if filepath.Ext(string(c.Graph)) == ".dot" {
			return p.Graph.WriteDot(w)
		}
		_, err := p.Graph.WriteTo(w)
		return err
	})
}

// workers are how many train the model who exchange gradients, and how, as flags say: one for each
// of several devices, who may be the processes of a mesh instead.
func (c *planCmd) workers(e *env, devices []string) (*workers.Scheme, error) {
	n := len(devices)
	if n == 1 {
		return c.among(e, c.amongFlags, c.Mesh)
	}
	if name := firstGiven(c.amongFlags.given()); name != "" {
		return nil, usagef("--%s does nothing with several devices, each of which has a worker: "+
			"leave it out", name)
	}
	own := c.planFlags
	own.plans = false
	if spec, err := own.meshed(n); spec != nil || err != nil {
		return nil, err
	}
	s, err := workers.ParseScheme("ring", workers.SchemeOptions{})
	c.exchanging, c.factoring = n, s.Factoring(n)
	return &s, err
}

// explain compares the plans with vanilla's and finds what sets their peaks.
func explain(ctx context.Context, w io.Writer, b *built, o gomem.Options, p planned,
	devices []string) (explanation, error) {
	vanilla, err := comparison(ctx, w, b, o, p)
	if err != nil {
		return explanation{}, err
	}
	bounds := p.bounds(b)
	price, err := costOf(ctx, b, o, p, vanilla, bounds)
	if err != nil {
		return explanation{}, err
	}
	smaller, err := gomem.SmallerPartition(ctx, p.Planned, o, price.MinDevice)
	if err != nil {
		return explanation{}, err
	}
	x := explanation{
		report:      newReport(b.model, o, p, vanilla),
		cost:        price,
		VanillaHost: vanilla.Peak(space.Host),
		AtDevice:    p.whatSets(space.Device),
		AtHost:      p.whatSets(space.Host),
		Floor:       floorOf(p, bounds, o.DeviceBytes),
		EvalDevice:  p.Results[len(p.Results)-1].Plan.Spaces[space.Device].Bytes,
		Busy:        busyOf(b, p),
		vanilla:     vanilla.training().Traffic(),
	}
	x.Beside = &b.beside
	if smaller.Change == planner.SmallerPartition {
		x.LeastPartition, x.LeastDevice = smaller.N, smaller.Bytes
	}
	if x.Ranks, err = ofRanks(ctx, w, b, o, p, devices); err != nil {
		return x, err
	}
	for i := range x.Ranks {
		x.Ranks[i].Device += o.Beside()
	}
	if len(x.Ranks) > 0 {
		x.Wire = wireOf(b, p)
	}
	x.Trains = b.trains()
	x.loops = loopsOf(p)
	x.spread = o.Mesh != nil && b.model.Name == "moe"
	for _, t := range p.Results[0].Timings {
		x.PassMS = append(x.PassMS, passTime{t.Pass, milliseconds(t.Took)})
	}
	return x, nil
}

// loopsOf says which sequences are in parts, as far as it fits on a line, and why.
func loopsOf(p planned) string {
	parts := split.Sequences(p.Graph, p.Model)
	if len(parts) == 0 {
		return ""
	}
	first := parts[0]
	return fmt.Sprintf("%d; %s in %d: whole, it takes %s", len(parts), first.Whole.Name,
		first.Parts, size(first.Need))
}

// print writes the explanation for people.
func (x explanation) print(w io.Writer) {
	printFields(w, []field{
		{"model", fmt.Sprintf("%s %s, %s parameters", x.Model, x.Size, grouped(x.Parameters))},
		{"graph", fmt.Sprintf("%s, of which %s runs %s", counted(x.Nodes, "node"), x.step(),
			grouped(int64(x.Launches)))},
		{"training", x.idle()},
		{"floor of its graph", x.floor()},
		{"which is set by", x.Floor.At},
		{"away at the fullest", x.Floor.away()},
		{"loops in parts", x.loops},
		{"floor of a step", x.fastest()},
		{"plan", x.method()},
		{"precision", x.Precision},
		{"device budget", budget(x.DeviceBudget)},
		{"reserved", x.reserve()},
		{"smallest possible", exact(x.MinDevice)},
		x.smaller(),
		{"evaluation needs", size(x.EvalDevice)},
		{"process", "about " + x.Beside.String()},
		{"host", x.within()},
		{"plan time", fmt.Sprintf("%.1f ms", x.PlanMS)},
		{"of which passes", x.passes()},
	})
	x.printCost(w)
	fmt.Fprintln(w)
	x.printCosts(w)
	x.printRanks(w)
	if x.spread { // the search itself would take longer than all that is said here
		fmt.Fprintln(w, "\ngomem fit --max experts, with the same flags, says how many would fit.")
	}
	if x.Trains {
		x.Busy.print(w)
	}
	printPeak(w, "device", x.AtDevice)
	printPeak(w, "host", x.AtHost)
}

// step is what is planned.
func (x explanation) step() string {
	if x.Trains {
		return "a training step"
	}
	return "an evaluation"
}

// idle says of a network without a loss that nothing is trained.
func (x explanation) idle() string {
	if x.Trains {
		return ""
	}
	return "none: without --loss outputs are computed alone"
}

// floor is the least memory of a training step.
func (x explanation) floor() string {
	if !x.Trains {
		return ""
	}
	return x.Floor.bytes()
}

// printCost writes what the budget costs, in a line, and what times it is of.
func (x explanation) printCost(w io.Writer) {
	if text := x.costs(x.cost); text != "" {
		fmt.Fprintf(w, "\n%s\n", train.Folded(text, widthOf(w)))
	}
	fmt.Fprintln(w, train.Folded(fmt.Sprintf("on %s a step takes %.4g ms by prices; κ %.0f",
		x.Machine, x.PredictedMS, x.Kappa), widthOf(w)))
	if text := x.overDisk.String(); text != "" {
		fmt.Fprintln(w, train.Folded(text, widthOf(w)))
	}
}

// fastest is the lower bound of a step's time.
func (x explanation) fastest() string {
	if x.LowerBoundMS == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g ms on %s", x.LowerBoundMS, x.Machine)
}

// smaller is the partition size that needs less, if there is one, and what it needs.
func (x explanation) smaller() field {
	if x.LeastPartition == 0 {
		return field{}
	}
	return field{fmt.Sprintf("with --partition %d", x.LeastPartition), exact(x.LeastDevice)}
}

func budget(bytes int64) string {
	if bytes == 0 {
		return "none"
	}
	return exact(bytes)
}

// passes are what the passes took that decided about the plan.
func (x explanation) passes() string {
	var list []string
	for _, p := range x.PassMS {
		list = append(list, fmt.Sprintf("%s %.1f", p.Pass, p.MS))
	}
	return strings.Join(list, ", ")
}

// printCosts sets the plan beside vanilla's, unless it is that.
func (x explanation) printCosts(w io.Writer) {
	t := grid.New(2, 3)
	columns := 3
	if x.Policy == baseline {
		columns = 2
	}
	t.AppendHeader(table.Row{"", string(x.Policy), "vanilla"}[:columns])
	row := func(name string, this, vanilla int64) {
		t.AppendRow(table.Row{name, size(this), size(vanilla)}[:columns])
	}
	row("device peak", x.DevicePeak, x.VanillaDevice)
	row("host peak", x.HostPeak, x.VanillaHost)
	if x.DiskBudget > 0 {
		row("disk peak", x.DiskPeak, 0)
	}
	v := x.vanilla
	for _, c := range []struct {
		name          string
		this, vanilla int64
	}{
		{"variables staged, a step", x.Stage, v[space.Stage]},
		{"swapped in", x.SwapIn, v[space.SwapIn]},
		{"swapped out", x.SwapOut, v[space.SwapOut]},
		{"inputs in", x.Feeds, v[space.Feed]},
		{"gradients out", x.Gradients, v[space.Gradient]},
		{"fetched out", x.Fetches, v[space.Result]},
		{"written back", x.WriteBack, v[space.WriteBack]},
	} {
		row(c.name, c.this, c.vanilla)
	}
	if x.DiskBudget > 0 {
		row("read from the disk", x.DiskRead, 0)
		row("written to the disk", x.DiskWrite, 0)
	}
	printTable(w, t)
	if x.Policy != baseline {
		fmt.Fprintf(w, "\nvanilla needs %.2f times the device memory of this plan.\n", x.ratio())
	}
}

// printPeak writes what sets a peak.
func printPeak(w io.Writer, space string, p plan.Peak) {
	text := fmt.Sprintf("The %s is fullest at %s (step %d): %s in %s", space, p.At, p.Step,
		size(p.Live), counted(p.Values, "slot"))
	if gaps := p.Bytes - p.Live; gaps > 0 {
		text += fmt.Sprintf(" and %s of gaps between them", size(gaps))
	}
	text += fmt.Sprintf("; variables and constants are %s of it. The largest:", size(p.Fixed))
	fmt.Fprintf(w, "\n%s\n", train.Folded(text, widthOf(w)))
	t := grid.New(1)
	for _, h := range p.Largest {
		t.AppendRow(table.Row{"  " + size(h.Bytes), h.Type, h.Value})
	}
	printTable(w, t)
}
