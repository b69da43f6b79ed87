package command

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gomem/gomem/distrib/fabric"
	"github.com/gomem/gomem/distrib/fabric/replay"
	"github.com/gomem/gomem/internal/chart"
	"github.com/gomem/gomem/internal/thesis"
)

// setting is one of the evaluation's, by name.
type setting struct {
	name string
	replay.Setting
}

// replays makes the tables of MLfabric's evaluation.
type replays struct {
	ctx      context.Context
	updates  int // of an asynchronous job
	progress func(string)
}

func (r *replays) tables() []func([]setting) (thesis.Table, error) {
	return []func([]setting) (thesis.Table, error){r.speedups, r.together, r.direct, r.replicas,
		r.lags, r.scheduler}
}

// begin says what is under way, and whether to go on.
func (r *replays) begin(what string, s setting) error {
	r.progress(what + ", " + s.name)
	return r.ctx.Err()
}

// enough is longer than any job of a number of updates takes.
const enough = 3600

// sizes are step sizes from which each job takes its best.
func sizes() []float64 { return []float64{0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32} }

// speedups is table 2: how much sooner a loss is reached than with a ring.
func (r *replays) speedups(jobs []setting) (thesis.Table, error) {
	t := thesis.Table{ID: "2", Title: "Time to a loss: MLfabric-A beside a ring",
		Header: []string{"setting", "ring, s", "A, s", "speedup", "paper", "dropped", "paper",
			"iteration, s", "ring's"}}
	paper := map[string]string{"C1N1": "1.74", "C1N2": "1.23", "C1N3": "1.42", "C2N1": "2.96",
		"C2N2": "2.0", "C2N3": "2.32", "C3N1": "1.90", "C3N2": "1.33", "C3N3": "1.42"}
	dropped := map[string]string{"C1N1": "30 %"}
	task := replay.NewTask(1)
	for _, s := range jobs {
		if err := r.begin("time to a loss", s); err != nil {
			return t, err
		}
		every := s.Workers
		ring := replay.Ring(s.Setting, r.updates/every)
		target, ringAt := r.target(task, ring, every)
		a, err := replay.Async(s.Setting, enough, r.updates)
		if err != nil {
			return t, err
		}
		at, _ := a.Best(task, target, every, sizes())
		t.Rows = append(t.Rows, []string{s.name, figure(ringAt), figure(at), figure(ringAt / at),
			paper[s.name], percent(float64(a.Dropped) / float64(a.Dropped+a.Updates())),
			dropped[s.name], figure(a.Seconds() / float64(a.Updates()) * float64(every)),
			figure(ring.Seconds() / float64(len(ring.Steps)))})
	}
	t.Notes = []string{"an iteration is as many updates as there are workers",
		"the loss is what the ring has after half of its iterations, each at its best step size"}
	return t, nil
}

// target is a loss that a job reaches, and when.
func (r *replays) target(task *replay.Task, l *replay.Log, every int) (loss, at float64) {
	loss = math.Inf(1)
	for _, size := range sizes() {
		points := l.Learn(task, size, every)
		loss = min(loss, points[len(points)/2].Loss)
	}
	at, _ = l.Best(task, loss, every, sizes())
	return loss, at
}

// figure is a number with three digits that count.
func figure(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "never"
	}
	return fmt.Sprintf("%.3g", x)
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// together is 7.2: synchronous workers.
func (r *replays) together(jobs []setting) (thesis.Table, error) {
	t := thesis.Table{ID: "7.2", Title: "Synchronous workers: seconds an iteration",
		Header: []string{"setting", "MB", "MLfabric-S", "tree", "ring", "tree/S", "paper",
			"slow links, S", "tree's"}}
	paper := map[string]string{"C2N2 240": "1.28", "C2N2 100": "1.23"}
	const iterations = 40
	for _, s := range jobs {
		for _, mb := range []float64{100, 240} {
			if err := r.begin("synchronous workers", s); err != nil {
				return t, err
			}
			s.Bytes = mb * 1e6
			synced, err := replay.Sync(s.Setting, iterations)
			if err != nil {
				return t, err
			}
			tree, ring := replay.Tree(s.Setting, iterations), replay.Ring(s.Setting, iterations)
			each := func(l *replay.Log) float64 { return l.Seconds() / iterations }
			t.Rows = append(t.Rows, []string{s.name, figure(mb), figure(each(synced)),
				figure(each(tree)), figure(each(ring)), figure(each(tree) / each(synced)),
				paper[fmt.Sprintf("%s %.0f", s.name, mb)], slow(synced), slow(tree)})
		}
	}
	t.Notes = []string{"slow links: transfers over links below 3 Gbit/s, of all",
		"the paper has 816 of 20,000 of MLfabric-S, 1,800 of the tree's, under N2"}
	return t, nil
}

// slow is how many transfers are over slow links.
func slow(l *replay.Log) string {
	n := 0
	for _, x := range l.Transfers {
		if x.Bps < 3e9/8 {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(l.Transfers))
}

// direct is what aggregation saves the server.
func (r *replays) direct(jobs []setting) (thesis.Table, error) {
	t := thesis.Table{ID: "7.1", Title: "Asynchronous workers: what the server receives",
		Header: []string{"setting", "copies an update", "without aggregators", "times less",
			"updates/s", "without", "paper", "copies of S"}}
	for _, s := range jobs {
		if err := r.begin("aggregation", s); err != nil {
			return t, err
		}
		a, err := replay.Async(s.Setting, enough, r.updates/3)
		if err != nil {
			return t, err
		}
		plain, err := replay.Plain(s.Setting, enough, r.updates/3)
		if err != nil {
			return t, err
		}
		synced, err := replay.Sync(s.Setting, 20)
		if err != nil {
			return t, err
		}
		copies := func(l *replay.Log) float64 { return l.Ingress / s.Bytes / float64(l.Updates()) }
		rate := func(l *replay.Log) float64 { return float64(l.Updates()) / l.Seconds() }
		t.Rows = append(t.Rows, []string{s.name, figure(copies(a)), figure(copies(plain)),
			figure(copies(plain) / copies(a)), figure(rate(a)), figure(rate(plain)), "up to 7x",
			figure(copies(synced))})
	}
	t.Notes = []string{"of S: MLfabric-S, whose batches are larger"}
	return t, nil
}

// replicas is figure 9: what a replica receives, by bound.
func (r *replays) replicas(jobs []setting) (thesis.Table, error) {
	t := thesis.Table{ID: "fig9", Title: "A replica: what it receives by the bound, in updates",
		Header: []string{"setting", "bound", "copies an update", "times less than a chain", "paper",
			"s an iteration", "without"}}
	paper := map[int]string{600: "5.6"}
	for _, s := range jobs[:1] {
		without, err := replay.Async(s.Setting, enough, r.updates/3)
		if err != nil {
			return t, err
		}
		for _, bound := range []int{1, 30, 100, 300, 600} {
			if err := r.begin("replication", s); err != nil {
				return t, err
			}
			s.Replica, s.Bound = true, fabric.Bound{Updates: bound}
			l, err := replay.Async(s.Setting, enough, r.updates/3)
			if err != nil {
				return t, err
			}
			each := func(l *replay.Log) float64 {
				return l.Seconds() / float64(l.Updates()) * float64(s.Workers)
			}
			copies := l.Replica / s.Bytes / float64(l.Updates())
			t.Rows = append(t.Rows, []string{s.name, fmt.Sprint(bound), figure(copies),
				figure(1 / copies), paper[bound], figure(each(l)), figure(each(without))})
		}
	}
	t.Notes = []string{"a chain forwards every update"}
	return t, nil
}

// lags is what it costs to know links late.
func (r *replays) lags(jobs []setting) (thesis.Table, error) {
	t := thesis.Table{ID: "lag", Title: "Links that are known late: seconds an iteration",
		Header: []string{"setting", "0.2 s", "2 s", "longer by", "paper"}}
	paper := map[string]string{"C1N2": "7.6 %", "C2N2": "7.6 %", "C3N2": "7.6 %"}
	for _, s := range jobs {
		var each [2]float64
		for i, lag := range []float64{0.2, 2} {
			if err := r.begin("late reports", s); err != nil {
				return t, err
			}
			s.Lag = lag
			l, err := replay.Async(s.Setting, enough, r.updates/3)
			if err != nil {
				return t, err
			}
			each[i] = l.Seconds() / float64(l.Updates()) * float64(s.Workers)
		}
		t.Rows = append(t.Rows, []string{s.name, figure(each[0]), figure(each[1]),
			percent(each[1]/each[0] - 1), paper[s.name]})
	}
	return t, nil
}

// scheduler is 7.4: how long the scheduler takes.
func (r *replays) scheduler([]setting) (thesis.Table, error) {
	t := thesis.Table{ID: "7.4", Title: "The scheduler: milliseconds a batch, on this machine",
		Header: []string{"updates", "ms", "paper"}}
	paper := map[int]string{10: "5", 100: "30", 500: "440", 1000: "1460"}
	for _, n := range []int{10, 100, 500, 1000} {
		took := math.Inf(1)
		for range 5 {
			b, net := replay.Random(1, n, 8)
			began := time.Now()
			if _, err := fabric.New(b, net); err != nil {
				return t, err
			}
			took = min(took, time.Since(began).Seconds()*1000)
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(n), figure(took), paper[n]})
	}
	t.Notes = []string{"deadlines between 1 and twice the updates",
		"half as many machines, 8 aggregators"}
	return t, r.ctx.Err()
}

// shownFor is how many seconds the figure has.
const shownFor = 3.0

// draw draws who sends when over which link, at the beginning of a job.
func (r *replays) draw(s setting, path string) error {
	l, err := replay.Async(s.Setting, shownFor, math.MaxInt)
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = s.name + ": what machines send, by the machine that receives it"
	p.X.Label.Text, p.Y.Label.Text = "s", "machine that sends"
	colours := chart.Palette()
	for _, x := range l.Transfers {
		y := float64(x.From)
		if x.Start > shownFor {
			continue
		}
		box, err := plotter.NewPolygon(plotter.XYs{{X: x.Start, Y: y - 0.4}, {X: x.End, Y: y - 0.4},
			{X: x.End, Y: y + 0.4}, {X: x.Start, Y: y + 0.4}})
		if err != nil {
			return err
		}
		box.Color, box.LineStyle.Color = colours[int(x.To)%len(colours)], color.White
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x.Start, Y: y - 0.2}},
			Labels: []string{fmt.Sprint(x.To)}})
		if err != nil {
			return err
		}
		p.Add(box, label)
	}
	p.X.Min, p.X.Max = 0, shownFor
	canvas := chart.NewCanvas(filepath.Ext(path), 2*chartWidth, 2*chartHeight)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(6), -vg.Points(12), vg.Points(6), -vg.Points(6)))
	return writeFile(path, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}
