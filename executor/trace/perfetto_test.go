package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/gomem/gomem/executor/trace"
)

// entry is what a viewer reads.
type entry struct {
	Name, Ph, Cat, BP, S string
	TS                   float64
	Dur                  *float64
	PID, TID, ID         int
	Args                 map[string]any
}

func entries(t *testing.T, line trace.Timeline) []entry {
	t.Helper()
	var b bytes.Buffer
	if err := line.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []entry }
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatalf("%v in %s", err, &b)
	}
	return file.TraceEvents
}

// TestTimeline: names come first, all else by time; both ends of a flow lie in
// the slices that it connects.
func TestTimeline(t *testing.T) {
	const ms = time.Millisecond
	got := entries(t, trace.Timeline{Processes: []trace.Process{
		{Name: "predicted"},
		{
			Name: "measured",
			Lanes: []trace.Lane{
				{Name: "in", Slices: []trace.Slice{{Name: "w", Category: "stage", Start: 0,
					End: 2 * ms}}},
				{Name: "compute0", Slices: []trace.Slice{
					{Name: "x", Category: "matmul", Start: 3 * ms, End: 3 * ms},
					{Name: "y", Category: "add", Start: 4 * ms, End: 6 * ms}}},
			},
			Counters: []trace.Counter{{Name: "device", Points: []trace.Point{{0, 8}, {ms, 4}}}},
			Marks:    []trace.Mark{{Name: "step 1", At: 0}},
			Flows:    []trace.Flow{{From: trace.Place{}, To: trace.Place{Lane: 1, Slice: 1}}},
		},
	}})
	phases, last := "", 0.0
	for _, e := range got {
		phases += e.Ph
		if e.TS < last {
			t.Errorf("%+v comes after %v", e, last)
		}
		last = e.TS
		if e.Ph == "X" && e.Dur == nil {
			t.Errorf("%s has no duration", e.Name)
		}
	}
	if want := "MMMMMM" + "XiCCs" + "XXf"; phases != want {
		t.Errorf("phases %s, want %s", phases, want)
	}
	start, end := got[10], got[13]
	if start.ID != 1 || end.ID != 1 || start.TID != 1 || end.TID != 2 || start.TS != 1000 ||
		end.TS != 4000 || end.BP != "e" || start.PID != 2 {
		t.Errorf("flow from %+v to %+v", start, end)
	}
}

// TestRecorderJSON: one lane a stream, from the first event on; nothing is no
// error.
func TestRecorderJSON(t *testing.T) {
	var r trace.Recorder
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%v, %s", err, &b)
	}
	if err := r.WriteJSON(broken{}); !errors.Is(err, errBroken) {
		t.Errorf("a writer that fails: %v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
