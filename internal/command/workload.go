package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/workers"
)

// shallow are the models without layers: logistic regression of many classes, or of two with sparse
// rows, and matrix factorisation. They are trained on parameter servers, by one worker too.
var shallow = []string{"mlr", "lr", "mf"}

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
	c.Sync = cmp.Or(c.Sync, "bosen")
	scheme, err := c.scheme()
	if err != nil {
		return err
	}
	if scheme.Plan == nil {
		return usagef("--sync %s exchanges gradients of layers, which --model %s has none of: "+
			"want bosen, pf or the like", c.Sync, c.Model)
	}
	if c.Save != "" || c.Resume != "" {
		if err := scheme.Plan.Saved(); err != nil {
			return usagef("--sync %s can neither save nor resume --model %s: %w", c.Sync, c.Model,
				err)
		}
	}
	if c.Model == "lr" {
		if err := scheme.Plan.Admits(distrib.SparseRows{}); err != nil {
			return usagef("--model lr cannot have this --sync, --rule or --filter: %w", err)
		}
	}
	w, err := c.world(ctx, e, nil, c.again)
	if err != nil {
		return err
	}
	defer func() { err = c.unsaid(ctx, w, err) }()
	c.rank = w.Rank
	task, about, err := c.shallow(scheme.Lag(), scheme.Plan.Gradients()).task()
	if m, ok := task.(*workload.MLR); err == nil && ok && quasi {
		newton := workload.Newton{MLR: m, Form: form}
		task, about, err = newton, fmt.Sprintf("%s, by %s", about, form), newton.Check()
	}
	if err != nil {
		return err
	}
	kept := c.snapshots()
	if err := kept.begin(task, w.Rank == 0); err != nil {
		return err
	}
	stderr := e.stderr // its own, whoever shows the run
	c.log = func(text string) { fmt.Fprintf(stderr, "gomem: %s\n", text) }
	logger := c.place(e, w)
	job, err := c.meet(ctx, e, w, c.log, logger)
	if err != nil {
		return err
	}
	o := workers.Options{Log: c.log, Logger: logger, Alive: job.Alive, Elastic: c.elastic(w, job),
		Elect: job.Elect}
	c.member, err = workers.Join(job.View, job.Transport, scheme, o)
	if err == nil {
		c.standing.member.Store(c.member)
		err = c.descend(ctx, c.voice(e, o.Elastic != nil && c.outlives()), task, about, &kept)
		err = c.member.Close(err)
	}
	return cmp.Or(kept.remembering(ctx, err, c.leads()), job.Leave())
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

// shallow is what is to be learnt by workers with a lag, who send gradients or not.
func (c *trainCmd) shallow(lag int, gradients bool) quest {
	return quest{model: c.Model, data: string(c.Data), held: string(c.EvalData), seed: c.Seed,
		epochs: int(c.Epochs), rate: float64(c.LR), rotate: int(c.Rotate), lag: lag,
		gradients: gradients, both: c.Min > 0 || c.Save != "" || c.Resume != ""}
}

// meet joins the job, which one worker alone is too.
func (c *trainCmd) meet(ctx context.Context, e *env, w World, log func(string),
	logger *slog.Logger) (*Job, error) {
	if w.Size > 1 {
		job, err := e.extras.Cluster.Join(ctx, c.flags(), w, log, logger)
		if err != nil || job.Enter == nil {
			return job, err
		}
		if err = job.Enter(ctx); err != nil { // its data are read
			err = errors.Join(err, job.Leave())
		}
		return job, err
	}
	return &Job{View: distrib.View{Nodes: []distrib.Node{{}}},
		Transport: memnet.New(1, memnet.Options{})[0], Leave: func() error { return nil }}, nil
}

// bare refuses flags that models without layers have no use for.
func (c *trainCmd) bare(given map[string]bool) error {
	if c.SaveEvery > 0 && c.Save == "" && c.Resume == "" {
		return usagef("--save-every needs --save DIR")
	}
	idle := append(c.particular(), option{"steps", c.Steps > 0}, option{"mtbf", c.MTBF > 0},
		option{"eval-every", given["eval-every"]}, option{"init", c.Init != ""},
		option{"batch", c.Batch > 0}, option{"fine", c.Fine},
		option{"optimizer", c.Optimizer != ""}, option{"trace", c.Trace != ""},
		option{"profile", c.Profile != ""}, option{"svlog", c.SVLog != ""},
		option{"svlog-keep", c.SVLogKeep > 0})
	if name := firstGiven(idle, c.watchFlags.given(), c.planFlags.given()); name != "" {
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

// descend is this worker's part.
func (c *trainCmd) descend(ctx context.Context, e *env, task runner, about string,
	kept *snapshots) error {
	m := c.member
	if !c.JSON {
		printFields(e.stdout, []field{{"model", c.Model}, {"data", about},
			{"workers", fmt.Sprintf("%d, %s", m.Size(), m.About())}})
		fmt.Fprintln(e.stdout)
	}
	done, err := m.Learn(ctx, task, workers.Learning{
		Settings: fmt.Sprint(c.Model, about, c.Epochs, c.LR, c.Seed, c.Sync),
		Total: func(p workload.Progress) {
			c.standing.step(p.Epoch)
			c.epoch(e.stdout, p)
		},
		View: func(text string, n int) { c.view(e.stdout, text, n) },
		From: kept.from, Saving: kept.saving(task)})
	switch {
	case err != nil:
		return err
	case done.Left:
		c.log(fmt.Sprintf("worker %d leaves after epoch %d, and the others go on", c.rank,
			done.Epoch))
		return nil
	case done.Stopped && c.leads():
		return kept.stopped(done.Epoch, c.Model)
	}
	x := m.Exchanged()
	if c.JSON {
		line := map[string]any{"type": "summary", "exchanged": x}
		if kept.dir != nil {
			line["saved"] = kept.dir.String()
		}
		return json.NewEncoder(e.stdout).Encode(line)
	}
	fields := []field{{"exchanged", exchanged(&x) + " (the first worker)"}}
	if kept.dir != nil {
		fields = append(fields, field{"saved", kept.kept()})
	}
	printFields(e.stdout, fields)
	return nil
}

// view shows who goes on.
func (c *trainCmd) view(w io.Writer, text string, n int) {
	if c.JSON {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "view", "text": text, "workers": n})
		return
	}
	fmt.Fprintln(w, text)
}

// epoch shows what all workers have come to.
func (c *trainCmd) epoch(w io.Writer, p workload.Progress) {
	ratio := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	if c.JSON {
		line := map[string]any{"type": "epoch", "epoch": p.Epoch,
			"loss": p.Mean(), "error": ratio(p.Errors, p.Count),
			"test_error": ratio(p.TestErrors, p.TestCount)}
		if c.Model == "lr" {
			line["test_loss"], line["auc"] = p.TestLoss/float64(max(p.TestCount, 1)), p.AUC
		}
		_ = json.NewEncoder(w).Encode(line)
		return
	}
	line := fmt.Sprintf("epoch %d  loss %.4f", p.Epoch, p.Mean())
	if c.Model != "mf" {
		line += fmt.Sprintf("  error %.4f", ratio(p.Errors, p.Count))
	}
	if p.TestCount > 0 && c.Model == "lr" {
		line += fmt.Sprintf("  test loss %.4f", p.TestLoss/float64(p.TestCount))
	}
	if p.TestCount > 0 {
		line += fmt.Sprintf("  test error %.4f", ratio(p.TestErrors, p.TestCount))
	}
	if c.Model == "lr" {
		line += fmt.Sprintf("  auc %.4f", p.AUC)
	}
	fmt.Fprintln(w, line)
}

// isShallow reports whether a model has no layers.
func isShallow(model string) bool { return slices.Contains(shallow, model) }
