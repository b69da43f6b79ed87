package profile

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTicks: the labels of an axis of any length are what they stand at, in the unit in which
// the length is said, and short.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := math.Pow(10, rapid.Float64Range(-6, 10).Draw(t, "magnitude"))
		s := scaleOf(width)
		if said := duration(width); said != s.say(width) || !strings.HasSuffix(said, " "+s.unit) {
			t.Errorf("%v ms are %s, the axis is in %s", width, said, s.unit)
		}
		labels := 0
		for _, tick := range s.Ticks(0, width) {
			if tick.IsMinor() {
				continue
			}
			labels++
			x, err := strconv.ParseFloat(tick.Label, 64)
			if err != nil || math.Abs(x/s.each-tick.Value) > 1e-5*width || len(tick.Label) > 8 {
				t.Errorf("of %v ms, %q is at %v ms", width, tick.Label, tick.Value)
			}
		}
		if labels < 2 {
			t.Errorf("%d labels of %v ms", labels, width)
		}
	})
}

// TestFigureUnit: a figure says all times in one unit, whichever clock is longer.
func TestFigureUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g, predicted := randomRun(t)
		measured := anyRun(t, p)
		for _, run := range []Run{predicted, measured} {
			slower := rapid.SampledFrom([]int{1, 1e3, 1e6, 1e11}).Draw(t, "slower")
			for i := range run {
				run[i].Start *= time.Duration(slower)
				run[i].End *= time.Duration(slower)
			}
		}
		x, err := New(Input{Plan: p, Graph: g, Predicted: predicted, Measured: []Run{measured}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := x.drawing()
		if err != nil {
			t.Fatal(err)
		}
		_, unit, _ := strings.Cut(d.panels[len(d.panels)-1].X.Label.Text, ", ")
		if title := d.panels[0].Title.Text; !strings.HasSuffix(title, " "+unit) {
			t.Errorf("%q over an axis in %s", title, unit)
		}
		for _, panel := range d.panels {
			if panel.X.Tick.Marker != scaleOf(panel.X.Max) {
				t.Errorf("ticks are %v, of %v ms", panel.X.Tick.Marker, panel.X.Max)
			}
		}
	})
}
