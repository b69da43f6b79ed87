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
