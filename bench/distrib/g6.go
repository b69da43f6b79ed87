package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/memnet"
)

// The network of G6. Seven streams share a link of 100 Mbit/s, and one of 20: a stream
// that has less than fastLink is on the throttled one.
const (
	flowBps      = 100e6
	throttledBps = 20e6
	fastLink     = 7e6
	flowCompute  = 2500 * time.Microsecond
)

func flowWorld(throttle bool) world {
	o := memnet.Options{Bps: flowBps, Latency: 100 * time.Microsecond}
	if throttle {
		o.Trace = []memnet.Rate{{Node: flowNodes - 1, Up: throttledBps, Down: throttledBps}}
	}
	return world{flowNodes, o}
}

// throttled prints how soon Parameter Flow is done on slow networks.
func throttled(t *testing.T, w io.Writer, quick bool) error {
	k, model := regression(quick)
	k.compute = flowCompute
	fmt.Fprintf(w, "Regression, weights of %d kB, %d workers that compute %v a clock, to a loss "+
		"of %g. Every link has %.0f Mbit/s; throttled, one has %.0f.\n\n", model/1000, flowNodes,
		flowCompute, k.target, flowBps/1e6, throttledBps/1e6)
	heading(w, "scheme", "delta", "seconds", "clocks", "MB", "throttled: seconds", "clocks", "MB")
	line := func(s scheme, delta string) error {
		cells := []string{s.name, delta}
		for _, throttle := range []bool{false, true} {
			r, err := flowWorld(throttle).measure(t, s, k, k.rates[0])
			if err != nil {
				return err
			}
			if r.epochs == 0 {
				cells = append(cells, "never", "", "")
				continue
			}
			cells = append(cells, fmt.Sprintf("%.2f", r.took.Seconds()), fmt.Sprint(10*r.epochs),
				fmt.Sprintf("%.1f", float64(r.bytes)/1e6))
		}
		row(w, cells...)
		return nil
	}
	for _, s := range []scheme{pushPull(), ring(), ssp("SSP 3, eager", 3)} {
		if err := line(s, ""); err != nil {
			return err
		}
		if quick {
			break
		}
	}
	return throttledFlow(line, quick)
}

func throttledFlow(line func(scheme, string) error, quick bool) error {
	deltas := []float32{.01, .03, .1}
	if quick {
		deltas = deltas[:1]
	}
	for _, s := range []int{3, 0} {
		for _, d := range deltas {
			if err := line(flow(s, d, 0, 0), fmt.Sprint(d)); err != nil {
				return err
			}
		}
		for i, low := range deltas {
			for _, up := range deltas[i+1:] {
				delta := fmt.Sprintf("%g, slow links %g", low, up)
				if err := line(flow(s, low, up, fastLink), delta); err != nil {
					return err
				}
			}
		}
		if quick {
			break
		}
	}
	return nil
}
