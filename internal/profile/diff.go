package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// Diff is what differs between two plans, A and B, as gomem diff --json prints it.
// Sizes are bytes; lists leave out what is the same.
type Diff struct {
	Type      string       `json:"type"` // "diff"
	Same      bool         `json:"same"` // their texts are: nothing differs
	SameGraph bool         `json:"same_graph"`
	A         Side         `json:"a"`
	B         Side         `json:"b"`
	Spaces    []SpaceDiff  `json:"spaces"` // all
	Copies    []CopyDiff   `json:"copies"`
	Ops       []OpDiff     `json:"operations"`
	Values    []ValueDiff  `json:"values"` // by what they are now, the largest first
	Fetches   []FetchDiff  `json:"fetches"`
	Reordered bool         `json:"fetches_reordered"` // the same ones
	Moved     int          `json:"moved_slots"`
	Streams   []StreamDiff `json:"streams"`
}

// Side is one of the plans.
type Side struct {
	Plan       string `json:"plan"` // its title
	Steps      int    `json:"steps"`
	Operations int    `json:"operations"`
	Partitions int    `json:"partitions"`
	Slots      int    `json:"slots"`
}

// SpaceDiff is a space in both plans. A budget of 0 is none.
type SpaceDiff struct {
	Name    string `json:"name"`
	ABytes  int64  `json:"a_bytes"`
	BBytes  int64  `json:"b_bytes"`
	ABudget int64  `json:"a_budget"`
	BBudget int64  `json:"b_budget"`
	AAt     string `json:"a_peak_at"` // the operation during which most is live
	BAt     string `json:"b_peak_at"`
}

// CopyDiff is the copies of a reason in both plans.
type CopyDiff struct {
	Reason string `json:"reason"`
	ACount int    `json:"a_count"`
	BCount int    `json:"b_count"`
	ABytes int64  `json:"a_bytes"`
	BBytes int64  `json:"b_bytes"`
}

// OpDiff is how often an operation runs in both plans.
type OpDiff struct {
	Op     string `json:"op"`
	ACount int    `json:"a_count"`
	BCount int    `json:"b_count"`
}

// FetchDiff is how often a value is fetched in both plans.
type FetchDiff struct {
	Value  string `json:"value"`
	Type   string `json:"type"`
	ACount int    `json:"a_count"`
	BCount int    `json:"b_count"`
}

// StreamDiff is how many steps a stream has in both plans.
type StreamDiff struct {
	Name   string `json:"name"`
	ASteps int    `json:"a_steps"`
	BSteps int    `json:"b_steps"`
}

// ValueDiff is what became of a value, or of all results of a node that has several.
type ValueDiff struct {
	Value  string `json:"value"`
	Change string `json:"change"` // one of the changes
	Bytes  int64  `json:"bytes"`
	A      int    `json:"a"` // how often, in the one plan: swapped out, staged, run
	B      int    `json:"b"`
}

// The changes of a value from A to B.
const (
	Leaves     = "leaves the device"          // is swapped out, or more often
	Remains    = "remains on the device"      // is no longer swapped out, or less often
	Recomputes = "is computed more often"     // than once
	Keeps      = "is computed less often"     //
	Appears    = "is computed in B only"      //
	Disappears = "is computed in A only"      //
	Stages     = "is staged more often"       // a variable or constant
	Unstages   = "is staged less often"       //
	Rehomes    = "is bound in another memory" // A and B are the numbers of the spaces
)

// changes are all, in the order in which they are shown.
func changes() []string {
	return []string{Leaves, Remains, Recomputes, Keeps, Rehomes, Stages, Unstages, Appears,
		Disappears}
}

// Compare says what differs between two plans. They may be of different graphs, but
// refer to slots, spaces and streams that they have.
func Compare(a, b *plan.Plan) (*Diff, error) {
	for i, p := range []*plan.Plan{a, b} {
		if err := sound(p); err != nil {
			return nil, fmt.Errorf("plan %c: %w", 'A'+i, err)
		}
	}
	same, err := identical(a, b)
	if err != nil {
		return nil, err
	}
	d := &Diff{Type: "diff", Same: same, SameGraph: a.Digest == b.Digest, A: sideOf(a),
		B: sideOf(b), Copies: []CopyDiff{}, Ops: []OpDiff{}, Values: []ValueDiff{},
		Streams: []StreamDiff{}, Fetches: []FetchDiff{}}
	d.spaces(a, b)
	d.copies(a, b)
	d.counts(a, b)
	d.values(a, b)
	d.fetches(a, b)
	d.Moved = moved(a, b)
	return d, nil
}

// sound reports a plan whose numbers refer to nothing.
func sound(p *plan.Plan) error {
	for i, s := range p.Slots {
		if int(s.Space) >= len(p.Spaces) || s.From < 0 || s.To < s.From ||
			s.To >= max(1, len(p.Steps)) {
			return fmt.Errorf("slot %d is in no space or at no time", i)
		}
	}
	for i, s := range p.Steps {
		bad := int(s.Stream) >= len(p.Streams)
		plan.Each(s.Do, func(id plan.SlotID, _ bool) {
			bad = bad || id < 0 || int(id) >= len(p.Slots)
		})
		if bad {
			return fmt.Errorf("step %d has a slot or stream that there is not", i)
		}
	}
	return nil
}

// identical reports whether two plans have the same text.
func identical(a, b *plan.Plan) (bool, error) {
	var texts [2]strings.Builder
	for i, p := range []*plan.Plan{a, b} {
		if _, err := p.WriteTo(&texts[i]); err != nil {
			return false, err
		}
	}
	return texts[0].String() == texts[1].String(), nil
}

func sideOf(p *plan.Plan) Side {
	return Side{p.Title, len(p.Steps), p.Launches(), p.Parts, len(p.Slots)}
}

// spaces sets the memories side by side.
func (d *Diff) spaces(a, b *plan.Plan) {
	for i := range max(len(a.Spaces), len(b.Spaces)) {
		var x SpaceDiff
		if i < len(a.Spaces) {
			s := a.Spaces[i]
			x.Name, x.ABytes, x.ABudget = s.Name, s.Bytes, budget(s.Budget)
			x.AAt = a.Peak(space.ID(i), 0).At
		}
		if i < len(b.Spaces) {
			s := b.Spaces[i]
			x.Name, x.BBytes, x.BBudget = s.Name, s.Bytes, budget(s.Budget)
			x.BAt = b.Peak(space.ID(i), 0).At
		}
		d.Spaces = append(d.Spaces, x)
	}
}

// copies sets the traffic side by side, by reason.
func (d *Diff) copies(a, b *plan.Plan) {
	byReason := map[space.Reason]*CopyDiff{}
	for i, p := range []*plan.Plan{a, b} {
		for _, s := range p.Steps {
			do, ok := s.Do.(plan.Copy)
			if !ok {
				continue
			}
			c := byReason[do.Why]
			if c == nil {
				c = &CopyDiff{Reason: do.Why.String()}
				byReason[do.Why] = c
			}
			if i == 0 {
				c.ACount, c.ABytes = c.ACount+1, c.ABytes+do.Bytes
			} else {
				c.BCount, c.BBytes = c.BCount+1, c.BBytes+do.Bytes
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		if c := byReason[why]; c.ACount != c.BCount || c.ABytes != c.BBytes {
			d.Copies = append(d.Copies, *c)
		}
	}
}

// counts sets side by side how often operations run, and what streams have to do.
func (d *Diff) counts(a, b *plan.Plan) {
	ops, streams := map[string][2]int{}, map[string][2]int{}
	for i, p := range []*plan.Plan{a, b} {
		for _, s := range p.Steps {
			name := p.Streams[s.Stream].Name
			n := streams[name]
			n[i]++
			streams[name] = n
			if do, ok := s.Do.(plan.Launch); ok {
				n := ops[do.Op]
				n[i]++
				ops[do.Op] = n
			}
		}
	}
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		if n := ops[op]; n[0] != n[1] {
			d.Ops = append(d.Ops, OpDiff{op, n[0], n[1]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		if n := streams[name]; n[0] != n[1] {
			d.Streams = append(d.Streams, StreamDiff{name, n[0], n[1]})
		}
	}
}

// fetches sets side by side what is fetched, and how often.
func (d *Diff) fetches(a, b *plan.Plan) {
	type key struct{ value, dtype string }
	var asked [2][]key
	counts, all := map[key][2]int{}, []key{} // in the order in which they are first fetched
	for i, p := range []*plan.Plan{a, b} {
		for _, f := range p.Fetches {
			k := key{f.Value, f.Type.String()}
			n, ok := counts[k]
			if !ok {
				all = append(all, k)
			}
			n[i]++
			counts[k] = n
			asked[i] = append(asked[i], k)
		}
	}
	for _, k := range all {
		if n := counts[k]; n[0] != n[1] {
			d.Fetches = append(d.Fetches, FetchDiff{k.value, k.dtype, n[0], n[1]})
		}
	}
	d.Reordered = len(d.Fetches) == 0 && !slices.Equal(asked[0], asked[1])
}

// fate is what becomes of a node's values in a plan.
type fate struct {
	bytes             int64
	runs, out, staged int
	bound             bool
	home              space.ID
}

// fates are those of all values, by the name of the node.
func fates(p *plan.Plan) map[string]fate {
	out := map[string]fate{}
	for _, s := range p.Steps {
		f := out[s.Name]
		switch do := s.Do.(type) {
		case plan.Launch:
			f.runs++
			for _, r := range do.Out {
				f.bytes = max(f.bytes, p.Slots[r.Slot].Bytes)
			}
		case plan.Copy:
			f.bytes = max(f.bytes, do.Bytes)
			switch do.Why {
			case space.SwapOut:
				f.out++
			case space.Stage:
				f.staged++
			}
		}
		out[s.Name] = f
	}
	for _, s := range p.Slots {
		if s.Fixed {
			f := out[s.Value]
			f.bytes, f.bound, f.home = s.Bytes, true, s.Space
			out[s.Value] = f
		}
	}
	return out
}

// values says what became of values.
func (d *Diff) values(a, b *plan.Plan) {
	was, is := fates(a), fates(b)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, y := was[name], is[name]
		add := func(change string, a, b int) {
			d.Values = append(d.Values, ValueDiff{name, change, max(x.bytes, y.bytes), a, b})
		}
		more := func(a, b int, up, down string) {
			if a != b {
				add([]string{up, down}[min(1, max(0, a-b))], a, b)
			}
		}
		switch {
		case x.runs == 0 && y.runs > 0:
			add(Appears, 0, y.runs)
			continue
		case x.runs > 0 && y.runs == 0:
			add(Disappears, x.runs, 0)
			continue
		case x.bound && y.bound && x.home != y.home:
			add(Rehomes, int(x.home), int(y.home))
		}
		more(x.runs, y.runs, Recomputes, Keeps)
		more(x.out, y.out, Leaves, Remains)
		more(x.staged, y.staged, Stages, Unstages)
	}
	order := changes()
	slices.SortStableFunc(d.Values, func(x, y ValueDiff) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Change), slices.Index(order, y.Change)),
			cmp.Compare(y.Bytes, x.Bytes))
	})
}

// moved is how many slots of both plans, which hold the same from the same step to
// the same, are at another address.
func moved(a, b *plan.Plan) int {
	type key struct {
		space    space.ID
		from, to int
		value    string
	}
	at := map[key]int64{}
	for _, s := range a.Slots {
		at[key{s.Space, s.From, s.To, s.Value}] = s.Off
	}
	n := 0
	for _, s := range b.Slots {
		if off, ok := at[key{s.Space, s.From, s.To, s.Value}]; ok && off != s.Off {
			n++
		}
	}
	return n
}

// WriteJSON writes the differences on one line.
func (d *Diff) WriteJSON(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(d); err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	return nil
}
