package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
)

// revised is AdaRevision, bulk-synchronous.
func revised(alpha float64) scheme {
	return engine("AdaRevision", func() distrib.Plan {
		return distrib.Plan{Rule: &distrib.AdaRevision{Alpha: float32(alpha)}}
	})
}

// revision prints how much AdaRevision depends on its step size, beside plain steps.
func revision(t *testing.T, w io.Writer, quick bool) error {
	m := ratings(quick, 20)
	plain := taskOf(m, time.Second, []float64{.0075, .01, .015, .02, .03, .04, .06})
	sums := *m
	sums.Gradients = true
	adaptive := taskOf(&sums, time.Second, []float64{.05, .1, .15, .175, .2,
		.25, .3, .4, .5, .6, .75, .875, 1})
	if quick {
		plain.rates, adaptive.rates = plain.rates[:1], adaptive.rates[:1]
	}
	place := world{mfNodes, perSecond(4*mfRank*mfCols, 64*time.Millisecond)}
	fmt.Fprintf(w, "Factorisation, %d bulk-synchronous workers, one clock an epoch, to a squared "+
		"error of %g.\n\n", mfNodes, plain.target)
	heading(w, "rule", "step size", "epochs", "seconds", "MB")
	for _, rate := range plain.rates {
		r, err := place.measure(t, ssp("BSP", 0), plain, rate)
		if err != nil {
			return err
		}
		row(w, append([]string{"plain steps"}, r.cells()...)...)
	}
	for _, rate := range adaptive.rates {
		r, err := place.measure(t, revised(rate), adaptive, rate)
		if err != nil {
			return err
		}
		row(w, append([]string{"AdaRevision"}, r.cells()...)...)
	}
	return nil
}
