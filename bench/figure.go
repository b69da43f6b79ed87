package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gomem/gomem/internal/chart"
)

// figure is panels below each other.
type figure struct{ panels []panel }

// panel is times over less and less memory.
type panel struct {
	title string
	lines []line
}

// line is a model's times of a step, of vanilla's, by how much less memory there is, in
// percent.
type line struct {
	name  string
	xys   plotter.XYs
	faint bool // it is what the line before it is compared with
}

// add adds a time, if there is one.
func (l *line) add(less, ratio float64) {
	if ratio > 0 {
		l.xys = append(l.xys, plotter.XY{X: less, Y: ratio})
	}
}

func (p *panel) add(lines ...line) { p.lines = append(p.lines, lines...) }

// The size of a panel, with room for the legend beside it, and the longest time that it
// shows, of vanilla's: longer ones would hide how the others differ.
const (
	panelWidth, panelHeight = 22 * vg.Centimeter, 9 * vg.Centimeter
	legendWidth             = 4.5 * vg.Centimeter
	longestTime             = 4
)

// save draws the figure into a file, if there is one.
func (f figure) save(path string) error {
	if path == "" {
		return nil
	}
	c := chart.NewCanvas(filepath.Ext(path), panelWidth, panelHeight*vg.Length(len(f.panels)))
	tiles := draw.Tiles{Rows: len(f.panels), Cols: 1}
	for i, p := range f.panels {
		drawn, err := p.plot()
		if err != nil {
			return err
		}
		chart.Beside(drawn, tiles.At(draw.New(c), 0, i), legendWidth)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(out)
	return errors.Join(err, out.Close())
}

// plot is the lines of a panel.
func (p panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.X.Label.Text = p.title, "less device memory than vanilla, %"
	out.Y.Label.Text = "time of a step, of vanilla's"
	out.Add(plotter.NewGrid())
	palette, colour := chart.Palette(), -1
	for _, l := range p.lines {
		if !l.faint {
			colour++
		}
		if len(l.xys) == 0 {
			continue
		}
		drawn, dots, err := plotter.NewLinePoints(l.xys)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width = palette[colour%len(palette)], vg.Points(1.5)
		dots.Color, dots.Shape = drawn.Color, draw.CircleGlyph{}
		if l.faint {
			drawn.Dashes, dots.Shape = []vg.Length{vg.Points(3), vg.Points(3)}, draw.CrossGlyph{}
		}
		out.Add(drawn, dots)
		out.Legend.Add(l.name, drawn, dots)
	}
	out.X.Min, out.X.Max, out.Y.Min = 25, 100, 0
	out.Y.Max = min(out.Y.Max*1.05, longestTime)
	out.X.Tick.Marker = marks(25, 100, 5, "%.0f")
	out.Y.Tick.Marker = marks(0, longestTime, 0.5, "%.1f")
	return out, nil
}

// marks are the marks of an axis, all with a label.
func marks(from, to, step float64, format string) plot.ConstantTicks {
	var list plot.ConstantTicks
	for x := from; x <= to; x += step {
		list = append(list, plot.Tick{Value: x, Label: fmt.Sprintf(format, x)})
	}
	return list
}
