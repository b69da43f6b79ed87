package profile

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDifferenceSign: what is named as the reason of a difference has its sign; no part of the
// step explains it better; the parts of which one is named add up to all of it.
func TestDifferenceSign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g, predicted := randomRun(t)
		x, err := New(Input{Plan: p, Graph: g, Predicted: predicted,
			Measured: []Run{anyRun(t, p), anyRun(t, p), anyRun(t, p)}})
		if err != nil {
			t.Fatal(err)
		}
		r := &x.Report
		d := x.differ(r.Predicted, r.Measured)
		total := 0.0
		for _, part := range partsOf(r.Predicted, r.Measured) {
			total += part.by()
			if part.by()*math.Copysign(1, d.whole.by()) > math.Abs(d.part.by()) {
				t.Errorf("%v explains %v better than %v", part, d.whole, d.part)
			}
		}
		if math.Abs(total-d.whole.by()) > 1e-9 {
			t.Errorf("the parts differ by %v, the step by %v", total, d.whole.by())
		}
		if d.part.by()*d.whole.by() < 0 || d.kind.by()*d.whole.by() < 0 {
			t.Errorf("%v is explained by %v and %v", d.whole, d.part, d.kind)
		}
	})
}

// TestKindsOfTheRun: what kinds of operations took is what the run took whose parts a report
// has, not what several runs took together.
func TestKindsOfTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g, _ := randomRun(t)
		x, err := New(Input{Plan: p, Graph: g, Measured: []Run{anyRun(t, p), anyRun(t, p),
			anyRun(t, p), anyRun(t, p)}})
		if err != nil {
			t.Fatal(err)
		}
		kinds, streams := 0.0, 0.0
		for _, k := range x.Report.Kinds {
			kinds += known(k.MeasuredMS)
		}
		for i, s := range x.Report.Measured.Streams {
			if !p.Streams[i].Engine.Copies() {
				streams += s.BusyMS
			}
		}
		if math.Abs(kinds-streams) > 1e-9 {
			t.Errorf("kinds take %v ms, the streams that run them %v", kinds, streams)
		}
	})
}

// TestDifferenceSays: nothing that was faster is a reason for being slower, and what waits for
// the host is not called slow operations of the device.
func TestDifferenceSays(t *testing.T) {
	slower := difference{whole: gap{"the step", 74.2, 56.5}, part: gap{"copies", 62, 50}}
	for want, d := range map[string]difference{
		"The step took 74.2 ms; 56.5 ms were predicted (+31 %): most of the difference is " +
			"copies, 62 ms measured and 50 ms predicted.": slower,
		"The step took 74.2 ms; 74 ms were predicted (+0 %).": {whole: gap{"the step", 74.2, 74},
			part: gap{"copies", 9, 8}},
		"The step took 50 ms; 100 ms were predicted (-50 %): the largest part of the difference " +
			"is copies, 30 ms measured and 50 ms predicted; first matmul, 1 ms measured and " +
			"20 ms predicted.": {whole: gap{"the step", 50, 100}, part: gap{"copies", 30, 50},
			kind: gap{"matmul", 1, 20}},
	} {
		if got := d.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	parts := partsOf(&Clock{StepMS: 5, ComputeMS: 5},
		&Clock{StepMS: 7, ComputeMS: 7, HostMS: 1.5, ExposedMS: 0})
	if got := (gap{"", 7, 5}).foremost(parts); !strings.Contains(got.name, "host alone") {
		t.Errorf("%v is named, not the host", got)
	}
	kinds := []gap{{"matmul", 20, 30}, {"add", 5, 4}}
	if got := (gap{"", 7, 5}).foremost(kinds); got.name != "add" {
		t.Errorf("%v is named, which was faster", got)
	}
}
