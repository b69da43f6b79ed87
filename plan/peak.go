package plan

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/plan/space"
)

// Holder is a value that holds memory.
type Holder struct {
	Value string `json:"value"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// Peak says what sets the peak of a space: the operation during which the most
// bytes are live, and the values that hold them.
type Peak struct {
	Bytes   int64    `json:"bytes"`          // the peak: the largest end of a slot
	Step    int      `json:"step"`           // index of the operation's step
	At      string   `json:"at"`             // the operation's node
	Live    int64    `json:"live_bytes"`     // live during it; the rest of Bytes is gaps
	Fixed   int64    `json:"variable_bytes"` // of these, variables and constants
	Values  int      `json:"values"`         // how many slots are live
	Largest []Holder `json:"largest"`
}

// Peak explains the peak of a space by its largest holders, at most the given
// number.
func (p *Plan) Peak(space space.ID, most int) Peak {
	out := Peak{Bytes: p.Spaces[space].Bytes, Live: -1}
	for i, live := range p.Timeline(space) {
		if _, launch := p.Steps[i].Do.(Launch); launch && live > out.Live {
			out.Step, out.At, out.Live = i, p.Steps[i].Name, live
		}
	}
	for _, s := range p.Slots {
		if s.Space != space || out.Step < s.From || out.Step > s.To {
			continue
		}
		if s.Fixed {
			out.Fixed += s.Bytes
		}
		out.Largest = append(out.Largest, Holder{s.Value, s.Type.String(), s.Bytes})
	}
	slices.SortStableFunc(out.Largest, func(a, b Holder) int {
		return cmp.Compare(b.Bytes, a.Bytes)
	})
	out.Values = len(out.Largest)
	out.Largest = out.Largest[:min(most, out.Values)]
	return out
}
