package profile

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gomem/gomem/plan"
)

//go:embed page.html
var page string

// place is where the page has its data.
const place = "GOMEM_DATA"

// pageData is what the page shows. Lists have one kind of thing in each position, as
// the page says; texts are indexes of Strings.
type pageData struct {
	Report     *Report      `json:"report"`
	Categories []string     `json:"categories"`
	Colours    []string     `json:"colours"`
	Streams    []pageStream `json:"streams"`
	Strings    []string     `json:"strings"`
	Steps      [][8]any     `json:"steps"`
	Values     [][8]int64   `json:"values"`
	Clocks     []pageClock  `json:"clocks"`
}

// pageStream is a stream, and what it does.
type pageStream struct {
	Name   string `json:"name"`
	Copies bool   `json:"copies"`
	Host   bool   `json:"host"` // computes, on the host
}

// pageClock has the times of steps and of values, in milliseconds.
type pageClock struct {
	Name  string    `json:"name"`
	End   float64   `json:"end"`
	Start []float64 `json:"start"`
	Took  []float64 `json:"took"`
	From  []float64 `json:"from"`
	To    []float64 `json:"to"`
}

// WriteHTML writes a page that needs nothing else: the report, what is where in
// memory at what time, the streams, and every step with a search.
func (p *Profile) WriteHTML(w io.Writer) error {
	before, after, _ := strings.Cut(page, place)
	data, err := json.Marshal(p.page())
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	for _, text := range []string{before, string(data), after} {
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// pager numbers texts.
type pager struct {
	*Profile
	data    pageData
	numbers map[string]int
}

// page gathers the data.
func (p *Profile) page() *pageData {
	g := &pager{Profile: p, numbers: map[string]int{}}
	g.data.Report = &p.Report
	for _, c := range Categories() {
		g.data.Categories = append(g.data.Categories, c.String())
		g.data.Colours = append(g.data.Colours, fmt.Sprintf("#%02x%02x%02x", colours[c].R,
			colours[c].G, colours[c].B))
	}
	for i, s := range p.plan.Streams {
		g.data.Streams = append(g.data.Streams, pageStream{s.Name, p.copying(plan.StreamID(i)),
			p.onHost(plan.StreamID(i))})
	}
	g.steps()
	runs := []struct {
		name string
		run  Run
	}{{"measured", p.measured}, {"predicted", p.predicted}}
	g.values()
	g.data.Clocks = []pageClock{}
	for _, r := range runs {
		if r.run != nil {
			g.data.Clocks = append(g.data.Clocks, g.clock(r.name, r.run))
		}
	}
	return &g.data
}

// text is the number of a text.
func (g *pager) text(s string) int {
	n, ok := g.numbers[s]
	if !ok {
		n = len(g.data.Strings)
		g.numbers[s] = n
		g.data.Strings = append(g.data.Strings, s)
	}
	return n
}

// steps lists the plan's.
func (g *pager) steps() {
	g.data.Steps = [][8]any{}
	for _, s := range g.plan.Steps {
		n := g.graph.Node(s.Node)
		amount, sizes := n.Cost().FLOPs, shapes(n)
		if bytes, ok := s.Do.Moves(); ok {
			amount, sizes = bytes, ""
		}
		wait := s.Wait
		if wait == nil {
			wait = []int{}
		}
		g.data.Steps = append(g.data.Steps, [8]any{s.Part, amount, s.Stream, g.text(s.Do.What()),
			g.text(s.Name), g.text(n.Pos), g.text(sizes), wait})
	}
}

// values lists what every slot holds, one after the other.
func (g *pager) values() {
	g.data.Values = [][8]int64{}
	for id := range g.plan.Slots {
		s := &g.plan.Slots[id]
		for k, h := range g.held[id] {
			x := g.held.holder(g.plan, plan.SlotID(id), h.from)
			from, to := max(h.from, s.From), s.To
			if k+1 < len(g.held[id]) {
				to = max(from, g.held[id][k+1].from-1)
			}
			g.data.Values = append(g.data.Values, [8]int64{int64(s.Space), s.Off, s.Bytes,
				int64(x.Category), int64(g.text(x.Value)), int64(g.text(x.Type + "  " + x.Pos)),
				int64(from), int64(to)})
		}
	}
}

// clock lists the times of a run.
func (g *pager) clock(name string, run Run) pageClock {
	c := pageClock{Name: name, End: milliseconds(run.length()), Start: []float64{},
		Took: []float64{}, From: []float64{}, To: []float64{}}
	for _, s := range run {
		c.Start = append(c.Start, milliseconds(s.Start))
		c.Took = append(c.Took, milliseconds(s.length()))
	}
	live := lives(g.plan, run)
	for id := range g.plan.Slots {
		g.each(plan.SlotID(id), run, live[id], func(_ Category, from, to time.Duration) {
			c.From = append(c.From, milliseconds(from))
			c.To = append(c.To, milliseconds(to))
		})
	}
	return c
}
