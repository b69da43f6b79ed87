package main

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/gomem/gomem/train"
)

// barDisplay keeps a bar with the progress at the bottom of a terminal, and
// prints everything else above it.
type barDisplay struct {
	lines   lineDisplay
	out     io.Writer // the terminal; lines go through the bar while there is one
	lasting io.Writer // where lines go without one
	options []mpb.ContainerOption
	bars    *mpb.Progress
	bar     *mpb.Bar
	text    atomic.Pointer[string] // the last step in numbers
}

func (d *barDisplay) observe(e train.Event) {
	switch e.Kind {
	case train.Start:
		d.lines.observe(e)
		d.open(e)
	case train.Warning:
		warn(d.lines.out, e) // standard error would draw into the bar
	case train.Step:
		d.lines.time(e)
		text := d.lines.progress(barFormat, e)
		d.text.Store(&text)
		d.bar.SetCurrent(int64(e.Step))
	default:
		d.lines.observe(e)
	}
}

// open starts the bar at the first step that is still to come. The bar is never
// complete by itself, since evaluations and checkpoints follow the last step.
func (d *barDisplay) open(e train.Event) {
	waiting := "first step"
	d.text.Store(&waiting)
	d.bars = mpb.New(append(d.options, mpb.WithOutput(d.out))...)
	d.bar = d.bars.AddBar(0, mpb.BarWidth(barWidth),
		mpb.PrependDecorators(decor.Any(func(s decor.Statistics) string {
			return fmt.Sprintf("step %d/%d ", s.Current, s.Total)
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			return " " + *d.text.Load()
		})),
	)
	d.bar.SetTotal(int64(e.Steps), false)
	d.bar.SetCurrent(int64(e.Step))
	d.lasting, d.lines.out = d.lines.out, d.bars
}

// barWidth is enough to see a bar move; the numbers matter more.
const barWidth = 24

func (d *barDisplay) close() {
	if d.bar == nil {
		return
	}
	d.bar.Abort(false)
	d.bars.Wait()
	d.bar, d.lines.out = nil, d.lasting
}

func (d *barDisplay) summary(s train.Summary) { d.lines.summary(s) }
