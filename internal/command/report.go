package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/go-units"
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// report is a model and its plan in numbers. Sizes are bytes; copies are those
// of one training step; peaks are over training and evaluation. A budget of 0 is
// none.
type report struct {
	Model      string `json:"model"`
	Size       string `json:"size"`
	Unit       string `json:"unit"` // of speed: token, image or utterance
	Parameters int64  `json:"parameters"`

	Policy     planner.Policy `json:"policy"`
	Strategy   string         `json:"strategy"`
	Partition  int            `json:"partition"`       // operations a partition; 0 if none are cut
	Order      string         `json:"order,omitempty"` // that the planner took, if it made the plan
	Prices     string         `json:"prices"`          // the machine that plans are weighed for
	Partitions int            `json:"partitions"`
	Lookahead  int            `json:"lookahead"`
	Prefetch   int            `json:"prefetch"` // operations by which copies run ahead
	Nodes      int            `json:"nodes"`    // of the graph
	Launches   int            `json:"launches"` // operations of a training step
	Steps      int            `json:"plan_steps"`
	Resident   bool           `json:"resident"` // everything is on the device
	Precision  string         `json:"precision,omitempty"`

	DeviceBudget  int64 `json:"device_budget_bytes"`
	DevicePeak    int64 `json:"device_peak_bytes"`
	Reserve       int64 `json:"device_reserve_bytes,omitempty"` // of both, what a GPU takes itself
	HostBudget    int64 `json:"host_budget_bytes"`
	HostPeak      int64 `json:"host_peak_bytes"`
	DiskBudget    int64 `json:"disk_budget_bytes"` // 0: there is no disk
	DiskPeak      int64 `json:"disk_peak_bytes"`
	VanillaDevice int64 `json:"vanilla_device_peak_bytes"`
	// Beside is what the process has beside the plans; nil where that is not known.
	Beside *account `json:"beside,omitempty"`

	SwapOut   int64   `json:"swap_out_bytes"`
	SwapIn    int64   `json:"swap_in_bytes"`
	Stage     int64   `json:"stage_bytes"`
	Feeds     int64   `json:"feed_bytes"`
	Gradients int64   `json:"gradient_bytes"`
	Fetches   int64   `json:"fetch_bytes"`
	WriteBack int64   `json:"write_back_bytes"` // updated on the device
	PlanMS    float64 `json:"plan_ms"`
	overDisk

	Segments int            `json:"segments,omitempty"` // a level, if the plan is in segments
	whole    bool           // the host's budget is of the whole process
	apart    bool           // it is of one process of several
	divided  bool           // it is of a graph on a mesh, and vanilla's is of the whole
	made     planner.Policy // whose plan it is: of auto's, another's may be the fastest
}

// newReport gathers the numbers.
func newReport(m *models.Model, o gomem.Options, p, vanilla planned) report {
	r := report{
		Model: m.Name, Size: m.Size, Unit: m.Unit, Parameters: ops.Parameters(m.Graph),
		DeviceBudget: o.DeviceBytes, HostBudget: o.HostBytes, DiskBudget: o.DiskBytes,
		whole: o.ProcessBytes > 0, apart: processes(o) > 1, divided: o.Mesh != nil,
	}
	decided := p.Results[0].Options
	t, traffic := p.training(), p.training().Traffic()
	r.Policy = cmp.Or(o.Policy, planner.Thesis)
	r.Strategy, r.Partition = string(decided.Strategy), decided.Partition
	r.Resident = decided.NoPlacement && decided.NoSwap
	r.made, r.Prices = decided.Policy, p.Results[0].Model.Name()
	if !o.Precision.Plain() {
		r.Precision = string(o.Precision)
	}
	if r.Order = p.Results[0].Order; r.Order != "" {
		r.Strategy, r.Partition = "", 0
	}
	if r.Segments = p.Results[0].Segments; r.Segments > 0 {
		r.Strategy, r.Partition = "", 0
	}
	r.Partitions, r.Lookahead, r.Prefetch = t.Parts, p.Results[0].Lookahead, p.Results[0].Prefetch
	r.Nodes, r.Launches, r.Steps = p.Graph.Len(), t.Launches(), len(t.Steps)
	beside := o.Beside()
	r.DevicePeak, r.HostPeak = p.Peak(space.Device)+beside, p.Peak(space.Host)
	r.DiskPeak, r.Reserve = p.Peak(space.Disk), o.ReserveBytes
	r.VanillaDevice = vanilla.Peak(space.Device) + beside
	r.SwapOut, r.SwapIn = traffic[space.SwapOut], traffic[space.SwapIn]
	r.Stage = traffic[space.Stage]
	r.Feeds, r.Gradients, r.Fetches = traffic[space.Feed], traffic[space.Gradient],
		traffic[space.Result]
	r.WriteBack = traffic[space.WriteBack]
	r.PlanMS = milliseconds(p.took())
	r.overDisk = diskOf(p.Results[0])
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// ratio is how many times vanilla's device peak is this plan's.
func (r report) ratio() float64 { return float64(r.VanillaDevice) / float64(max(r.DevicePeak, 1)) }

// method is how the plan was made, in words.
func (r report) method() string {
	if r.Order != "" {
		return fmt.Sprintf("%s: planned by the prices of %s, %s", r.Policy, r.Prices, r.Order)
	}
	if r.Segments > 0 {
		return fmt.Sprintf("%s: in segments, each computed again for its backward pass", r.Policy)
	}
	if how, ok := uncut[r.made]; ok {
		return fmt.Sprintf("%s: %s", r.Policy, how)
	}
	return fmt.Sprintf("%s: %s, %s of %d operations, look-ahead %d", r.Policy, r.Strategy,
		counted(r.Partitions, "partition"), r.Partition, r.Lookahead)
}

// host is the host's peak and its budget.
func (r report) host() string {
	if !r.whole || r.Beside == nil {
		return within(r.HostPeak, r.HostBudget)
	}
	return fmt.Sprintf("%s, with the process %s", size(r.HostPeak),
		within(r.HostPeak+r.Beside.total(), r.HostBudget))
}

// within is what there is of a host budget that is of the whole process.
func (x explanation) within() string {
	if !x.whole {
		return ""
	}
	return x.host()
}

// versus states vanilla's device peak and the ratio, unless this is vanilla.
func (r report) versus() string {
	if r.Policy == baseline {
		return ""
	}
	return fmt.Sprintf("; vanilla needs %s, %.2f times as much", size(r.VanillaDevice), r.ratio())
}

// size prints a number of bytes with a binary unit.
func size(bytes int64) string { return units.BytesSize(float64(bytes)) }

// exact prints a number of bytes both ways.
func exact(bytes int64) string { return fmt.Sprintf("%s (%s bytes)", size(bytes), grouped(bytes)) }

// within prints a peak and its budget.
func within(bytes, budget int64) string {
	if budget == 0 {
		return size(bytes)
	}
	return fmt.Sprintf("%s of %s", size(bytes), size(budget))
}

// reserve says what of the device's peak is not for the plan, nor for products.
func (r report) reserve() string {
	if r.Reserve == 0 {
		return ""
	}
	return size(r.Reserve) + " of it for the GPU's context, kernels and libraries"
}

// ifAny prints a peak and its budget, or nothing if there is no budget.
func ifAny(bytes, budget int64) string {
	if budget == 0 {
		return ""
	}
	return within(bytes, budget)
}

// grouped prints a number in groups of three digits.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// figures prints a speed: whole from 100, else with three figures.
func figures(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// counted prints a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}

// printTable writes a table.
func printTable(w io.Writer, t table.Writer) {
	fmt.Fprintln(w, t.Render())
}

// field is a line of a list of facts.
type field struct{ name, value string }

// printFields writes facts, one a line, in two columns. Facts without a value are left out;
// values that are too wide go on below, broken between words.
func printFields(w io.Writer, fields []field) {
	names := 0
	for _, f := range fields {
		if f.value != "" {
			names = max(names, utf8.RuneCountInString(f.name))
		}
	}
	for _, f := range fields {
		name := f.name
		for line := range strings.Lines(train.Folded(f.value, widthOf(w)-names-2)) {
			fmt.Fprintf(w, "%-*s  %s\n", names, name, strings.TrimSuffix(line, "\n"))
			name = ""
		}
	}
}

// pageWidth is how wide text is where there is no terminal.
const pageWidth = 80

// widthOf is how many columns text has on an output.
func widthOf(w io.Writer) int { return cmp.Or(train.TerminalOf(w).Width(), pageWidth) }
