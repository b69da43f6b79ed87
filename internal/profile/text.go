package profile

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem/internal/grid"
)

// columns is how wide the text is.
const columns = 80

// listed is how many rows the tables of partitions and operations have.
const listed = 10

// WriteText writes the report for people, in 80 columns.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s parameters: %s, %s\n%s\n", r.Model, r.Size, grouped(r.Parameters),
		counted(r.Steps, "step"), counted(r.Partitions, "partition"), grid.Wrap(r.Plan, columns))
	r.writeTime(&b)
	for i := range r.Spaces {
		r.Spaces[i].write(&b)
	}
	r.writeCopies(&b)
	if n := r.Again.Count; n > 0 {
		fmt.Fprintf(&b, "%s again, to save memory: %s\n", counted(n, "operation"),
			r.Again.cost())
	}
	r.writeParts(&b)
	r.writeOps(&b)
	r.writeKinds(&b)
	if len(r.Advice) > 0 {
		fmt.Fprintf(&b, "\n%s\n", grid.Wrap(strings.Join(r.Advice, " "), columns))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// headed is a table with a header, if there is one.
func headed(header []string, right ...int) table.Writer {
	t := grid.New(right...)
	if header != nil {
		t.AppendHeader(grid.Row(header...))
	}
	return t
}

// writeTime says where the time of a step goes, by both clocks.
func (r *Report) writeTime(b *strings.Builder) {
	if r.clock() == nil {
		return
	}
	t := headed([]string{"time of a step", "predicted", "", "measured", ""}, 2, 3, 4, 5)
	line := func(name string, of func(*Clock) float64) {
		cells := []string{name}
		for _, c := range []*Clock{r.Predicted, r.Measured} {
			if c == nil {
				cells = append(cells, "-", "")
				continue
			}
			cells = append(cells, duration(of(c)), percent(of(c)/max(c.StepMS, 1e-9)))
		}
		t.AppendRow(grid.Row(cells...))
	}
	line("all", func(c *Clock) float64 { return c.StepMS })
	line("  operations run", func(c *Clock) float64 { return c.ComputeMS })
	line("    on the host alone", func(c *Clock) float64 { return c.HostMS })
	line("  copies alone", func(c *Clock) float64 { return c.ExposedMS })
	line("  nothing runs", func(c *Clock) float64 { return c.IdleMS })
	line("copies, hidden", func(c *Clock) float64 { return c.HiddenMS })
	for i, s := range r.clock().Streams {
		line("stream "+s.Name, func(c *Clock) float64 { return c.Streams[i].BusyMS })
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
	if r.Measured != nil {
		fmt.Fprintf(b, "Measured: the median of %s.\n", counted(r.Measured.Runs, "step"))
	}
}

// write writes what is in a space.
func (s *Space) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s memory: peak %s", s.Name, size(s.Bytes))
	if s.Budget > 0 {
		fmt.Fprintf(b, " of %s", size(s.Budget))
	}
	switch {
	case s.Used == s.Bytes && s.Used > 0:
		b.WriteString(", predicted = measured")
	case s.Used > 0:
		fmt.Fprintf(b, " predicted, %s measured", size(s.Used))
	}
	b.WriteByte('\n')
	for _, t := range []struct {
		name string
		line *Timeline
	}{{"predicted", s.Predicted}, {"measured", s.Measured}} {
		if t.line != nil {
			fmt.Fprintf(b, "%-9s %s %s\n", t.name, t.line.spark(58, s.Bytes),
				duration(t.line.StepMS))
		}
	}
	s.writePeak(b)
}

// spark draws a timeline in so many columns, full at a number of bytes.
func (t *Timeline) spark(columns int, full int64) string {
	const bars = " ▁▂▃▄▅▆▇█"
	levels := []rune(bars)
	var b strings.Builder
	for i := range columns {
		part := t.Bytes[i*len(t.Bytes)/columns : max(i*len(t.Bytes)/columns+1,
			(i+1)*len(t.Bytes)/columns)]
		most := slices.Max(part)
		level := 0
		if most > 0 {
			level = min(len(levels)-1, 1+int(float64(most)/float64(max(full, 1))*
				float64(len(levels)-2)))
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}

// writePeak writes who holds the peak.
func (s *Space) writePeak(b *strings.Builder) {
	p := s.Peak
	if p.Slots == 0 {
		return
	}
	at := ""
	if ms := cmp.Or(p.MeasuredMS, p.PredictedMS); ms != nil {
		at = ", at " + duration(*ms)
	}
	fmt.Fprintln(b, grid.Wrap(fmt.Sprintf("fullest at %s (step %d, partition %d%s): %s in %s "+
		"and %s of gaps", p.At, p.Step, p.Partition, at, size(p.Live), counted(p.Slots, "slot"),
		size(p.Gaps)), columns))
	var shares []string
	for _, c := range Categories() {
		if bytes := p.Categories[c]; bytes > 0 {
			shares = append(shares, fmt.Sprintf("%s %s", c, size(bytes)))
		}
	}
	fmt.Fprintln(b, grid.Wrap("of that "+strings.Join(shares, ", "), columns))
	t := headed(nil, 1)
	for _, h := range p.Largest {
		t.AppendRow(grid.Row(brief(h.Bytes), h.Category.String(), short(h.Value, 34),
			short(path.Base(h.Pos), 20)))
	}
	fmt.Fprintln(b, t.Render())
}

// writeCopies writes the traffic by reason.
func (r *Report) writeCopies(b *strings.Builder) {
	if len(r.Copies) == 0 {
		return
	}
	t := headed([]string{"copies for", "number", "bytes", "predicted", "hidden", "measured",
		"hidden"}, 2, 3, 4, 5, 6, 7)
	for _, c := range r.Copies {
		cells := []string{c.Reason, grouped(int64(c.Count)), brief(c.Bytes)}
		for _, x := range []*Times{c.Predicted, c.Measured} {
			if x == nil {
				cells = append(cells, "-", "-")
				continue
			}
			hidden := "-"
			if x.MS > 0 {
				hidden = percent(x.HiddenMS / x.MS)
			}
			cells = append(cells, duration(x.MS), hidden)
		}
		t.AppendRow(grid.Row(cells...))
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
}

// cost is what computing once more takes.
func (a Again) cost() string {
	if ms := cmp.Or(a.MeasuredMS, a.PredictedMS); ms != nil {
		return duration(*ms)
	}
	return grouped(a.FLOPs) + " FLOPs"
}

// writeParts writes the partitions that take longest, or move most.
func (r *Report) writeParts(b *strings.Builder) {
	parts := slices.Clone(r.Parts)
	slices.SortStableFunc(parts, func(x, y Part) int {
		return cmp.Or(cmp.Compare(y.compute(), x.compute()), cmp.Compare(y.In+y.Out, x.In+x.Out))
	})
	if len(parts) > listed {
		parts = parts[:listed]
	}
	t := headed([]string{"partition", "steps", "ops", "in", "out", "device", "computes",
		"waits"}, 1, 2, 3, 4, 5, 6, 7, 8)
	for _, p := range parts {
		cells := []string{fmt.Sprint(p.Part), fmt.Sprintf("%d-%d", p.First, p.Last),
			fmt.Sprint(p.Operations), brief(p.In), brief(p.Out), brief(p.Device), "-", "-"}
		if x := cmp.Or(p.Measured, p.Predicted); x != nil {
			cells[6], cells[7] = duration(x.ComputeMS), duration(x.ExposedMS)
		}
		t.AppendRow(grid.Row(cells...))
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
	if len(parts) < len(r.Parts) {
		fmt.Fprintf(b, "The slowest of %s.\n", counted(len(r.Parts), "partition"))
	}
}

// compute is how long a partition's operations take.
func (p Part) compute() float64 {
	if x := cmp.Or(p.Measured, p.Predicted); x != nil {
		return x.ComputeMS
	}
	return 0
}

// writeOps writes the slowest executions.
func (r *Report) writeOps(b *strings.Builder) {
	if len(r.Ops) == 0 {
		return
	}
	t := headed([]string{"slowest operations", "step", "time", "GFLOP/s", "of peak", "line"},
		2, 3, 4, 5)
	for _, o := range r.Ops[:min(listed, len(r.Ops))] {
		t.AppendRow(grid.Row(short(o.Name+" "+o.Op, 26), fmt.Sprint(o.Step), duration(o.ms()),
			figure(o.GFLOPS), r.ofPeak(o.GFLOPS), short(path.Base(o.Pos), 17)))
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
}

// peak is the machine's best: of a large matrix product, or of what was faster here, since the
// machine may have had something else to do when that was measured.
func (r *Report) peak() float64 {
	peak := r.Machine.PeakGFLOPS
	if peak <= 0 {
		return 0
	}
	for _, o := range r.Ops {
		peak = max(peak, o.GFLOPS)
	}
	for _, k := range r.Kinds {
		peak = max(peak, k.GFLOPS)
	}
	return peak
}

// ofPeak is a speed as a part of the machine's best.
func (r *Report) ofPeak(gflops float64) string {
	if r.peak() <= 0 {
		return "-"
	}
	return percent(gflops / r.peak())
}

// writeKinds writes the operations that take longest, all executions together.
func (r *Report) writeKinds(b *strings.Builder) {
	if len(r.Kinds) == 0 || r.clock() == nil {
		return
	}
	t := headed([]string{"operation", "number", "predicted", "measured", "of step", "GFLOP/s",
		"of peak"}, 2, 3, 4, 5, 6, 7)
	for _, k := range r.Kinds[:min(listed, len(r.Kinds))] {
		cells := []string{short(k.Op, 24), grouped(int64(k.Count)), "-", "-",
			percent(k.ms() / max(r.clock().StepMS, 1e-9)), figure(k.GFLOPS), r.ofPeak(k.GFLOPS)}
		for i, ms := range []*float64{k.PredictedMS, k.MeasuredMS} {
			if ms != nil {
				cells[2+i] = duration(*ms)
			}
		}
		t.AppendRow(grid.Row(cells...))
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
	if m := r.Machine; m.PeakGFLOPS > 0 {
		of := "in a large matrix product"
		if r.peak() > m.PeakGFLOPS {
			of = "here; a large matrix product was slower when it was measured"
		}
		fmt.Fprintln(b, grid.Wrap(fmt.Sprintf("Peak: %s GFLOP/s, of %s %s; "+
			"it copies %s GB/s to the device and %s GB/s from it.", figure(r.peak()), m.Name, of,
			figure(m.InGBps), figure(m.OutGBps)), columns))
	}
}
