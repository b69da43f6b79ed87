package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// heading writes a title, what the table shows, and the head of a markdown table
// of which the first column is text and the others are numbers.
func heading(w io.Writer, title, text string, columns ...string) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n| %s |\n|---|%s\n", title, text, strings.Join(columns, " | "),
		strings.Repeat("---:|", len(columns)-1))
}

func row(w io.Writer, cells ...string) {
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// ms is seconds in milliseconds.
func ms(seconds float64) string { return fmt.Sprintf("%.1f", seconds*1e3) }

func mib(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }

// faster is a ratio, bold where gomem is the slower.
func faster(ratio float64) string {
	switch {
	case math.IsNaN(ratio):
		return "missing"
	case ratio < 1:
		return fmt.Sprintf("**%.2f**", ratio)
	default:
		return fmt.Sprintf("%.2f", ratio)
	}
}

func (r outcome) timeCells() []string {
	mine := r.rounds.Seconds(0)
	cells := []string{r.Kind, fmt.Sprint(r.threads), ms(gauge.Median(mine))}
	if r.missing != nil {
		return append(cells, fmt.Sprintf("missing (%v)", r.missing), "", "", "", "", "",
			fmt.Sprint(r.rounds.Disturbed()))
	}
	rival := r.rival()
	theirs := r.rounds.Seconds(rival)
	return append(cells, ms(gauge.Median(r.rounds.Seconds(1))), r.compiled(),
		faster(r.rounds.Ratio(rival, 0)), faster(slices.Min(theirs)/slices.Min(mine)),
		faster(r.rounds.WorkRatio(rival, 0)),
		fmt.Sprintf("%.0e, %.0e", r.agreement.first, r.agreement.last),
		fmt.Sprintf("%d of %d", r.rounds.Disturbed(), len(r.rounds)))
}

// rival is the side that ratios are to: the faster of PyTorch's.
func (r outcome) rival() int {
	if r.sides() > 2 && r.rounds.Ratio(2, 1) < 1 {
		return 2
	}
	return 1
}

// compiled is the time of PyTorch's compiler, if it is a side.
func (r outcome) compiled() string {
	if r.sides() < 3 {
		return "-"
	}
	return ms(gauge.Median(r.rounds.Seconds(2)))
}

func (r outcome) sides() int { return len(r.rounds[0].Times) }

// reportMemory writes a row for each model; the number of threads changes
// nothing.
func reportMemory(w io.Writer, all []outcome) {
	heading(w, "Memory", fmt.Sprintf("MiB. gomem's are the plan's, which a run matches to the "+
		"byte: with everything resident on the device, and under the thesis policy with "+
		"partitions of %d operations. PyTorch's are the bytes of its tensors: parameters, "+
		"optimizer state and the most that a step allocates besides, without what one operator "+
		"allocates and frees within itself.", partition),
		"model", "variables", "gomem", "PyTorch", "gomem / PyTorch", "thesis: device",
		"thesis: host")
	for i, r := range all {
		if slices.ContainsFunc(all[:i], func(o outcome) bool { return o.Kind == r.Kind }) {
			continue
		}
		cells := []string{r.Kind, mib(r.memory.variables), mib(r.memory.resident), "missing",
			"missing", mib(r.memory.device), mib(r.memory.host)}
		if r.missing == nil {
			cells[3] = mib(r.peer.total())
			cells[4] = fmt.Sprintf("%.2f", float64(r.memory.resident)/float64(r.peer.total()))
		}
		row(w, cells...)
	}
}

func reportProfiles(w io.Writer, all []outcome) {
	heading(w, "Time in kernels", "Of a traced step: the share of its time in which the compute "+
		"stream runs a kernel.",
		"model", "threads", "step ms", "kernels ms", "share")
	for _, r := range all {
		step, kernels := r.profile.step.Seconds(), r.profile.kernels.Seconds()
		row(w, r.Kind, fmt.Sprint(r.threads), ms(step), ms(kernels),
			fmt.Sprintf("%.3f", kernels/step))
	}
	for _, r := range all {
		r.reportProfile(w)
	}
}

// reportProfile writes the slowest operations of the two sides.
func (r outcome) reportProfile(w io.Writer) {
	plural := map[bool]string{true: "s"}[r.threads > 1]
	heading(w, fmt.Sprintf("%s, %d thread%s: where time goes", r.Kind, r.threads, plural),
		"gomem: operations by the sizes of their operands.",
		"operation", "calls", "ms", "of the step", "GFLOP/s", "GB/s")
	for _, g := range r.profile.groups[:min(top, len(r.profile.groups))] {
		t := g.took.Seconds()
		row(w, g.name, fmt.Sprint(g.calls), ms(t), fmt.Sprintf("%.3f", t/r.profile.step.Seconds()),
			fmt.Sprintf("%.0f", float64(g.cost.FLOPs)/t/1e9), fmt.Sprintf("%.1f",
				float64(g.cost.Bytes)/t/1e9))
	}
	if len(r.operators) == 0 {
		return
	}
	fmt.Fprint(w, "\nPyTorch, with what its profiler adds:\n\n| operator | calls | ms "+
		"|\n|---|---:|---:|\n")
	for _, o := range r.operators[:min(top, len(r.operators))] {
		row(w, o.Name+" "+o.Shapes, fmt.Sprint(o.Calls), ms(o.Seconds))
	}
}
