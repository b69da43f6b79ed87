package train

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// aRun is what a run of 20 steps says.
func aRun(observe func(Event)) {
	observe(Event{Kind: Start, Steps: 20})
	for i := range 20 {
		observe(Event{Kind: Step, Step: i + 1, Steps: 20, Loss: 2.5, UnitsPerSecond: 1234,
			Unit: "token", StepTime: time.Second, DeviceBytes: 1 << 20,
			Metrics: map[string]float64{"accuracy": 0.25}})
	}
	observe(Event{Kind: Warning, Text: "the bits will differ"})
	observe(Event{Kind: Eval, Step: 20, Steps: 20, Loss: 1.25,
		Metrics: map[string]float64{"b": 2, "a": 1, "accuracy among 5": 0.5, "bleu": 0.125},
		Samples: []string{strings.Repeat("long ", 40) + "-> made", "short"}})
	observe(Event{Kind: Save, Step: 20, Steps: 20, Path: "run/x"})
	observe(Event{Kind: Stop, Step: 20, Steps: 20, Text: "ends early"})
	observe(Event{Kind: End})
}

// TestProgressFits: on a terminal of any width, and in a pipe, nothing is wider; what
// matters is there.
func TestProgressFits(t *testing.T) {
	for _, width := range []int{0, 40, 60, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var pipe bytes.Buffer
			s := newScreen(max(width, 1))
			if width == 0 {
				aRun(Show(&pipe))
			} else {
				aRun(Show(s))
			}
			text := pipe.String() + strings.TrimSpace(s.text()) + "\n"
			most := width
			if width == 0 {
				most = 80
			}
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(line) - 1; n > most {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			for _, want := range []string{"step 20/20", "loss 2.5000", "held-out loss 1.2500",
				"accuracy among 5 0.5000", "saved run/x", "short",
				"    -> made\n", "warning: the bits",
				"ends early"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

// TestProgressSkipsSteps: ten quick steps in a pipe get a line, and the first and the
// last.
func TestProgressSkipsSteps(t *testing.T) {
	var out bytes.Buffer
	aRun(Show(&out))
	var got []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, " loss 2.5") {
			got = append(got, strings.Fields(line)[1])
		}
	}
	if strings.Join(got, " ") != "1/20 11/20 20/20" {
		t.Errorf("lines of steps %v", got)
	}
}

func TestWrapped(t *testing.T) {
	for width, want := range map[int]string{
		80: "step 1  aaa  bbb  ccc", 16: "step 1  aaa  bbb\n  ccc",
		3: "step 1\n  aaa\n  bbb\n  ccc",
	} {
		if got := Wrapped(width, "step 1", []string{"aaa", "bbb", "ccc"}); got != want {
			t.Errorf("at %d columns %q, want %q", width, got, want)
		}
	}
}

func TestFolded(t *testing.T) {
	for width, want := range map[int]string{
		20: "one two  three", 9: "one two\nthree", 3: "one\ntwo\nthree",
	} {
		if got := Folded("one two  three", width); got != want {
			t.Errorf("at %d columns %q, want %q", width, got, want)
		}
	}
	if got := Folded("", 9) + Folded("word", 1); got != "word" {
		t.Errorf("nothing and a word are %q", got)
	}
}
