package thesis

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gomem/gomem/internal/chart"
)

// nan stands for a number that does not exist.
var nan = math.NaN()

// figure is lines, or groups of bars with labels.
type figure struct {
	file, title, x, y string
	bars              bool
	labels            []string
	series            []series
}

// series is a line, or the bars of one colour.
type series struct {
	name string
	x, y []float64
}

// The size of a figure, of the room for the legend beside it, and of a bar.
const (
	across, down = 25 * vg.Centimeter, 12 * vg.Centimeter
	beside       = 4 * vg.Centimeter
	barWidth     = 0.6 * vg.Centimeter
)

// draw writes the figures of a table as PNG and SVG, if any are wanted.
func (r *runner) draw(t Table) error {
	if r.Plots == "" || len(t.figures) == 0 {
		return nil
	}
	for _, f := range t.figures {
		p, err := f.plot()
		if err != nil {
			return err
		}
		for _, ext := range []string{".png", ".svg"} {
			c := chart.NewCanvas(ext, across, down)
			chart.Beside(p, draw.New(c), beside)
			if err := save(filepath.Join(r.Plots, f.file+ext), c); err != nil {
				return err
			}
		}
	}
	return nil
}

// save writes a figure.
func save(path string, c io.WriterTo) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(f)
	return errors.Join(err, f.Close())
}

func (f figure) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, f.y
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	if f.bars {
		p.NominalX(f.labels...)
	}
	defer f.roomy(p)
	for i, s := range f.series {
		if err := f.add(p, i, s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// roomy leaves room above, and for half a group of bars at the sides.
func (f figure) roomy(p *plot.Plot) {
	p.Y.Max *= 1.08
	if f.bars {
		p.X.Min, p.X.Max = -0.7, float64(len(f.labels))-0.3
	}
}

// add draws a series.
func (f figure) add(p *plot.Plot, i int, s series) error {
	palette := chart.Palette()
	colour := palette[i%len(palette)]
	if f.bars {
		bars, err := plotter.NewBarChart(plotter.Values(s.y), barWidth)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = colour, 0
		bars.Offset = barWidth * vg.Length(float64(i)-float64(len(f.series)-1)/2)
		p.Add(bars)
		p.Legend.Add(s.name, bars)
		return nil
	}
	xys := make(plotter.XYs, len(s.x))
	for k := range s.x {
		xys[k] = plotter.XY{X: s.x[k], Y: s.y[k]}
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour, vg.Points(1.5)
	p.Add(line)
	p.Legend.Add(s.name, line)
	return nil
}
