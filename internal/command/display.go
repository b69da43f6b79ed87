package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/train"
)

// header is what is known before the first step.
type header struct {
	report
	cost
	Device string `json:"device"`
	GPU    string `json:"gpu,omitempty"` // what it is, where the device is one
	Data   string `json:"data"`
	// Workers says how many train and how they keep in step; nothing of one alone.
	Workers string `json:"workers,omitempty"`
	// Factored are the variables of which workers exchange factors.
	Factored []factored `json:"factored,omitempty"`

	facts   []field // more about the data
	warning string  // that it begins with, if there is one
	// least finds MinDevice, nil if it is known: what is known late is shown at the end.
	least func(context.Context) (int64, error)
}

// display shows a run. Nothing is shown before the run has started, so that one
// that cannot start shows nothing but its error. Output that cannot be written is
// no reason to stop training: the command says so at its end.
type display interface {
	observe(train.Event)
	close() // before anything else is printed
	// summary comes after close. least is a MinDevice that was not known before, or 0; on are
	// the peaks of all devices, if there are several.
	summary(s train.Summary, least int64, on []devicePeak)
}

// newDisplay shows a run as suits the output: JSON if asked for, else text, on a terminal
// with a bar. Warnings go to standard error, unless they would draw into a bar.
func newDisplay(w, stderr io.Writer, asJSON bool, h header) display {
	if asJSON {
		return &jsonDisplay{header: h, out: json.NewEncoder(w), warnings: stderr}
	}
	d := &textDisplay{header: h, out: w, warnings: stderr, progress: train.NewProgress(w)}
	d.progress.Facts = d.facts
	return d
}

// textDisplay prints what is known before a run and after it, and its progress between.
type textDisplay struct {
	header   header
	out      io.Writer
	warnings io.Writer // standard error
	progress *train.Progress
	traffic  traffic
}

func (d *textDisplay) start() {
	h := d.header
	printFields(d.out, slices.Concat([]field{
		{"on", h.GPU},
		{"model", fmt.Sprintf("%s %s, %s parameters, %s", h.Model, h.Size, grouped(h.Parameters),
			counted(h.Nodes, "node"))},
		{"data", h.Data},
	}, h.facts, []field{
		{"workers", h.Workers},
		{"factors", factoredFact(h.Factored)},
		{"plan", h.method()},
		{"precision", h.Precision},
		{"device", within(h.DevicePeak, h.DeviceBudget) + h.versus()},
		{"reserved", h.reserve()},
		{"host", h.host()},
		{"disk", ifAny(h.DiskPeak, h.DiskBudget)},
		{"process", h.Beside.String()},
		{"copied a step", h.copied()},
	}))
	if text := h.costs(h.cost); text != "" {
		fmt.Fprintln(d.out, train.Folded(text, widthOf(d.out)))
	}
	fmt.Fprintln(d.out)
}

// copied is the traffic of a training step.
func (r report) copied() string {
	if r.Policy == baseline {
		return size(r.Feeds+r.Fetches) + " of inputs and results"
	}
	return fmt.Sprintf("%s in (%s of variables, %s swapped), %s out (%s swapped, %s of gradients)",
		size(r.Stage+r.SwapIn+r.Feeds), size(r.Stage), size(r.SwapIn),
		size(r.SwapOut+r.Gradients+r.Fetches), size(r.SwapOut), size(r.Gradients))
}

func (d *textDisplay) observe(e train.Event) {
	switch {
	case e.Kind == train.Start:
		d.start()
	case e.Kind == train.Warning && train.TerminalOf(d.out).Width() > 0:
		warn(d.progress.Lines, e)
		return
	case e.Kind == train.Warning:
		warn(d.warnings, e)
		return
	case e.Kind == train.Step && e.Exchanged != nil:
		d.traffic.add(*e.Exchanged, e.StepTime)
	}
	d.progress.Observe(e)
}

// facts are a step in numbers, the most important first. The null device has no loss and
// no speed, a simulated one no loss.
func (d *textDisplay) facts(e train.Event, left time.Duration) []string {
	memory := []string{"device " + size(e.DeviceBytes), "host " + size(e.HostBytes)}
	speed := fmt.Sprintf("%s %ss/s", figures(e.UnitsPerSecond), d.header.Unit)
	switch device := d.header.Device; {
	case device == gomem.Null:
		return append([]string{"nothing computed"}, memory...)
	case !gomem.Computes(device):
		return append([]string{"nothing computed", e.StepTime.Round(time.Microsecond).String(),
			speed}, memory...)
	}
	facts := []string{fmt.Sprintf("loss %.4f", e.Loss), train.RateFact(e),
		left.Round(time.Second).String() + " left", speed, memory[0]}
	if e.Exchanged != nil {
		return append(facts, d.traffic.facts()...)
	}
	copies := int64(float64(e.CopyBytes) / max(e.StepTime.Seconds(), 1e-9))
	return append(facts, "copies "+size(copies)+"/s")
}

// warn prints a warning.
func warn(w io.Writer, e train.Event) { fmt.Fprintf(w, "gomem: warning: %s\n", e.Text) }

// metrics lists metrics in order of their names.
func metrics(m map[string]float64) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %.4f", name, m[name]))
	}
	return out
}

func (d *textDisplay) close() { d.progress.Close() }

func (d *textDisplay) summary(s train.Summary, least int64, on []devicePeak) {
	device := compared(s.PredictedDevicePeak, s.ActualDevicePeak) + d.header.versus()
	if least > 0 {
		device += "; least " + short(least)
	}
	fields := []field{{"device peak", device}}
	for _, x := range on {
		fields = append(fields, field{"on " + x.On, compared(x.Predicted, x.Actual)})
	}
	fields = append(fields, field{"host peak", hostPeak(s)})
	if s.PredictedDiskPeak > 0 {
		fields = append(fields,
			field{"disk peak", compared(s.PredictedDiskPeak, s.ActualDiskPeak)})
	}
	if gomem.Computes(d.header.Device) {
		fields = slices.Concat(results(s), fields, []field{{"exchanged", exchanged(s.Exchanged)}},
			[]field{{"weights sha256", s.WeightsSHA256},
				{"checkpoint", cmp.Or(s.Checkpoint, unkept)}},
			best(s))
	}
	fmt.Fprintln(d.out)
	printFields(d.out, fields)
}

// unkept is what there is of a run that saved nothing.
const unkept = "none: the weights are not kept, --save DIR keeps them"

// best is which evaluation was the best, if they were compared.
func best(s train.Summary) []field {
	if s.BestStep == 0 {
		return nil
	}
	return []field{{"best", fmt.Sprintf("after step %d", s.BestStep)}}
}

// results are what a device that computes has.
func results(s train.Summary) []field {
	heldOut := ""
	if s.EvalBatches > 0 {
		heldOut = strings.Join(append([]string{fmt.Sprintf("%.4f", s.EvalLoss)},
			metrics(s.EvalMetrics)...), "  ")
	}
	return []field{
		{"loss", fmt.Sprintf("%.4f -> %.4f in %s", s.LossFirst, s.LossLast,
			counted(s.Steps-s.ResumedFrom, "step"))},
		{"held-out loss", heldOut},
		{"speed", fmt.Sprintf("%s %ss/s, %.1f ms a step (median)", figures(s.UnitsPerSecond),
			s.Unit, milliseconds(s.StepMedian))},
	}
}

// compared sets the peak that was planned beside the one that was.
func compared(predicted, actual int64) string {
	sign := "="
	if predicted != actual {
		sign = "but"
	}
	return fmt.Sprintf("%s predicted %s %s actual", size(predicted), sign, size(actual))
}

// hostPeak compares the plan's peak of the host's memory. What exchanging takes is a bound that is
// kept to, and not a plan: what was used of it is said apart, by exchanged.
func hostPeak(s train.Summary) string {
	text := compared(s.PredictedHostPeak, s.ActualHostPeak)
	if len(s.Usage) > 1 && s.Usage[1].Network > 0 {
		text += fmt.Sprintf("; %s reserved to exchange", size(s.Usage[1].Network))
	}
	return text
}

// jsonDisplay prints JSON lines.
type jsonDisplay struct {
	header   header
	out      *json.Encoder
	warnings io.Writer // standard error
}

// print writes a line.
func (d *jsonDisplay) print(line any) { _ = d.out.Encode(line) }

func (d *jsonDisplay) observe(e train.Event) {
	switch e.Kind {
	case train.Start:
		d.print(startLine{"start", e.Steps, d.header})
		if e.Step > 0 {
			d.print(saveLine{"resume", e.Step, e.Path})
		}
	case train.Init:
		d.print(initLine{"init", e.Path, e.Text})
	case train.Warning:
		warn(d.warnings, e)
		d.print(warningLine{"warning", e.Step, e.Text})
	case train.Step:
		d.print(stepLine{
			"step", e.Step, e.Steps, e.Loss, e.LearningRate, e.Metrics, e.Units, e.UnitsPerSecond,
			milliseconds(e.StepTime), e.DeviceBytes, e.HostBytes, e.CopyBytes, e.Workers,
			e.Exchanged,
		})
	case train.Eval:
		d.print(evalLine{"eval", e.Step, e.Loss, e.Metrics, e.Samples})
	case train.Save:
		d.print(saveLine{"save", e.Step, e.Path})
	case train.View:
		d.print(viewLine{"view", e.Step, e.Workers, e.Text})
	}
}

type viewLine struct {
	Type    string `json:"type"`
	Step    int    `json:"step"`
	Workers int    `json:"workers"` // that go on
	Text    string `json:"text"`    // who has come or gone
}

type startLine struct {
	Type  string `json:"type"`
	Steps int    `json:"steps"`
	header
}

type initLine struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Text string `json:"text"` // what was taken, and what not
}

type warningLine struct {
	Type string `json:"type"`
	Step int    `json:"step"`
	Text string `json:"text"`
}

type stepLine struct {
	Type           string             `json:"type"`
	Step           int                `json:"step"`
	Steps          int                `json:"steps"`
	Loss           float64            `json:"loss"`
	LearningRate   float64            `json:"learning_rate"`
	Metrics        map[string]float64 `json:"metrics,omitempty"`
	Units          int                `json:"units"`
	UnitsPerSecond float64            `json:"units_per_s"`
	StepMS         float64            `json:"step_ms"`
	DeviceBytes    int64              `json:"device_bytes"`
	HostBytes      int64              `json:"host_bytes"`
	CopyBytes      int64              `json:"copy_bytes"`
	Workers        int                `json:"workers,omitempty"`
	Exchanged      *train.Exchanged   `json:"exchanged,omitempty"`
}

type evalLine struct {
	Type    string             `json:"type"`
	Step    int                `json:"step"`
	Loss    float64            `json:"eval_loss"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Samples []string           `json:"samples,omitempty"`
}

type saveLine struct {
	Type string `json:"type"`
	Step int    `json:"step"`
	Path string `json:"path"`
}

func (d *jsonDisplay) close() {}

func (d *jsonDisplay) summary(s train.Summary, least int64, on []devicePeak) {
	d.print(struct {
		Type string `json:"type"`
		train.Summary
		VanillaDevice int64        `json:"vanilla_device_peak_bytes"`
		MinDevice     int64        `json:"min_device_bytes,omitempty"`
		Devices       []devicePeak `json:"devices,omitempty"`
	}{"summary", s, d.header.VanillaDevice, least, on})
}
