package main

import (
	"fmt"
	"io"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// The ladder's clusters: one of Parameter Flow's own, where links are alike, and one that is
// shared, where others' traffic leaves half of the nodes a fifth of their links half of the time.
const sharedEvery = 10 // clocks' computing

// thresholds are those of figures 12 to 14; 0 is BSP.
var thresholds = []int{0, 1, 2, 4, 8, 16}

func ladderWorld(shared bool) world {
	w := flowWorld(false)
	if !shared {
		return w
	}
	period := sharedEvery * flowCompute
	for at, k := period, 0; k < 4000; at, k = at+period, k+1 {
		bps := float64(flowBps)
		if k%2 == 0 {
			bps = throttledBps
		}
		for node := k % 4 / 2; node < flowNodes; node += 2 { // the even ones, then the odd ones
			w.net.Trace = append(w.net.Trace, memnet.Rate{At: at, Node: distrib.NodeID(node),
				Up: bps, Down: bps})
		}
	}
	return w
}

// ladder prints what Parameter Flow gains at each staleness (figures 12 to 14).
func ladder(t *testing.T, w io.Writer, quick bool) error {
	k, model := regression(quick)
	k.compute, k.slow = flowCompute, stragglers[2]
	fmt.Fprintf(w, "Regression, weights of %d kB, %d workers that compute %v a clock, one in ten "+
		"twice as slow, to a loss of %g. Every link has %.0f Mbit/s; shared, half of them have "+
		"%.0f for half of the time.\n\n", model/1000, flowNodes, flowCompute, k.target,
		flowBps/1e6, throttledBps/1e6)
	heading(w, "cluster", "system", "SSP 0", "SSP 1", "SSP 2", "SSP 4", "SSP 8", "SSP 16")
	for _, shared := range []bool{false, true} {
		where := map[bool]string{false: "dedicated", true: "shared"}[shared]
		if err := rungs(t, w, k, ladderWorld(shared), where, quick); err != nil {
			return err
		}
		if quick {
			break
		}
	}
	return nil
}

// rungs prints a row a system: seconds, and how many times fewer than push and pull in step.
func rungs(t *testing.T, w io.Writer, k task, net world, where string, quick bool) error {
	base, err := net.measure(t, pushPull(), k, k.rates[0])
	if err != nil {
		return err
	}
	row(w, where, "push-pull BSP", fmt.Sprintf("%.2f s", base.took.Seconds()), "", "", "", "", "")
	for _, system := range []struct {
		name string
		of   func(s int) scheme
	}{
		{"without a filter", func(s int) scheme { return ssp("", s) }},
		{"PF 0.01", func(s int) scheme { return flow(s, .01, 0, 0) }},
		{"PF 0.1", func(s int) scheme { return flow(s, .1, 0, 0) }},
		{"PF 0.01, slow links 0.1", func(s int) scheme { return flow(s, .01, .1, fastLink) }},
	} {
		cells := []string{where, system.name}
		for _, s := range thresholds {
			r, err := net.measure(t, system.of(s), k, k.rates[0])
			if err != nil {
				return err
			}
			cells = append(cells, rung(r, base))
			if quick {
				break
			}
		}
		row(w, cells...)
	}
	return nil
}

func rung(r, base result) string {
	if r.epochs == 0 {
		return "never"
	}
	return fmt.Sprintf("%.2f s (%.1fx)", r.took.Seconds(),
		base.took.Seconds()/r.took.Seconds())
}
