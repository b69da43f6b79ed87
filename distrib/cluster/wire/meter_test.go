package wire

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPace: a rate is that of the last seconds, however often it is asked for.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		if p.bps() != 0 {
			t.Fatal("a rate of nothing")
		}
		before := float64(rapid.IntRange(0, 1e9).Draw(t, "before"))
		now := float64(rapid.IntRange(1, 1e9).Draw(t, "now"))
		step := rapid.Float64Range(0.001, 0.1).Draw(t, "step")
		for _, bps := range []float64{before, now} {
			for s := 0.0; s < 100*recently; s += step {
				p.add(bps/8*step, step)
			}
		}
		if got := p.bps(); !(math.Abs(got-now) < 1+now*1e-6) {
			t.Fatalf("%v bits a second, lately %v", got, now)
		}
	})
}

// TestFalls: a way that was fast, or seemed so since something on it let the first bytes pass
// at once, is known as a slow one after two seconds of sending.
func TestFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		step := rapid.Float64Range(0.001, 0.05).Draw(t, "step")
		fast := rapid.Float64Range(0, 10).Draw(t, "fast")
		for s := 0.0; s < fast; s += step {
			p.add(100e6/8*step, step)
		}
		for s := 0.0; s < 2; s += step {
			p.add(1e6/8*step, step)
		}
		if got := p.bps(); got > 2e6 {
			t.Fatalf("%v bits a second", got)
		}
	})
}

// TestLeaving: without a socket, the rate is that of what left while there was something to
// send.
func TestLeaving(t *testing.T) {
	var m meter
	now := time.Unix(0, 0)
	for range 3 {
		m.begin(1000, now)
		m.begin(500, now)
		m.left(500, now.Add(time.Millisecond))
		if _, waits := m.rate(); waits != 1000 {
			t.Fatalf("%d bytes wait", waits)
		}
		m.left(1000, now.Add(3*time.Millisecond))
		now = now.Add(time.Hour)
	}
	if bps, waits := m.rate(); math.Abs(bps-8*1500/3e-3) > 1 || waits != 0 || m.sent() != 4500 {
		t.Errorf("%v bits a second, %d bytes wait, %d have left", bps, waits, m.sent())
	}
}
