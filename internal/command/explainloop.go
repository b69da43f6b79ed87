package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/distrib/orion"
	"github.com/gomem/gomem/internal/grid"
)

// loopCmd is gomem-cluster explain-loop.
type loopCmd struct {
	Loop     string `default:"mf" placeholder:"NAME|FILE"`
	Workers  count  `default:"4" placeholder:"N"`
	Space    string `placeholder:"INDEX"`
	Time     string `placeholder:"INDEX"`
	Ordered  bool
	Nonzeros count `placeholder:"N"`
	Check    bool
	JSON     bool `name:"json"`
}

// Help is the long help.
func (loopCmd) Help() string {
	return `Says how a loop over data can be run by several workers with the result of a serial
order, as Orion does it (chapter 5 of J. Wei's thesis, 2019): which iterations depend on
each other, the schedule that follows and why no other, what each worker receives of
every array in one pass, and which blocks workers run in the first steps.
A loop is an example or a file:
    space: [i 600, j 900]                     # indices and sizes, the outermost first
    ordered: false                            # keep the order of dependent iterations?
    arrays: [{name: W, shape: [600, 40]}]     # bytes: 4 is an element's size
    body: ["read W[i, :]", "write W[i, :]"]   # i, i-1, a number, ":" all, "?" unknown
Instead of write, buffer says that writes are applied later, and are not analysed.`
}

func (loopCmd) examples() string {
	return `
  gomem-cluster explain-loop --loop mf                  matrix factorisation
  gomem-cluster explain-loop --loop mf --ordered        the same, in order
  gomem-cluster explain-loop --loop skewed --workers 2  dimensions are combined
  gomem-cluster explain-loop --loop mf --check          run it, and compare the bits
  gomem-cluster explain-loop --loop loop.yaml --json    a loop of your own
`
}

// Run explains.
func (c *loopCmd) Run(ctx context.Context, e *env) error {
	l, err := readLoop(c.Loop)
	if err != nil {
		return err
	}
	l.Ordered = l.Ordered || c.Ordered
	var points [][]int64
	if c.Nonzeros > 0 {
		if points, err = drawPoints(l, int(c.Nonzeros)); err != nil {
			return usagef("--nonzeros %d: %w", c.Nonzeros, err)
		}
	}
	choice, err := orion.Choose(l, orion.Options{Workers: int(c.Workers), Space: c.Space,
		Time: c.Time})
	if err != nil {
		return usagef("%s: %w", l.Name, err)
	}
	x := explained{Schedule: choice.Schedule(points), points: points, factors: c.Loop == "mf"}
	if c.Check {
		if x.checked, err = x.check(ctx); err != nil {
			return err
		}
	}
	if c.JSON {
		return x.json(e.stdout)
	}
	return x.print(e.stdout)
}

// explained is a schedule that is to be told about.
type explained struct {
	*orion.Schedule
	points  [][]int64
	factors bool     // the body is that of a factorisation
	checked *checked // if it was run
}

// bytes are what a worker receives and sends of all arrays.
func (x explained) bytes() (n int64) {
	for _, t := range x.Traffic {
		n += t.Bytes
	}
	return n
}

// uneven is how many times its share the worker with the most has.
func (x explained) uneven() float64 {
	var sum int64
	loads := x.Loads(x.points)
	for _, n := range loads {
		sum += n
	}
	return float64(slices.Max(loads)) * float64(len(loads)) / float64(max(sum, 1))
}

// axisJSON is a coordinate, in the names of dimensions, and where its parts begin; the last number
// is where they end.
type axisJSON struct {
	By   string  `json:"by"`
	Cuts []int64 `json:"cuts"`
}

// blockJSON is a block. After is the worker and the number of the block that it waits for.
type blockJSON struct {
	Step  int   `json:"step"`
	Space int   `json:"space"`
	Time  int   `json:"time"`
	After []int `json:"after,omitempty"`
}

type trafficJSON struct {
	Array     string `json:"array"`
	Placement string `json:"placement"`
	Elements  int64  `json:"elements"`
	Bytes     int64  `json:"bytes"`
}

type otherJSON struct {
	Schedule string `json:"schedule"`
	Why      string `json:"why"`
}

// json prints one object.
func (x explained) json(w io.Writer) error {
	out := struct {
		Type     string        `json:"type"`
		Loop     string        `json:"loop"`
		Ordered  bool          `json:"ordered"`
		Vectors  []string      `json:"vectors"`
		Schedule string        `json:"schedule"`
		Space    axisJSON      `json:"space"`
		Time     axisJSON      `json:"time"`
		Others   []otherJSON   `json:"others"`
		Traffic  []trafficJSON `json:"traffic"`
		Bytes    int64         `json:"bytes"`
		Uneven   float64       `json:"uneven"`
		Steps    int           `json:"steps"`
		Blocks   [][]blockJSON `json:"blocks"`
		Check    *checked      `json:"check,omitempty"`
	}{Type: "loop", Loop: x.Loop.Name, Ordered: x.Loop.Ordered, Vectors: []string{},
		Schedule: x.Kind.String(),
		Space:    axisJSON{x.Loop.Sum(x.Space), x.Across.Cuts},
		Time:     axisJSON{x.Loop.Sum(x.Time), x.Along.Cuts},
		Bytes:    x.bytes(), Uneven: x.uneven(), Steps: x.Steps(), Check: x.checked}
	for _, v := range x.Vectors {
		out.Vectors = append(out.Vectors, v.String())
	}
	for _, o := range x.Others {
		out.Others = append(out.Others, otherJSON{o.Kind.String(), o.Why})
	}
	for _, t := range x.Traffic {
		out.Traffic = append(out.Traffic, trafficJSON{t.Array, t.Placement.String(), t.Elements,
			t.Bytes})
	}
	for _, blocks := range x.Blocks {
		list := make([]blockJSON, len(blocks))
		for i, b := range blocks {
			list[i] = blockJSON{b.Step, b.Space, b.Time, nil}
			if b.After != nil {
				list[i].After = []int{b.After.Worker, b.After.Index}
			}
		}
		out.Blocks = append(out.Blocks, list)
	}
	return json.NewEncoder(w).Encode(out)
}

// print prints for people.
func (x explained) print(w io.Writer) error {
	order := "in any order"
	if x.Loop.Ordered {
		order = "in order"
	}
	fmt.Fprintf(w, "%s, %s\n%s\n", x.Loop.Name, order, x.Loop)
	words := []string{"none"}
	for i, v := range x.Vectors {
		words = append(words[:i], v.String())
	}
	x.paragraph(w, "depends by ", strings.Join(words, ", "))
	x.paragraph(w, "schedule   ", fmt.Sprint(x.Kind, x.by(), "; ", x.waits()))
	for _, o := range x.Others {
		x.paragraph(w, "not        ", fmt.Sprintf("%s: %s", o.Kind, o.Why))
	}
	for _, t := range x.Traffic {
		x.paragraph(w, "array      ", fmt.Sprintf("%s %s: %s elements, %s", t.Array, t.Placement,
			grouped(t.Elements), size(t.Bytes)))
	}
	x.paragraph(w, "a pass     ", fmt.Sprintf("%s a worker at most; the one with the most "+
		"has %.2f times its share", size(x.bytes()), x.uneven()))
	if x.checked != nil {
		x.paragraph(w, "checked    ", x.checked.String())
	}
	fmt.Fprintf(w, "\nsteps, of %d: who runs which parts of space : of time\n", x.Steps())
	_, err := fmt.Fprintln(w, x.picture())
	return err
}

// paragraph prints lines with a word before the first.
func (explained) paragraph(w io.Writer, word, text string) {
	lines := grid.Wrap(text, pageWidth-len(word))
	indent := "\n" + strings.Repeat(" ", len(word))
	fmt.Fprintf(w, "%s%s\n", word, strings.ReplaceAll(lines, "\n", indent))
}

// by says what the loop is divided by.
func (x explained) by() string {
	text := ""
	for _, a := range []struct {
		name string
		orion.Axis
	}{{"space", x.Across}, {"time", x.Along}} {
		if by := x.Loop.Sum(a.Row); by != "" {
			text += fmt.Sprintf(", %s %s in %s", a.name, by, counted(a.Parts(), "part"))
		}
	}
	return text
}

// waits says how many there are.
func (x explained) waits() string {
	n, blocks := 0, 0
	for _, list := range x.Blocks {
		for _, b := range list {
			if blocks++; b.After != nil {
				n++
			}
		}
	}
	return fmt.Sprintf("%s, of which %s for another worker's", counted(blocks, "block"),
		map[bool]string{true: "1 waits", false: grouped(int64(n)) + " wait"}[n == 1])
}

// The picture has no more workers and steps.
const (
	mostDrawn = 8
	mostSteps = 10
)

// picture is who runs which blocks in the first steps.
func (x explained) picture() string {
	t := grid.New()
	header := []string{"step"}
	for step := range min(x.Steps(), mostSteps) {
		header = append(header, strconv.Itoa(step))
	}
	t.AppendHeader(grid.Row(header...))
	for worker, blocks := range x.Blocks[:min(len(x.Blocks), mostDrawn)] {
		cells := make([]string, len(header))
		cells[0] = fmt.Sprintf("worker %d", worker)
		for i, b := range blocks {
			switch at := b.Step + 1; {
			case at >= len(cells):
			case i > 0 && blocks[i-1].Step == b.Step && blocks[i-1].Time == b.Time:
				parts, _, _ := strings.Cut(cells[at], ":")
				cells[at] = fmt.Sprintf("%s,%d:%d", parts, b.Space, b.Time)
			default:
				cells[at] = strings.TrimSpace(fmt.Sprintf("%s %d:%d", cells[at], b.Space, b.Time))
			}
		}
		t.AppendRow(grid.Row(cells...))
	}
	return t.Render()
}
