package profile

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// TestMatch: patterns are regular expressions in other words.
func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/*?]{0,6}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab/]{0,8}`).Draw(t, "text")
		like := strings.NewReplacer("*", ".*", "?", ".").Replace(pattern)
		want := regexp.MustCompile("^" + like + "$").MatchString(text)
		if got := match(pattern, text); got != want {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
	})
}

// TestQuery: each condition selects what it says.
func TestQuery(t *testing.T) {
	p := &plan.Plan{
		Slots: []plan.Slot{{Value: "w"}, {Value: "a/x"}, {Value: "scratch of a/y"}},
		Steps: []plan.Step{
			{Name: "w", Part: 0, Do: plan.Copy{Src: plan.Ref{Slot: 0}, Dst: plan.Ref{Slot: 0},
				Why: space.Stage}},
			{Name: "a/x", Part: 1, Do: plan.Launch{Op: "matmul", In: []plan.Ref{{Slot: 0}},
				Out: []plan.Ref{{Slot: 1}}, Scratch: plan.NoSlot}},
			{Name: "b", Part: 2, Do: plan.Launch{Op: "matmul+add", In: []plan.Ref{{Slot: 1}},
				Out: []plan.Ref{{Slot: 1}}, Scratch: 2}},
		},
	}
	for text, want := range map[string]string{
		"value=w": "01", "value=a/*": "12", "value=*": "012", "value=a/y": "2",
		"value=scratch of a/y": "2", "op=matmul": "1", "op=matmul*": "12", "op=stage": "0",
		"part=1": "1", "part=1-2": "12", "part=1-": "12", "part=0-0": "0", "step=2": "2",
		"step=0-1, op=matmul": "1", "value=w,op=stage,part=0,step=0-9": "0", "value=none": "",
	} {
		q, err := ParseQuery(text)
		got := ""
		for i := range p.Steps {
			if q.Selects(p, nil, i) {
				got += string(rune('0' + i))
			}
		}
		if err != nil || got != want {
			t.Errorf("%s selects %q, %v; want %q", text, got, err, want)
		}
	}
	if !(Query{}).Selects(p, nil, 2) {
		t.Error("no condition selects nothing")
	}
}

// TestQueryTime: the steps of a time are those that are done at any moment of it, moment by
// moment.
func TestQueryTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _, run := randomRun(t)
		from := rapid.IntRange(0, int(run.length())+2).Draw(t, "from")
		to := from + rapid.IntRange(0, 9).Draw(t, "for")
		for text, last := range map[string]int{
			fmt.Sprintf("time=0.%06d-0.%06d", from, to): to,
			fmt.Sprintf("time=0.%06d", from):            from,
			fmt.Sprintf("time=0.%06d-", from):           int(run.length()),
		} {
			q, err := ParseQuery(text)
			if err != nil || !q.Timed() {
				t.Fatalf("%s: %v, timed %v", text, err, q.Timed())
			}
			for i, s := range run {
				want := false
				for at := time.Duration(from); at <= time.Duration(last); at++ {
					want = want || s.Start <= at && at <= s.End
				}
				if q.Selects(p, run, i) != want {
					t.Errorf("%s of a step during %v: %v", text, s, !want)
				}
			}
		}
	})
}

// TestBadQuery: what is no query is an error that shows it.
func TestBadQuery(t *testing.T) {
	for text, says := range map[string]string{
		"": "want conditions", "value": "want conditions", "value=": "want conditions",
		"op=a,": "want conditions", "when=3": "want value, op, part, step or time",
		"part=x": `part="x"`, "part=5-3": "a range such as", "part=-3": "a number",
		"step=1-2-3": `step="1-2-3"`, "step=99999999999": "a number", "op=a,op=b": "twice",
		"time=x": `time="x": want milliseconds`, "time=3-1": "1.5-3", "time=-1": "milliseconds",
		"time=1-2-3": "milliseconds", "time=1e3": "milliseconds", "time=NaN": "milliseconds",
		"time=.": "milliseconds", "time=2ms": "milliseconds", "time=1,time=2": "twice",
		"time=99999999999999": "milliseconds",
	} {
		if _, err := ParseQuery(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
