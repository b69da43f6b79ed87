package chart_test

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gomem/gomem/internal/chart"
)

// TestBeside: a plot keeps to its part of the picture, and its legend is to the right.
func TestBeside(t *testing.T) {
	p := plot.New()
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		t.Fatal(err)
	}
	line.Color = chart.Palette()[0]
	p.Add(line)
	p.Legend.Add("a line", line)
	for _, ext := range []string{".png", ".svg"} {
		if !chart.Known(ext) {
			t.Errorf("%s is not known", ext)
		}
		c := chart.NewCanvas(ext, 10*vg.Centimeter, 5*vg.Centimeter)
		chart.Beside(p, draw.New(c), 3*vg.Centimeter)
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if ext == ".svg" {
			if s := b.String(); !strings.Contains(s, ">a line</text>") {
				t.Error("the legend is not there")
			}
			continue
		}
		checkLegend(t, &b)
	}
	if chart.Known(".pdf") {
		t.Error(".pdf is known")
	}
}

// checkLegend demands the line's colour in both parts of a picture.
func checkLegend(t *testing.T, b *bytes.Buffer) {
	t.Helper()
	img, err := png.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	size := img.Bounds()
	seen := [2]bool{}
	for x := range size.Dx() {
		for y := range size.Dy() {
			if r, g, bl, _ := img.At(x, y).RGBA(); r>>8 == 0 && g>>8 == 114 && bl>>8 == 178 {
				seen[x*10/size.Dx()/7] = true
			}
		}
	}
	if !seen[0] || !seen[1] {
		t.Errorf("the line's colour is in the plot: %t, in the legend: %t", seen[0], seen[1])
	}
}
