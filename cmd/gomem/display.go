package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/train"
)

// header is what is known before the first step.
type header struct {
	report
	cost
	Device string `json:"device"`
	Data   string `json:"data"`

	facts []field // more about the data
}

// display shows a run. Nothing is shown before the run has started, so that one
// that cannot start shows nothing but its error. Output that cannot be written is
// no reason to stop training: the command says so at its end.
type display interface {
	observe(train.Event)
	close()                // before anything else is printed
	summary(train.Summary) // after close
}

// newDisplay shows a run as suits the output: JSON if asked for, a bar on a
// terminal, else lines. Warnings go to standard error.
func newDisplay(w, stderr io.Writer, asJSON bool, h header) display {
	lines := lineDisplay{header: h, out: w, warnings: stderr}
	if asJSON {
		return &jsonDisplay{header: h, out: json.NewEncoder(w), warnings: stderr}
	}
	if f, ok := terminal(w); ok {
		return &barDisplay{lines: lines, out: f}
	}
	return &lines
}

// terminal is the terminal behind an output, if there is one on which a bar can
// be drawn.
func terminal(w io.Writer) (*os.File, bool) {
	o, ok := w.(*output)
	if !ok {
		return nil, false
	}
	f, ok := o.w.(*os.File)
	if !ok {
		return nil, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return f, err == nil && width > 0 && height > 0
}

// lineDisplay prints plain lines.
type lineDisplay struct {
	header   header
	out      io.Writer
	warnings io.Writer     // standard error
	shown    int           // the last step that had a line
	shownAt  time.Time     // and when
	stepTime time.Duration // mean of recent steps
}

func (d *lineDisplay) start() {
	h := d.header
	printFields(d.out, slices.Concat([]field{
		{"model", fmt.Sprintf("%s %s, %s parameters, %s", h.Model, h.Size, grouped(h.Parameters),
			counted(h.Nodes, "node"))},
		{"data", h.Data},
	}, h.facts, []field{
		{"plan", h.method()},
		{"device", within(h.DevicePeak, h.DeviceBudget) + h.versus()},
		{"host", within(h.HostPeak, h.HostBudget)},
		{"disk", ifAny(h.DiskPeak, h.DiskBudget)},
		{"copied a step", h.copied()},
	}))
	if text := h.costs(h.cost); text != "" {
		fmt.Fprintf(d.out, "%s\n", text)
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

// everySteps and everyTime are how often steps get a line.
const (
	everySteps = 10
	everyTime  = 2 * time.Second
)

func (d *lineDisplay) observe(e train.Event) {
	switch e.Kind {
	case train.Start:
		d.start()
		d.shown = e.Step
		if e.Step > 0 {
			fmt.Fprintf(d.out, "resumed after step %d from %s\n", e.Step, e.Path)
		}
	case train.Warning:
		warn(d.warnings, e)
	case train.Step:
		d.time(e)
		due := d.shownAt.IsZero() || e.Step == e.Steps || e.Step-d.shown >= everySteps ||
			time.Since(d.shownAt) >= everyTime
		if due {
			d.shown, d.shownAt = e.Step, time.Now()
			fmt.Fprintf(d.out, "step %d/%d  %s\n", e.Step, e.Steps, d.progress(lineFormat, e))
		}
	case train.Eval:
		fmt.Fprintf(d.out, "step %d/%d  held-out loss %.4f%s\n", e.Step, e.Steps, e.Loss,
			metrics(e.Metrics))
	case train.Save:
		fmt.Fprintf(d.out, "step %d/%d  saved %s\n", e.Step, e.Steps, e.Path)
	}
}

// The numbers of a step: loss, tokens a second, device memory in use, copy speed
// and time left. The bar's form fits a terminal of 80 columns.
const (
	lineFormat = "loss %.4f  %s %ss/s  device %s  copies %s/s  %s left"
	barFormat  = "loss %.4f  %s %ss/s  dev %s  copy %s/s  %s left"
)

// time follows the time of recent steps.
func (d *lineDisplay) time(e train.Event) {
	if d.stepTime == 0 {
		d.stepTime = e.StepTime
	}
	d.stepTime += (e.StepTime - d.stepTime) / 10
}

// progress is a step in numbers. The time left follows from recent steps. The
// null device has no loss and no speed, a simulated one no loss.
func (d *lineDisplay) progress(format string, e train.Event) string {
	switch device := d.header.Device; {
	case device == gomem.Null:
		return fmt.Sprintf("nothing computed  device %s  host %s", size(e.DeviceBytes),
			size(e.HostBytes))
	case !gomem.Computes(device):
		return fmt.Sprintf("nothing computed  %s  %s %s/s  device %s  host %s",
			e.StepTime.Round(time.Microsecond), figures(e.UnitsPerSecond), d.header.Unit,
			size(e.DeviceBytes), size(e.HostBytes))
	}
	left := time.Duration(e.Steps-e.Step) * d.stepTime
	copies := int64(float64(e.CopyBytes) / max(e.StepTime.Seconds(), 1e-9))
	return fmt.Sprintf(format, e.Loss, figures(e.UnitsPerSecond), d.header.Unit,
		size(e.DeviceBytes), size(copies), left.Round(time.Second))
}

// warn prints a warning.
func warn(w io.Writer, e train.Event) { fmt.Fprintf(w, "gomem: warning: %s\n", e.Text) }

// metrics lists metrics in order of their names.
func metrics(m map[string]float64) string {
	var b strings.Builder
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "  %s %.4f", name, m[name])
	}
	return b.String()
}

func (d *lineDisplay) close() {}

func (d *lineDisplay) summary(s train.Summary) {
	fields := []field{
		{"device peak", compared(s.PredictedDevicePeak, s.ActualDevicePeak) + d.header.versus()},
		{"host peak", compared(s.PredictedHostPeak, s.ActualHostPeak)},
	}
	if s.PredictedDiskPeak > 0 {
		fields = append(fields,
			field{"disk peak", compared(s.PredictedDiskPeak, s.ActualDiskPeak)})
	}
	if gomem.Computes(d.header.Device) {
		fields = slices.Concat(results(s), fields,
			[]field{{"weights", "sha256 " + s.WeightsSHA256}, {"checkpoint", s.Checkpoint}})
	}
	fmt.Fprintln(d.out)
	printFields(d.out, fields)
}

// results are what a device that computes has.
func results(s train.Summary) []field {
	heldOut := ""
	if s.EvalBatches > 0 {
		heldOut = fmt.Sprintf("%.4f%s", s.EvalLoss, metrics(s.EvalMetrics))
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
	case train.Warning:
		warn(d.warnings, e)
		d.print(warningLine{"warning", e.Step, e.Text})
	case train.Step:
		d.print(stepLine{
			"step", e.Step, e.Steps, e.Loss, e.LearningRate, e.Metrics, e.Units, e.UnitsPerSecond,
			milliseconds(e.StepTime), e.DeviceBytes, e.HostBytes, e.CopyBytes,
		})
	case train.Eval:
		d.print(evalLine{"eval", e.Step, e.Loss, e.Metrics})
	case train.Save:
		d.print(saveLine{"save", e.Step, e.Path})
	}
}

type startLine struct {
	Type  string `json:"type"`
	Steps int    `json:"steps"`
	header
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
}

type evalLine struct {
	Type    string             `json:"type"`
	Step    int                `json:"step"`
	Loss    float64            `json:"eval_loss"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

type saveLine struct {
	Type string `json:"type"`
	Step int    `json:"step"`
	Path string `json:"path"`
}

func (d *jsonDisplay) close() {}

func (d *jsonDisplay) summary(s train.Summary) {
	d.print(struct {
		Type string `json:"type"`
		train.Summary
		VanillaDevice int64 `json:"vanilla_device_peak_bytes"`
	}{"summary", s, d.header.VanillaDevice})
}
