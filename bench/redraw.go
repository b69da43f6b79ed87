package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// redraw draws the tables of a file that curves or throttled have printed.
func redraw(o options) error {
	text, err := os.ReadFile(o.from)
	if err != nil {
		return err
	}
	f := printed(string(text))
	if len(f.panels) == 0 {
		return fmt.Errorf("--from %s: no table of curves in it", o.from)
	}
	return f.save(o.plot)
}

// printed is the figure of the tables in a text.
func printed(text string) figure {
	var f figure
	var less []float64 // by cell: the reduction in percent, or 0
	for row := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		switch {
		case !strings.HasPrefix(row, "|"):
			less = nil
		case less == nil:
			if less = percents(cells); less != nil {
				f.panels = append(f.panels, panel{title: "auto, " + strings.TrimSpace(cells[0])})
			}
		default:
			p := &f.panels[len(f.panels)-1]
			p.add(lines(cells, less)...)
		}
	}
	return f
}

// percents are the reductions that a table's columns are of, or nil if there are none.
func percents(cells []string) []float64 {
	list, found := make([]float64, len(cells)), false
	for i, c := range cells {
		if number, ok := strings.CutSuffix(strings.TrimSpace(c), " %"); ok {
			list[i], _ = strconv.ParseFloat(number, 64)
			found = found || list[i] > 0
		}
	}
	if !found || !slices.ContainsFunc(cells, func(c string) bool {
		return strings.TrimSpace(c) == "thesis" // what every table of curves ends with
	}) {
		return nil
	}
	return list
}

// lines are the times of a row: the numbers of its cells, without what is in brackets.
func lines(cells []string, less []float64) []line {
	l := line{name: strings.TrimSpace(cells[0])}
	for i, c := range cells {
		number, _, _ := strings.Cut(strings.TrimSpace(c), " ")
		if y, err := strconv.ParseFloat(number, 64); err == nil && i < len(less) && less[i] > 0 {
			l.add(less[i], y)
		}
	}
	if len(l.xys) == 0 {
		return nil
	}
	return []line{l}
}
