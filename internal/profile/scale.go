package profile

import (
	"strconv"

	"gonum.org/v1/plot"
)

// scale is a unit of time, and how many of it a millisecond has.
type scale struct {
	unit string
	each float64
}

// scaleOf is the unit in which people would say so many milliseconds.
func scaleOf(ms float64) scale {
	switch {
	case ms >= 1e3:
		return scale{"s", 1e-3}
	case ms >= 1 || ms == 0:
		return scale{"ms", 1}
	}
	return scale{"µs", 1e3}
}

// say prints milliseconds in the unit, with three figures.
func (s scale) say(ms float64) string { return figure(ms*s.each) + " " + s.unit }

// Ticks are at round numbers of the unit, on an axis of milliseconds.
func (s scale) Ticks(from, to float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(from*s.each, to*s.each)
	for i := range ticks {
		t := &ticks[i]
		if !t.IsMinor() {
			t.Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
		}
		t.Value /= s.each
	}
	return ticks
}
