// Package chart has what all drawings share: colours, a legend beside the plot, and
// canvases that have their fonts with them.
package chart

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Palette is Okabe and Ito's colours, which people with any sight can tell apart.
func Palette() []color.Color {
	return []color.Color{
		color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255},
		color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
		color.RGBA{213, 94, 0, 255}, color.RGBA{86, 180, 233, 255},
	}
}

// Canvas is something to draw on that can be written.
type Canvas interface {
	vg.CanvasSizer
	io.WriterTo
}

// Known reports whether there is a canvas for a file name's extension: .png or .svg.
func Known(ext string) bool { return ext == ".png" || ext == ".svg" }

// NewCanvas is one for an extension that is known, of a width and a height.
func NewCanvas(ext string, width, height vg.Length) Canvas {
	if ext == ".svg" {
		return vgsvg.NewWith(vgsvg.UseWH(width, height), vgsvg.EmbedFonts(true))
	}
	return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
}

// margin is around a plot, and between it and its legend.
const margin = 0.2 * vg.Centimeter

// Beside draws a plot with its legend to the right of it, in so much of the width: names
// are behind their colours, so that they do not overlap, whatever fonts a viewer has.
func Beside(p *plot.Plot, c draw.Canvas, width vg.Length) {
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max,
		{X: c.Min.X, Y: c.Max.Y}})
	c = draw.Crop(c, margin, -margin, margin, -margin)
	legend := p.Legend
	legend.Top, legend.Left, legend.Padding = true, true, vg.Points(3)
	p.Legend = plot.NewLegend()
	p.Draw(draw.Crop(c, 0, -width, 0, 0))
	legend.Draw(draw.Crop(c, c.Size().X-width+margin, 0, 0, -vg.Centimeter))
	p.Legend = legend
}
