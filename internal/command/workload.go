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
	task, about, err := c.task(scheme.Lag(), scheme.Plan.Gradients())
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

// task is what is to be learnt, and what it is, in a line.
func (c *trainCmd) task(lag int, gradients bool) (runner, string, error) {
	if c.Rotate > 0 && c.Model != "mlr" {
		return nil, "", usagef("--rotate-every does nothing for --model %s: its rows are where "+
			"its data are", c.Model)
	}
	switch c.Model {
	case "mlr":
		return c.classes(lag, gradients)
	case "lr":
		return c.clicks(lag)
	}
	return c.factors(lag, gradients)
}

// rounds is how many epochs there are, unless said otherwise so many.
func (c *trainCmd) rounds(usual int) int { return max(1, int(cmp.Or(int(c.Epochs), usual))) }

// sampling is how files of samples are read: like others, if these are given.
type sampling func(r io.Reader, like *workload.Samples) (*workload.Samples, error)

// labelled is the samples of --data and --eval-data, and what they are, in words.
func (c *trainCmd) labelled(read sampling) (train, test *workload.Samples, about string,
	err error) {
	err = opened("libsvm", string(c.Data), func(r io.Reader) (err error) {
		train, err = read(r, nil)
		return err
	})
	if err == nil && c.EvalData != "" {
		err = opened("libsvm", string(c.EvalData), func(r io.Reader) (err error) {
			test, err = read(r, train)
			return err
		})
	}
	if err == nil {
		about = fmt.Sprintf("%s: %d samples of %d features and %d classes", c.Data, train.Len(),
			train.Features, train.Classes)
	}
	return train, test, about, err
}

// classes is multinomial logistic regression.
func (c *trainCmd) classes(lag int, gradients bool) (runner, string, error) {
	train, test := workload.Covertype(c.Seed, 500, 50)
	about := "covertype's shape, drawn: 500 samples of 54 features and 7 classes"
	if c.Data != "" {
		var err error
		if train, test, about, err = c.labelled(workload.ReadLIBSVM); err != nil {
			return nil, "", err
		}
	}
	m := &workload.MLR{Train: train, Test: test, Epochs: c.rounds(40), Clocks: 10,
		Rate: float64(cmp.Or(c.LR, 0.01)), Decay: 0.99, Slack: lag, Losses: true,
		Gradients: gradients, Rotate: int(c.Rotate)}
	return m, about, m.Check()
}

// clicks is logistic regression with sparse rows. What is drawn has a thousandth of the features of
// Parameter Flow's (105 million, table 2), in as many fields as its Criteo data have.
func (c *trainCmd) clicks(lag int) (runner, string, error) {
	var train, test *workload.Samples
	about := "clicks, drawn: 20000 samples of 39 among 100000 features"
	if c.Data == "" {
		train, test = workload.Clicks(c.Seed, 20_000, 10_000, 100_000, 39, 3)
	} else {
		var err error
		if train, test, about, err = c.labelled(workload.ReadBinary); err != nil {
			return nil, "", err
		}
	}
	m := &workload.LR{Train: train, Test: test, Epochs: c.rounds(10), Clocks: 100,
		Rate: float64(cmp.Or(c.LR, 0.01)), Decay: 0.9, Slack: lag, Losses: true}
	return m, about, m.Check()
}

// factors is the factorisation of a matrix.
func (c *trainCmd) factors(lag int, gradients bool) (runner, string, error) {
	ratings := workload.LowRank(c.Seed, 600, 400, 10, 30000, 0.1)
	about := "30000 elements of a matrix of rank 10, 600 by 400, drawn"
	if c.Data != "" {
		err := opened("mtx", string(c.Data), func(r io.Reader) (err error) {
			ratings, err = workload.ReadMatrixMarket(r)
			return err
		})
		if err != nil {
			return nil, "", err
		}
		about = fmt.Sprintf("%s: %d elements of a matrix, %d by %d", c.Data, ratings.Len(),
			ratings.Rows, ratings.Cols)
	}
	m := &workload.MF{Data: ratings, Rank: 10, Seed: c.Seed, Epochs: c.rounds(40), Clocks: 4,
		Rate: float64(cmp.Or(c.LR, 0.02)), Decay: 0.99, Lambda: 0.01, Slack: lag, Losses: true,
		Gradients: gradients,
		// What one worker alone has is lost with it.
		Both: c.Min > 0 || c.Save != "" || c.Resume != ""}
	return m, about, m.Check()
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
