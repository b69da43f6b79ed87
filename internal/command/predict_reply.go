package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan/space"
)

// reply is how results are shown, and counted.
type reply struct {
	e      *env
	json   *json.Encoder // nil: text
	unit   string
	inputs int // that were answered
	failed int // that could not be
	units  int
	busy   time.Duration // of answering
	usage  []gomem.Usage
	disk   overDisk // of a step
}

func newReply(e *env, asJSON bool, unit string) *reply {
	r := &reply{e: e, unit: unit}
	if asJSON {
		r.json = json.NewEncoder(e.stdout)
	}
	return r
}

// question is an input, or a part of one.
type question[T any] struct {
	Input string // its file, or -
	Line  int    // from 1; 0: the whole file
	Value T
	Err   error // why it cannot be answered
}

// failure is the line of an input that failed.
type failure struct {
	Type  string `json:"type"`
	Input string `json:"input"`
	Line  int    `json:"line,omitempty"`
	Error string `json:"error"`
}

// fail reports an input that cannot be answered.
func (r *reply) fail(input string, line int, err error) {
	r.failed++
	text := oneLine(err)
	fmt.Fprintf(r.e.stderr, "gomem: %s: %s\n", at(input, line), text)
	beside := ""
	if line > 0 {
		beside = "\n" // lines of the output stay beside those of the input
	}
	r.show(failure{"error", input, line, text}, beside)
}

// show prints a result, as an object or as text.
func (r *reply) show(object any, text string) {
	if r.json != nil {
		_ = r.json.Encode(object) // output remembers its failure
		return
	}
	fmt.Fprint(r.e.stdout, text)
}

// answerAll answers questions, some at a time: next gives those that are there, or none
// at the end; run answers those without an error; show shows an answer and counts it.
func answerAll[T, R any](r *reply, next func() []question[T], run func([]T) ([]R, error),
	show func(question[T], R)) error {
	for some := next(); len(some) > 0; some = next() {
		var values []T
		for _, q := range some {
			if q.Err == nil {
				values = append(values, q.Value)
			}
		}
		began := time.Now()
		answers, err := run(values)
		if err != nil {
			return err
		}
		r.busy += time.Since(began)
		for _, q := range some {
			if q.Err != nil {
				r.fail(q.Input, q.Line, q.Err)
				continue
			}
			r.inputs++
			show(q, answers[0])
			answers = answers[1:]
		}
		if o, ok := r.e.stdout.(*output); ok && o.err != nil {
			return o.err
		}
	}
	return nil
}

// summaryLine is the last line.
type summaryLine struct {
	Type           string  `json:"type"`
	Checkpoint     string  `json:"checkpoint"`
	Step           int     `json:"step"`
	Inputs         int     `json:"inputs"`
	Failed         int     `json:"failed"`
	Unit           string  `json:"unit"`
	Units          int     `json:"units"`
	Seconds        float64 `json:"seconds"`
	UnitsPerSecond float64 `json:"units_per_s"`
	memoryUse
	overDisk
}

// memoryUse is what a command's session took of memory, in bytes.
type memoryUse struct {
	DeviceBudget    int64 `json:"device_budget_bytes"` // 0: none
	DevicePredicted int64 `json:"predicted_device_peak_bytes"`
	DeviceActual    int64 `json:"actual_device_peak_bytes"`
	HostBudget      int64 `json:"host_budget_bytes"`
	HostPredicted   int64 `json:"predicted_host_peak_bytes"`
	HostActual      int64 `json:"actual_host_peak_bytes"`
	DiskBudget      int64 `json:"disk_budget_bytes,omitempty"` // 0: there is no disk
	DiskPredicted   int64 `json:"predicted_disk_peak_bytes,omitempty"`
	DiskActual      int64 `json:"actual_disk_peak_bytes,omitempty"`
}

func memoryUsed(usage []gomem.Usage, o gomem.Options) memoryUse {
	m := memoryUse{DeviceBudget: o.DeviceBytes, HostBudget: o.HostBytes,
		DiskBudget: o.DiskBytes}
	if len(usage) > int(space.Disk) {
		m.DiskPredicted, m.DiskActual = usage[space.Disk].Predicted, usage[space.Disk].Actual
	}
	if len(usage) > 1 {
		m.DevicePredicted, m.DeviceActual = usage[0].Predicted, usage[0].Actual
		m.HostPredicted, m.HostActual = usage[1].Predicted, usage[1].Actual
	}
	return m
}

// String is what was used, for people.
func (m memoryUse) String() string {
	text := "device " + within(m.DeviceActual, m.DeviceBudget)
	if m.DeviceActual == m.DevicePredicted {
		text += " as predicted"
	} else {
		text += fmt.Sprintf(", predicted %s", size(m.DevicePredicted))
	}
	text += ", host " + size(m.HostActual)
	if m.DiskActual > 0 {
		text += ", disk " + size(m.DiskActual)
	}
	return text
}

// summary says how fast it went and what memory it took, and fails if an input did.
func (r *reply) summary(x checkpointed, o gomem.Options) error {
	used := memoryUsed(r.usage, o)
	speed := float64(r.units) / max(r.busy.Seconds(), 1e-9)
	if r.json != nil {
		r.show(summaryLine{"summary", x.Path, x.Step, r.inputs, r.failed, r.unit, r.units,
			r.busy.Seconds(), speed, used, r.disk}, "")
	} else if r.inputs > 0 {
		fmt.Fprintf(r.e.stderr, "%s\n%s\n", strings.Join([]string{counted(r.units, r.unit),
			fmt.Sprintf("%s %ss/s", figures(speed), r.unit)}, ", "), used)
	}
	if r.failed > 0 {
		return errSome
	}
	return nil
}

// short says of a text that there was no room for as many tokens as were asked for, where
// the model did not end it before.
func (r *reply) short(q question[string], written, asked int, ended bool, length int) {
	if !ended && written < asked {
		fmt.Fprintf(r.e.stderr, "gomem: %s: there is room for %d of %d tokens, the model's "+
			"texts have at most %d\n", at(q.Input, q.Line), written, asked, length)
	}
}
