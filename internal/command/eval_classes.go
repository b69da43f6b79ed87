package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// byClass is what a classifier made of each class.
type byClass struct {
	Classes    []classResult `json:"classes,omitempty"`
	Confusions []mistaken    `json:"confusions,omitempty"` // the most frequent first
}

// classResult is what it made of one. Precision is of those that it took for the class, recall
// of those that are of it; null of none.
type classResult struct {
	Class     string   `json:"class"`
	Count     int      `json:"count"` // of it
	Said      int      `json:"said"`  // taken for it
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
}

// mistaken is how often a class was taken for another.
type mistaken struct {
	Class string `json:"class"`
	Said  string `json:"said"`
	Count int    `json:"count"`
	Of    int    `json:"of"` // examples of the class
}

// classes counts what a classifier of a checkpoint takes for what; nil if it is none.
func (x checkpointed) classes(m *models.Model) *train.Confusion {
	if x.kind.name != "resnet" {
		return nil
	}
	return train.NewConfusion(m.Classes)
}

// byClass are the results of a confusion; nothing of none.
func (x checkpointed) results(c *train.Confusion, classes int) (out byClass) {
	if c == nil {
		return out
	}
	counts, said := make([]int, classes), make([]int, classes)
	for i := range classes {
		for k := range classes {
			counts[i] += c.Count(i, k)
			said[k] += c.Count(i, k)
		}
	}
	for i := range classes {
		if counts[i] == 0 && said[i] == 0 {
			continue
		}
		r := classResult{Class: x.className(i), Count: counts[i], Said: said[i]}
		if p := c.Precision(i); said[i] > 0 {
			r.Precision = &p
		}
		if p := c.Recall(i); counts[i] > 0 {
			r.Recall = &p
		}
		out.Classes = append(out.Classes, r)
		for k := range classes {
			if n := c.Count(i, k); k != i && n > 0 {
				out.Confusions = append(out.Confusions,
					mistaken{x.className(i), x.className(k), n, counts[i]})
			}
		}
	}
	slices.SortStableFunc(out.Confusions, func(a, b mistaken) int {
		return cmp.Compare(b.Count, a.Count)
	})
	return out
}

// mostClasses and mostMistaken are how many are printed.
const mostClasses, mostMistaken = 40, 5

// print writes a table of the classes, of many those of the least recall, and the most frequent
// confusions.
func (r byClass) print(w io.Writer) {
	if len(r.Classes) == 0 {
		return
	}
	list, left := slices.Clone(r.Classes), 0
	if left = len(list) - mostClasses; left > 0 {
		slices.SortStableFunc(list, func(a, b classResult) int {
			return cmp.Compare(orNone(a.Recall), orNone(b.Recall))
		})
		list = list[:mostClasses]
	}
	t := grid.New(2, 3, 4)
	t.AppendHeader(grid.Row("class", "count", "precision", "recall"))
	for _, c := range list {
		t.AppendRow(table.Row{c.Class, c.Count, shareText(c.Precision), shareText(c.Recall)})
	}
	fmt.Fprintln(w)
	printTable(w, t)
	if left > 0 {
		fmt.Fprintf(w, "and %d classes of larger recall: --json has all\n", left)
	}
	if len(r.Confusions) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, m := range r.Confusions[:min(len(r.Confusions), mostMistaken)] {
		fmt.Fprintln(w, train.Folded(fmt.Sprintf("%s taken for %s: %d of %d", m.Class, m.Said,
			m.Count, m.Of), widthOf(w)))
	}
}

// orNone is a share; of no examples, which come last, more than any.
func orNone(p *float64) float64 {
	if p == nil {
		return 2
	}
	return *p
}

// shareText is a share as text.
func shareText(p *float64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *p)
}
