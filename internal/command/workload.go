package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/workers"
)

// shallow are the models without layers: logistic regression of many classes, or of two with sparse
// rows, matrix factorisation, topics of documents, boosted trees, and regression with few
// coefficients. They are trained on parameter servers or by a schedule, by one worker too.
var shallow = append([]string{"mlr", "lr", "mf", "lda", "gbt"}, sparse...)

// usual are what --sync is for models that it is not bosen for.
var usual = map[string]string{"lda": "rotate", "lasso": "blocks", "l1-lr": "blocks",
	"gbt": "histograms"}

// runner is a task of package workload.
type runner interface {
	Check() error
	Params() []*distrib.Param
	Rounds() (epochs, clocks int) // in an epoch
	Run(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error
}

// learn trains a model without layers.
func (c *trainCmd) learn(ctx context.Context, e *env) (err error) {
	if err := c.bare(e.given); err != nil {
		return err
	}
	form, quasi, err := secant(c)
	if err != nil {
		return err
	}
	c.Sync = cmp.Or(c.Sync, usual[c.Model], "bosen")
	scheme, err := c.serving(c.Model, c.meetFlags, c.Save != "" || c.Resume != "")
	if err == nil && c.Model == "lda" && !scheme.Scheduled() {
		err = c.served(e.given)
	}
	if err != nil {
		return err
	}
	w, err := c.world(ctx, e, nil, savedRun{c.Save, true}.again)
	if err != nil {
		return err
	}
	defer func() { err = c.worker.unsaid(ctx, w, err) }()
	q := quest{model: c.Model, data: string(c.Data), held: string(c.EvalData), seed: c.Seed,
		epochs: int(c.Epochs), rate: float64(c.LR), rotate: int(c.Rotate), lag: scheme.Lag(),
		gradients: scheme.Gradients(), scheduled: scheme.Scheduled(), rank: int(c.Factors),
		lambda: float64(c.Lambda), gap: float64(c.Gap), sync: c.Sync,
		trees: c.treeFlags.run(), lda: c.ldaRun(), threads: int(c.Threads),
		host: int64(c.HostBytes), disk: string(c.Disk),
		both: c.Min > 0 || c.Save != "" || c.Resume != ""}
	task, about, err := q.task()
	if m, ok := task.(*workload.MLR); err == nil && ok && quasi {
		newton := workload.Newton{MLR: m, Form: form}
		task, about, err = newton, fmt.Sprintf("%s, by %s", about, form), newton.Check()
	}
	if err != nil {
		return err
	}
	var memory *ldaMemory
	if t := topicsIn(task); t != nil {
		defer func() { err = errors.Join(err, t.Train.Close()) }()
		if memory, err = budgeted(c, t, w); err != nil {
			return err
		}
		defer memory.limited()()
	}
	kept := c.snapshots(q.run(about, task))
	if err := kept.begin(task, w.Rank == 0); err != nil {
		return err
	}
	stderr := e.stderr // its own, whoever shows the run
	log := func(text string) { fmt.Fprintf(stderr, "gomem: %s\n", text) }
	c.worker.log = log
	logger := c.worker.enter(e, w, c.Job)
	job, err := meet(ctx, e.extras.Cluster, c.flags(), w, log, logger)
	if err != nil {
		return err
	}
	o := workers.Options{Log: log, Logger: logger, Alive: job.Alive, Elect: job.Elect,
		Elastic: c.elastic(w, job, log)}
	err = c.worker.join(func() (*workers.Member, error) {
		return workers.Join(job.View, job.Transport, scheme, o)
	})
	if err == nil {
		shown := c.voice(e, o.Elastic != nil && c.outlives())
		l := &lesson{worker: &c.worker, rank: w.Rank, model: c.Model, about: about, kept: &kept,
			settings: fmt.Sprint(c.Model, about, c.Epochs, c.LR, c.Seed, c.Sync, c.Factors,
				q.lda, c.sparseFlags, q.trees),
			memory: memory, shows: epochs{c.Model, c.JSON, shown.stdout}}
		l.learns(task)
		err = c.worker.member.Close(l.descend(ctx, task))
	}
	return cmp.Or(kept.remembering(ctx, err, c.worker.leads()), job.Leave())
}

// secant is the quasi-Newton form that --rule names, if it does; the scheme is then that of workers
// in step, and no owner has a rule.
func secant(c *trainCmd) (form workload.Secant, quasi bool, err error) {
	if form, quasi = workload.ParseSecant(c.Rule); !quasi {
		return form, false, nil
	}
	switch {
	case c.Model != "mlr":
		return form, true, usagef("--rule %s is for --model mlr", form)
	case c.Sync != "" && c.Sync != "bsp":
		return form, true, usagef("--rule %s needs --sync bsp: all workers go the same way", form)
	case c.LR > 0:
		return form, true, usagef("--lr does nothing with --rule %s, which finds how far to go",
			form)
	case c.Save != "" || c.Resume != "":
		return form, true, usagef("--rule %s keeps nothing: leave --save and --resume out", form)
	case c.Min > 0:
		return form, true, usagef("--min does nothing with --rule %s: its workers neither come "+
			"nor go", form)
	}
	c.Sync, c.Rule = "bsp", ""
	return form, true, nil
}

// bare refuses flags that models without layers have no use for.
func (c *trainCmd) bare(given map[string]bool) error {
	if c.SaveEvery > 0 && c.Save == "" && c.Resume == "" {
		return usagef("--save-every needs --save DIR")
	}
	plan := c.planFlags
	if c.Model == "lda" {
		plan.HostBytes = 0
	}
	idle := append(c.particular(), option{"steps", c.Steps > 0}, option{"mtbf", c.MTBF > 0},
		option{"eval-every", given["eval-every"]}, option{"init", c.Init != ""},
		option{"batch", c.Batch > 0}, option{"fine", c.Fine},
		option{"optimizer", c.Optimizer != ""}, option{"trace", c.Trace != ""},
		option{"profile", c.Profile != ""}, option{"svlog", c.SVLog != ""},
		option{"svlog-keep", c.SVLogKeep > 0}, option{"schedule", c.Schedule != ""},
		option{"warmup", c.Warmup != nil}, option{"factors", c.Factors > 0 && c.Model != "mf"},
		option{"disk", c.Disk != "" && c.Model != "lda"},
		option{"lr", c.LR > 0 && usual[c.Model] != "" && c.Model != "gbt"})
	if c.Model != "gbt" {
		idle = append(idle, c.treeFlags.given()...)
	}
	if !isSparse(c.Model) {
		idle = append(idle, option{"gap", c.Gap > 0},
			option{"lambda", c.Lambda > 0 && c.Model != "mf" && c.Model != "gbt"})
	}
	own := map[string]string{"lda": "topics", "gbt": "loss"}[c.Model]
	idle = slices.DeleteFunc(idle, func(o option) bool { return o.name == own })
	if c.Model != "lda" {
		idle = append(idle, c.ldaFlags.given()...)
	}
	if name := firstGiven(idle, c.watchFlags.given(), plan.given()); name != "" {
		return usagef("--%s does nothing for --model %s: leave one of them out", name, c.Model)
	}
	return nil
}

// opened reads the file of a spec of a kind.
func opened(kind, spec string, read func(io.Reader) error) error {
	path, ok := strings.CutPrefix(spec, kind+":")
	if !ok {
		return usagef("--data %s: want %s:FILE", spec, kind)
	}
	f, _, err := data.OpenFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	in, err := data.Unmarked(f)
	if err == nil {
		err = read(in)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// isShallow reports whether a model has no layers.
func isShallow(model string) bool { return slices.Contains(shallow, model) }
