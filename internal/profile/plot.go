package profile

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/gomem/gomem/plan"
)

// The sizes of a figure: its width, the height of a space and of a stream, and the
// room of the legend beside them.
const (
	across  = 24 * vg.Centimeter
	tall    = 6.5 * vg.Centimeter
	flat    = 0.8 * vg.Centimeter
	legends = 4.6 * vg.Centimeter
	margin  = 0.3 * vg.Centimeter
)

// colours are those of the categories: Okabe and Ito's, which people with any sight
// can tell apart.
var colours = [categories]color.RGBA{
	{0, 114, 178, 255}, {86, 180, 233, 255}, {170, 170, 170, 255}, {0, 158, 115, 255},
	{230, 159, 0, 255}, {204, 121, 167, 255}, {240, 228, 66, 255},
}

// The colours of steps.
var (
	computes = color.RGBA{0, 114, 178, 255}
	moves    = color.RGBA{213, 94, 0, 255}
	limit    = color.RGBA{200, 0, 0, 255}
)

// ErrNoTimes says that a figure needs a clock: a simulation, or a run.
var ErrNoTimes = errors.New("profile: there are no times to draw: nothing was run or simulated")

// drawing is the panels of a profile, one below the other.
type drawing struct {
	panels  []*plot.Plot
	heights []vg.Length
	legend  []plot.Legend
}

// WritePNG draws memory and streams over time.
func (p *Profile) WritePNG(w io.Writer) error {
	f, err := p.drawing()
	if err != nil {
		return err
	}
	c := vgimg.NewWith(vgimg.UseWH(across, f.height()), vgimg.UseDPI(120))
	f.draw(draw.New(c))
	_, err = vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// WriteSVG draws the same as SVG, which brings its font along.
func (p *Profile) WriteSVG(w io.Writer) error {
	f, err := p.drawing()
	if err != nil {
		return err
	}
	c := vgsvg.NewWith(vgsvg.UseWH(across, f.height()), vgsvg.EmbedFonts(true))
	f.draw(draw.New(c))
	_, err = c.WriteTo(w)
	return err
}

func (f drawing) height() vg.Length {
	total := 2 * margin
	for _, h := range f.heights {
		total += h
	}
	return total
}

// draw lays the panels out: all of the same width, their legends to the right.
func (f drawing) draw(c draw.Canvas) {
	c.FillPolygon(color.White, corners(c.Rectangle))
	top := c.Max.Y - margin
	left := f.left(c)
	for i, p := range f.panels {
		bottom := top - f.heights[i]
		own := left - f.inset(p, c, i)
		p.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: c.Min.X + margin + own, Y: bottom},
			Max: vg.Point{X: c.Max.X - legends, Y: top}}})
		f.legend[i].Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: c.Max.X - legends + margin, Y: bottom},
			Max: vg.Point{X: c.Max.X - margin, Y: top - 0.8*vg.Centimeter}}})
		top = bottom
	}
}

// left is the room that the widest labels of an axis take.
func (f drawing) left(c draw.Canvas) vg.Length {
	var widest vg.Length
	for i, p := range f.panels {
		widest = max(widest, f.inset(p, c, i))
	}
	return widest
}

// inset is how far from the left a panel's data begin.
func (f drawing) inset(p *plot.Plot, c draw.Canvas, i int) vg.Length {
	whole := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Max: vg.Point{X: across - legends, Y: f.heights[i]}}}
	return p.DataCanvas(whole).Min.X
}

// drawing makes the panels of the measured clock, or of the predicted one.
func (p *Profile) drawing() (drawing, error) {
	run, name := p.measured, "measured"
	if run == nil {
		run, name = p.predicted, "predicted"
	}
	if run == nil {
		return drawing{}, ErrNoTimes
	}
	var f drawing
	for i := range p.Report.Spaces {
		s := &p.Report.Spaces[i]
		if s.Bytes == 0 {
			continue
		}
		panel, legend, err := s.panel(name)
		if err != nil {
			return drawing{}, err
		}
		f.add(panel, legend, tall)
	}
	panel, legend := p.lanes(run)
	f.add(panel, legend, 2*vg.Centimeter+vg.Length(flat*vg.Length(len(p.plan.Streams))))
	width := 1e-6 // of steps that take no time
	for _, c := range []*Clock{p.Report.Predicted, p.Report.Measured} {
		if c != nil {
			width = max(width, c.StepMS)
		}
	}
	unit := scaleOf(width)
	for _, panel := range f.panels {
		panel.X.Min, panel.X.Max, panel.X.Tick.Marker = 0, width, unit
	}
	f.panels[0].Title.Text = fmt.Sprintf("%s %s: %s step of %s", p.Report.Model, p.Report.Size,
		name, unit.say(milliseconds(run.length())))
	f.panels[len(f.panels)-1].X.Label.Text = "time, " + unit.unit
	return f, nil
}

func (f *drawing) add(p *plot.Plot, l plot.Legend, height vg.Length) {
	f.panels, f.legend, f.heights = append(f.panels, p), append(f.legend, l),
		append(f.heights, height)
}

// panel draws a space: what holds it, stacked, by one clock; the other clock's total
// and the budget as lines.
func (s *Space) panel(by string) (*plot.Plot, plot.Legend, error) {
	p, legend := plot.New(), plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, vg.Points(2)
	shown := s.Measured
	if by == "predicted" {
		shown = s.Predicted
	}
	p.Y.Label.Text, p.Y.Min, p.Y.Max = s.Name+", MiB", 0, 1.08*mib(s.Bytes)
	if err := shown.stack(p, &legend); err != nil {
		return nil, legend, err
	}
	p.Add(plotter.NewGrid())
	if by == "measured" && s.Predicted != nil {
		line, err := plotter.NewLine(s.Predicted.outline())
		if err != nil {
			return nil, legend, err
		}
		line.Width = vg.Points(1)
		p.Add(line)
		legend.Add("predicted", line)
	}
	if err := s.limits(p, &legend, shown.StepMS); err != nil {
		return nil, legend, err
	}
	return p, legend, nil
}

// limits draws the peak, and the budget if it is near.
func (s *Space) limits(p *plot.Plot, legend *plot.Legend, width float64) error {
	for _, l := range []struct {
		name   string
		bytes  int64
		dashes []vg.Length
	}{
		{"peak " + size(s.Bytes), s.Bytes, []vg.Length{vg.Points(2), vg.Points(2)}},
		{"budget " + size(s.Budget), s.Budget, nil},
	} {
		if l.bytes <= 0 || mib(l.bytes) > float64(2*mib(s.Bytes)) {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: mib(l.bytes)},
			{X: width, Y: mib(l.bytes)}})
		if err != nil {
			return err
		}
		line.Color, line.Dashes = limit, l.dashes
		p.Y.Max = max(p.Y.Max, 1.08*mib(l.bytes))
		p.Add(line)
		legend.Add(l.name, line)
	}
	return nil
}

func mib(bytes int64) float64 { return float64(float64(bytes) / (1 << 20)) }

// stack draws the categories on top of each other. The legend has them in the order
// in which they lie.
func (t *Timeline) stack(p *plot.Plot, legend *plot.Legend) error {
	below := make([]int64, len(t.Bytes))
	type entry struct {
		name string
		area *plotter.Polygon
	}
	var entries []entry
	for _, c := range Categories() {
		bytes, ok := t.Categories[c]
		if !ok {
			continue
		}
		above := slices.Clone(below)
		for i, b := range bytes {
			above[i] += b
		}
		outline := t.steps(above)
		lower := t.steps(below)
		slices.Reverse(lower)
		area, err := plotter.NewPolygon(append(outline, lower...))
		if err != nil {
			return err
		}
		area.Color, area.LineStyle.Width = colours[c], 0
		p.Add(area)
		entries = append(entries, entry{c.String(), area})
		below = above
	}
	for _, e := range slices.Backward(entries) {
		legend.Add(e.name, e.area)
	}
	return nil
}

// outline is the total.
func (t *Timeline) outline() plotter.XYs { return t.steps(t.Bytes) }

// steps are the corners of a line that keeps its level over each part.
func (t *Timeline) steps(bytes []int64) plotter.XYs {
	out := make(plotter.XYs, 0, 2*len(bytes))
	width := t.StepMS / float64(len(bytes))
	for i, b := range bytes {
		out = append(out, plotter.XY{X: float64(i) * width, Y: mib(b)},
			plotter.XY{X: float64(i+1) * width, Y: mib(b)})
	}
	return out
}

// lanes draws when each stream was busy.
func (p *Profile) lanes(run Run) (*plot.Plot, plot.Legend) {
	out, legend := plot.New(), plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, vg.Points(2)
	names := make([]string, len(p.plan.Streams))
	bars := make([][]Span, len(p.plan.Streams))
	for i, s := range p.plan.Steps {
		bars[s.Stream] = append(bars[s.Stream], run[i])
	}
	operations, copies := band{colour: computes}, band{colour: moves}
	for i := range p.plan.Streams {
		// the first stream is at the top
		at := float64(len(names) - 1 - i)
		names[len(names)-1-i] = p.plan.Streams[i].Name
		b := band{y: at, spans: union(bars[i]).spans, colour: computes}
		if p.copying(plan.StreamID(i)) {
			b.colour = moves
		}
		out.Add(b)
	}
	out.NominalY(names...)
	out.Y.Min, out.Y.Max = -0.6, float64(len(names))-0.4
	legend.Add("operations", operations)
	legend.Add("copies", copies)
	return out, legend
}

// band is the times of a stream, as bars at a height.
type band struct {
	y      float64
	spans  []Span
	colour color.Color
}

// Plot draws the bars.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, s := range b.spans {
		from, to := x(milliseconds(s.Start)), x(milliseconds(s.End))
		to = vg.Length(math.Max(float64(to), float64(from+0.1)))
		c.FillPolygon(b.colour, corners(vg.Rectangle{Min: vg.Point{X: from, Y: y(b.y - 0.35)},
			Max: vg.Point{X: to, Y: y(b.y + 0.35)}}))
	}
}

// Thumbnail is the colour.
func (b band) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.colour, corners(c.Rectangle))
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}
