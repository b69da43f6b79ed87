package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/fit"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// byLimit is what refuses the next value where no memory does: there is no such
// model.
const byLimit = "limit"

// fitted is what fit found. Sizes are bytes; peaks are over training and evaluation.
// Of a search that was cut short, Max is the most that is known to fit, and Next the
// least that is known not to.
type fitted struct {
	Type     string         `json:"type"` // fit
	Model    string         `json:"model"`
	Size     string         `json:"size"`
	Policy   planner.Policy `json:"policy"`
	Quantity string         `json:"quantity"` // batch, depth, experts or length
	Max      int            `json:"max"`      // 0: none is known

	DevicePeak   int64 `json:"device_peak_bytes"` // all 0 if cut short before Max was planned
	DeviceBudget int64 `json:"device_budget_bytes"`
	HostPeak     int64 `json:"host_peak_bytes"`
	HostBudget   int64 `json:"host_budget_bytes"`
	// Beside is what the process has beside the plan, of a host budget that is of both.
	Beside     *account `json:"beside,omitempty"`
	DiskPeak   int64    `json:"disk_peak_bytes"`
	DiskBudget int64    `json:"disk_budget_bytes"` // 0: there is no disk
	Processes  int      `json:"processes"`         // that each have so much, of a mesh; or 1

	Next          int    `json:"next"`            // the value after Max; 0: it is not known
	NextRefusedBy string `json:"next_refused_by"` // device, host, disk, or limit: no such model
	NextNeed      int64  `json:"next_need_bytes"` // of that memory; 0 by limit
	NextRefusal   string `json:"next_refusal"`    // in words

	RanOn    string `json:"ran_on"`   // the device on which Max was run
	Plans    int    `json:"plans"`    // values that were tried
	Complete bool   `json:"complete"` // the search, and the proof, came to their ends
}

// report gathers what is known.
func (s *fitting) report(a fit.Answer) fitted {
	x := fitted{
		Type: "fit", Model: s.flags.Model, Size: s.flags.Size,
		Policy: cmp.Or(s.options.Policy, planner.Thesis), Quantity: s.quantity.name,
		DeviceBudget: s.options.DeviceBytes, HostBudget: s.options.HostBytes,
		DiskBudget: s.options.DiskBytes, Plans: a.Probes,
	}
	if a.Most > 0 {
		x.Max = s.most.value
	}
	if a.Most > 0 && s.most.Planned != nil {
		x.DevicePeak, x.HostPeak = s.most.Peak(space.Device), s.most.Peak(space.Host)
		x.DiskPeak = s.most.Peak(space.Disk)
		if s.options.ProcessBytes > 0 {
			x.Beside = &s.most.beside
		}
		x.Processes = max(len(s.most.ranks), 1)
		if most := mostOf(s.most.ranks); x.Processes > 1 {
			x.DevicePeak, x.HostPeak = most.Device, most.Host
		}
	}
	if a.Next == 0 {
		return x
	}
	x.Next = s.quantity.value(a.Next)
	switch r := s.refused[x.Next]; {
	case r.shortage != nil:
		x.NextRefusedBy = r.shortage.Space.String()
		x.NextNeed = r.shortage.need()
		x.NextRefusal = r.shortage.Error()
	case r.limit != nil:
		x.NextRefusedBy, x.NextRefusal = byLimit, oneLine(r.limit)
	}
	return x
}

// print writes the answer for people.
func (x fitted) print(w io.Writer) {
	name := "largest " + x.Quantity
	if !x.Complete {
		name = x.Quantity + " at least"
	}
	if x.Max == 0 {
		return
	}
	next := ""
	if x.Next > 0 {
		next = fmt.Sprintf("%s %s", x.Quantity, grouped(int64(x.Next)))
	}
	printFields(w, []field{
		{"model", fmt.Sprintf("%s %s under policy %s", x.Model, x.Size, x.Policy)},
		{name, grouped(int64(x.Max))},
		{"device", x.planned(x.DevicePeak, x.DeviceBudget)},
		{"host", x.planned(x.HostPeak, x.HostBudget)},
		{"process", x.Beside.String()},
		{"disk", ifAny(x.DiskPeak, x.DiskBudget)},
		{"processes", x.each()},
		{"ran", x.ran()},
		{next, x.refusal()},
		{"tried", counted(x.Plans, "value")},
	})
}

// planned is a peak and its budget, if the most has been planned.
func (x fitted) planned(peak, budget int64) string {
	if x.DevicePeak == 0 {
		return ""
	}
	return within(peak, budget)
}

// each says how many processes have the peaks, the largest of all, if there are several.
func (x fitted) each() string {
	if x.Processes < 2 {
		return ""
	}
	return fmt.Sprintf("%d, each within so much; planned, not run", x.Processes)
}

// ran is the proof in words.
func (x fitted) ran() string {
	switch {
	case x.RanOn == "":
		return ""
	case !gomem.Computes(x.RanOn):
		return fmt.Sprintf("a step on %s, which keeps count: peaks as predicted", x.RanOn)
	}
	return fmt.Sprintf("a step on %s: peaks as predicted", x.RanOn)
}

// refusal is why the next value is refused, in a few words.
func (x fitted) refusal() string {
	switch x.NextRefusedBy {
	case "":
		return ""
	case byLimit:
		why, _, _ := strings.Cut(x.NextRefusal, ": ")
		return "refused: " + why
	}
	return fmt.Sprintf("refused: %s of %s memory", exact(x.NextNeed), x.NextRefusedBy)
}
