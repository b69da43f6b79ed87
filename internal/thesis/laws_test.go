package thesis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// number is what a cell says.
func number(t *rapid.T, cell string) float64 {
	x, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(cell, " %"), ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestCellsSay: a cell is the number that it was made of, to half of its last figure.
func TestCellsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<40).Draw(t, "n")
		if got := number(t, cell(n)); got != float64(n) || cell(int64(n)) != cell(n) {
			t.Fatalf("%d is %s", n, cell(n))
		}
		x := math.Exp(rapid.Float64Range(-7, 20).Draw(t, "log"))
		half := 0.5
		switch {
		case x < 10:
			half = 0.005
		case x < 100:
			half = 0.05
		}
		if got := number(t, cell(x)); math.Abs(got-x) > half*(1+1e-9) {
			t.Fatalf("%v is %s", x, cell(x))
		}
		if got := number(t, percent(x)); math.Abs(got-100*x) > 0.05*(1+1e-9) {
			t.Fatalf("%v is %s", x, percent(x))
		}
	})
}

// TestFormsAgree: a table reads back from CSV and JSON as it was made, and has as many cells in
// every row of a document as in its head.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringMatching(`[a-zé,"' .%0-9]{1,8}`)
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		table := Table{ID: "1.1", Title: words.Draw(t, "title"),
			Header: rapid.SliceOfN(words, columns, columns).Draw(t, "header")}
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			table.Rows = append(table.Rows, rapid.SliceOfN(words, columns, columns).Draw(t, "row"))
		}
		var comma, object, marks bytes.Buffer
		for _, err := range []error{table.WriteCSV(&comma), table.WriteJSON(&object),
			table.WriteMarkdown(&marks)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		rows, err := csv.NewReader(&comma).ReadAll()
		want := append([][]string{table.Header}, table.Rows...)
		if err != nil || !reflect.DeepEqual(rows, want) {
			t.Fatalf("%q, %v; want %q", rows, err, want)
		}
		var back Table
		if err := json.Unmarshal(object.Bytes(), &back); err != nil ||
			!reflect.DeepEqual(back, table) {
			t.Fatalf("%+v, %v; want %+v", back, err, table)
		}
		for line := range strings.Lines(marks.String()) {
			if line[0] == '|' && strings.Count(line, "|") != columns+1 {
				t.Fatalf("%q has not %d columns", line, columns)
			}
		}
	})
}

// TestStatistics: depth, nodes and edges are those of a plain walk back from what is asked for.
func TestStatistics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 12)
		o := &nn.Objective{Loss: m.Fetches[0]}
		for _, id := range m.Updates {
			o.Updates = append(o.Updates, m.Graph.Node(id))
		}
		model := &models.Model{}
		model.Graph, model.Objectives = m.Graph, []nn.Objective{*o}
		want := shape{}
		depths := map[*graph.Node]int{}
		var walk func(n *graph.Node) int
		walk = func(n *graph.Node) int {
			if d, seen := depths[n]; seen || n.Leaf() {
				return d
			}
			d := 0
			for _, v := range n.In {
				d = max(d, walk(v.Node))
			}
			if n.Executes() {
				d++
				want.nodes++
				want.edges += len(n.In)
			}
			depths[n] = d
			return d
		}
		want.depth = walk(m.Fetches[0].Node)
		for _, id := range m.Updates {
			want.depth = max(want.depth, walk(m.Graph.Node(id)))
		}
		if got := statisticsOf(model); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// TestAblationIsOfItsRows: a row's savings and times are those of the bytes and seconds in it, and
// an average's are the averages of the rows but for the one that is left out.
func TestAblationIsOfItsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		positive := rapid.Float64Range(0.5, 100)
		var all []ablated
		var rows [][]float64
		for i := range rapid.IntRange(1, 5).Draw(t, "models") {
			a := ablated{name: fmt.Sprint(i)}
			for range stages {
				mib := rapid.Int64Range(1, 4000).Draw(t, "MiB")
				a.need = append(a.need, need{device: mib << 20})
				a.seconds = append(a.seconds, positive.Draw(t, "seconds"))
			}
			all = append(all, a)
			var row []float64
			for _, c := range a.cells() {
				row = append(row, number(t, cell(c)))
			}
			rows = append(rows, row)
			first := float64(a.need[0].device)
			for k, want := range []float64{100 - 100*float64(a.need[2].device)/first,
				100 - 100*float64(a.need[3].device)/first, a.seconds[1] / a.seconds[0],
				a.seconds[2] / a.seconds[0], a.seconds[3] / a.seconds[0]} {
				if math.Abs(row[4+k]-want) > 0.5*(1+1e-9) {
					t.Fatalf("cell %d is %v, want %v", 4+k, row[4+k], want)
				}
			}
		}
		without := fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "without"))
		for k, c := range mean(all, without) {
			var sum, n float64
			for i := range rows {
				if all[i].name != without {
					sum += rows[i][k]
					n++
				}
			}
			if got := number(t, cell(c)); math.Abs(got-sum/n) > 1+1e-9 {
				t.Fatalf("the average of column %d of %v but %s is %v", k, rows, without, got)
			}
		}
	})
}
