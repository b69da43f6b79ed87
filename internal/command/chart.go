package command

import (
	"image/color"
	"io"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gomem/gomem/internal/chart"
)

// The size of a picture.
const chartWidth, chartHeight = 18 * vg.Centimeter, 9 * vg.Centimeter

// series is a line of a chart.
type series struct {
	name   string
	colour color.Color
	y      func(point) float64
}

const mib = 1 << 20

// plot draws the curve into a file: the time of a step above the
// memories and the copies. The name says the format.
func (x curve) plot(path string) error {
	colours := chart.Palette()
	blue, orange, green, pink := colours[0], colours[1], colours[2], colours[3]
	var charts [][]*plot.Plot
	add := func(y string, lines ...series) error {
		p, err := x.chart(y, lines)
		charts = append(charts, []*plot.Plot{p})
		return err
	}
	if err := add("time of a step, of vanilla's",
		series{"predicted for " + x.Machine, blue, func(p point) float64 { return p.Slower }},
		series{"no plan is shorter", pink, func(p point) float64 {
			return p.LowerBoundMS / max(x.VanillaMS, 1e-9)
		}},
	); err != nil {
		return err
	}
	if err := add("MiB",
		series{"device peak", orange, func(p point) float64 { return float64(p.Device) / mib }},
		series{"host peak", green, func(p point) float64 { return float64(p.Host) / mib }},
		series{"copied a step", pink, func(p point) float64 { return float64(p.Copied) / mib }},
	); err != nil {
		return err
	}
	charts[0][0].Title.Text = x.Model + " " + x.Size + ": what a device budget costs"
	charts[len(charts)-1][0].X.Label.Text = "device budget, MiB"
	return drawCharts(path, charts)
}

// chart is lines over budgets, with room for the legend above them.
func (x curve) chart(y string, lines []series) (*plot.Plot, error) {
	p := plot.New()
	p.Y.Label.Text, p.Legend.Top = y, true
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	for _, s := range lines {
		var xys plotter.XYs
		for _, q := range x.Points {
			xys = append(xys, plotter.XY{X: float64(q.Budget) / mib, Y: s.y(q)})
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = s.colour, vg.Points(1.5)
		dots.Color, dots.Shape = s.colour, draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(s.name, line, dots)
	}
	p.X.Min, p.Y.Min = 0, 0
	p.X.Max *= 1.02
	p.Y.Max *= 1 + 0.12*float64(len(lines))
	return p, nil
}

// drawCharts draws charts below each other into a file.
func drawCharts(path string, charts [][]*plot.Plot) error {
	canvas := chart.NewCanvas(filepath.Ext(path), chartWidth, chartHeight*vg.Length(len(charts)))
	tiles := draw.Tiles{Rows: len(charts), Cols: 1, PadTop: vg.Points(6), PadBottom: vg.Points(6),
		PadLeft: vg.Points(6), PadRight: vg.Points(12), PadY: vg.Points(10)}
	for i, row := range plot.Align(charts, tiles, draw.New(canvas)) {
		charts[i][0].Draw(row[0])
	}
	return writeFile(path, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}
