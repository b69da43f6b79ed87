package profile

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/gomem/gomem/internal/grid"
)

// budget is a budget as reports have it: 0 where there is none.
func budget(bytes int64) int64 {
	if bytes == math.MaxInt64 {
		return 0
	}
	return bytes
}

// WriteText writes the differences for people, in 80 columns; nothing if there are
// none.
func (d *Diff) WriteText(w io.Writer) error {
	if d.Same {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A  %s\nB  %s\n", indented(d.A.Plan), indented(d.B.Plan))
	if !d.SameGraph {
		b.WriteString("They are of different graphs.\n")
	}
	d.writeTotals(&b)
	d.writeValues(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// indented wraps a title behind a letter.
func indented(title string) string {
	return strings.ReplaceAll(grid.Wrap(title, columns-3), "\n", "\n   ")
}

// writeTotals sets numbers side by side.
func (d *Diff) writeTotals(b *strings.Builder) {
	t := headed([]string{"", "A", "B", "change"}, 2, 3, 4)
	bytes := func(name string, a, b int64) {
		t.AppendRow(grid.Row(name, brief(a), brief(b), grown(float64(a), float64(b))))
	}
	counts := func(name string, a, b int) {
		t.AppendRow(grid.Row(name, grouped(int64(a)), grouped(int64(b)),
			grown(float64(a), float64(b))))
	}
	for _, s := range d.Spaces {
		bytes(s.Name+" peak", s.ABytes, s.BBytes)
		if s.ABudget != s.BBudget {
			t.AppendRow(grid.Row(s.Name+" budget", limited(s.ABudget), limited(s.BBudget)))
		}
	}
	for _, c := range d.Copies {
		bytes("copied for "+c.Reason, c.ABytes, c.BBytes)
	}
	for _, x := range []struct {
		name string
		a, b int
	}{
		{"steps", d.A.Steps, d.B.Steps},
		{"operations", d.A.Operations, d.B.Operations},
		{"partitions", d.A.Partitions, d.B.Partitions},
		{"slots", d.A.Slots, d.B.Slots},
	} {
		if x.a != x.b {
			counts(x.name, x.a, x.b)
		}
	}
	for _, s := range d.Streams {
		counts("steps of "+s.Name, s.ASteps, s.BSteps)
	}
	for i, o := range d.Ops {
		if i == listed {
			t.AppendRow(grid.Row(fmt.Sprintf("(%d more operations)", len(d.Ops)-listed)))
			break
		}
		counts("runs of "+short(o.Op, 30), o.ACount, o.BCount)
	}
	for i, f := range d.Fetches {
		if i == listed {
			t.AppendRow(grid.Row(fmt.Sprintf("(%d more fetches)", len(d.Fetches)-listed)))
			break
		}
		counts("fetches of "+short(f.Value+" "+f.Type, 40), f.ACount, f.BCount)
	}
	fmt.Fprintf(b, "\n%s\n", t.Render())
	d.writeNotes(b)
}

// writeNotes says what numbers do not.
func (d *Diff) writeNotes(b *strings.Builder) {
	for _, s := range d.Spaces {
		if s.AAt != s.BAt && s.AAt != "" && s.BAt != "" {
			fmt.Fprintln(b, grid.Wrap(fmt.Sprintf("The %s is fullest at %s in A, at %s in B.",
				s.Name, s.AAt, s.BAt), columns))
		}
	}
	if d.Reordered {
		b.WriteString("The same values are fetched in another order.\n")
	}
	switch {
	case d.Moved > 0:
		fmt.Fprintf(b, "%s that both have %s at another address.\n", counted(d.Moved, "slot"),
			verb(d.Moved))
	case !d.Reordered && d.A.Steps == d.B.Steps &&
		len(d.Copies)+len(d.Ops)+len(d.Values)+len(d.Fetches) == 0:
		b.WriteString("Titles, budgets, the order of steps or their waits differ, nothing else.\n")
	}
}

// verb is "is" or "are".
func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// grown is how much more B is than A, in words.
func grown(a, b float64) string {
	switch {
	case a == b:
		return "="
	case a == 0:
		return "new"
	case b == 0:
		return "gone"
	}
	return fmt.Sprintf("%+.1f %%", 100*(b/a-1))
}

// limited is a budget in words.
func limited(bytes int64) string {
	if bytes == 0 {
		return "none"
	}
	return brief(bytes)
}

// writeValues lists what became of values, the largest of each change.
func (d *Diff) writeValues(b *strings.Builder) {
	for _, change := range changes() {
		var some []ValueDiff
		var bytes int64
		for _, v := range d.Values {
			if v.Change == change {
				some = append(some, v)
				bytes += v.Bytes
			}
		}
		if len(some) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s: %s, %s\n", change, counted(len(some), "value"), brief(bytes))
		t := headed(nil, 1)
		for i, v := range some {
			if i == listed {
				t.AppendRow(grid.Row("", "…"))
				break
			}
			t.AppendRow(grid.Row(brief(v.Bytes), short(v.Value, 50), v.times(d.Spaces)))
		}
		fmt.Fprintln(b, t.Render())
	}
}

// times is what a change counts, in A and in B.
func (v ValueDiff) times(spaces []SpaceDiff) string {
	switch v.Change {
	case Rehomes:
		return fmt.Sprintf("%s → %s", spaces[v.A].Name, spaces[v.B].Name)
	case Appears, Disappears:
		return ""
	}
	return fmt.Sprintf("%d → %d", v.A, v.B)
}
