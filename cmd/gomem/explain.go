package main

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
)

// holder is a value that holds memory.
type holder struct {
	Value string `json:"value"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// peak says what sets the peak of a space: the moment of a step at which most
// bytes are live, and the values that hold them.
type peak struct {
	Bytes   int64    `json:"bytes"` // the peak: the largest address in use
	Step    int      `json:"step"`  // index in the plan
	At      string   `json:"at"`    // what the step is done for
	Live    int64    `json:"live_bytes"`
	Fixed   int64    `json:"variable_bytes"` // of these, variables and constants that live here
	Values  int      `json:"values"`         // how many values are live
	Largest []holder `json:"largest"`
}

// findPeak explains the peak of a space by its largest holders, at most the
// given number.
func findPeak(p *plan.Plan, space pass.SpaceID, most int) peak {
	timeline := p.Timeline(plan.SpaceID(space))
	if len(timeline) == 0 {
		return peak{}
	}
	step := slices.Index(timeline, slices.Max(timeline))
	out := peak{Bytes: p.Spaces[space].Bytes, Step: step, At: p.Steps[step].Name, Live: timeline[step]}
	var live []holder
	for _, s := range p.Slots {
		if s.Space != plan.SpaceID(space) || step < s.From || step > s.To {
			continue
		}
		if s.Fixed {
			out.Fixed += s.Bytes
		}
		live = append(live, holder{s.Value, s.Type.String(), s.Bytes})
	}
	slices.SortStableFunc(live, func(a, b holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	out.Values, out.Largest = len(live), live[:min(most, len(live))]
	return out
}
