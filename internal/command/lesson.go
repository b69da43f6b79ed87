package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/lda"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/train"
)

// lesson is how one worker learns a model without layers.
type lesson struct {
	worker   *worker
	rank     int
	model    string
	about    string // its data, in words
	settings string // that all workers must have
	kept     *snapshots
	shows    epochs
	memory   *ldaMemory   // of topics whose documents are on a disk; nil: no matter
	topics   func() error // shows those that were learnt; nil: there are none
}

// meet joins the job, which one worker alone is too.
func meet(ctx context.Context, cluster Cluster, f JobFlags, w World, log func(string),
	logger *slog.Logger) (*Job, error) {
	if w.Size > 1 {
		job, err := cluster.Join(ctx, f, w, log, logger)
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

// descend is this worker's part.
func (l *lesson) descend(ctx context.Context, task runner) error {
	m := l.worker.member
	l.shows.begin(l.about, m)
	if l.memory != nil {
		if err := l.shows.memory(l.memory); err != nil {
			return err
		}
	}
	done, err := m.Learn(ctx, task, workers.Learning{
		Settings: l.settings,
		Total: func(p workload.Progress) {
			l.worker.standing.step(p.Epoch)
			l.shows.epoch(p)
		},
		View: l.shows.view,
		From: l.kept.from, Saving: l.kept.saving(task)})
	switch {
	case err != nil:
		return err
	case done.Left:
		l.worker.log(fmt.Sprintf("worker %d leaves after epoch %d, and the others go on", l.rank,
			done.Epoch))
		return nil
	case done.Stopped && l.worker.leads():
		return l.kept.stopped(done.Epoch, l.model)
	}
	if l.topics != nil {
		if err := l.topics(); err != nil {
			return err
		}
	}
	return l.shows.end(m.Exchanged(), l.kept)
}

// epochs shows how a model without layers gets better, in lines or as JSON.
type epochs struct {
	model string
	json  bool
	w     io.Writer
}

// begin shows who learns from what.
func (c epochs) begin(about string, m *workers.Member) {
	if c.json {
		return
	}
	printFields(c.w, []field{{"model", c.model}, {"data", about},
		{"workers", fmt.Sprintf("%d, %s", m.Size(), m.About())}})
	fmt.Fprintln(c.w)
}

// view shows who goes on.
func (c epochs) view(text string, n int) {
	if c.json {
		_ = json.NewEncoder(c.w).Encode(map[string]any{"type": "view", "text": text, "workers": n})
		return
	}
	fmt.Fprintln(c.w, text)
}

// line shows an object.
func (c epochs) line(x any) error { return json.NewEncoder(c.w).Encode(x) }

// likelihood shows how likely documents are by a topic model.
func (c epochs) likelihood(p workload.Progress) {
	held := lda.Perplexity(-p.TestLoss, p.TestCount)
	if c.json {
		x := map[string]any{"type": "epoch", "epoch": p.Epoch, "loss": p.Mean(),
			"log_likelihood": -p.Loss}
		if p.TestCount > 0 {
			x["test_perplexity"] = held
		}
		_ = c.line(x)
		return
	}
	text := fmt.Sprintf("epoch %d  loss %.4f  log likelihood %.0f", p.Epoch, p.Mean(), -p.Loss)
	if p.TestCount > 0 {
		text += fmt.Sprintf("  test perplexity %.2f", held)
	}
	fmt.Fprintln(c.w, text)
}

// epoch shows what all workers have come to.
func (c epochs) epoch(p workload.Progress) {
	if c.model == "lda" {
		c.likelihood(p)
		return
	}
	ratio := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	if p.Forest != nil {
		c.trees(p)
		return
	}
	if p.Sparse != nil {
		c.sparse(p)
		return
	}
	if c.json {
		line := map[string]any{"type": "epoch", "epoch": p.Epoch,
			"loss": p.Mean(), "error": ratio(p.Errors, p.Count),
			"test_error": ratio(p.TestErrors, p.TestCount)}
		if c.model == "lr" {
			line["test_loss"], line["auc"] = p.TestLoss/float64(max(p.TestCount, 1)), p.AUC
		}
		_ = json.NewEncoder(c.w).Encode(line)
		return
	}
	line := fmt.Sprintf("epoch %d  loss %.4f", p.Epoch, p.Mean())
	if c.model != "mf" {
		line += fmt.Sprintf("  error %.4f", ratio(p.Errors, p.Count))
	}
	if p.TestCount > 0 && c.model == "lr" {
		line += fmt.Sprintf("  test loss %.4f", p.TestLoss/float64(p.TestCount))
	}
	if p.TestCount > 0 {
		line += fmt.Sprintf("  test error %.4f", ratio(p.TestErrors, p.TestCount))
	}
	if c.model == "lr" {
		line += fmt.Sprintf("  auc %.4f", p.AUC)
	}
	fmt.Fprintln(c.w, line)
}

// end shows what was exchanged, and what was saved.
func (c epochs) end(x train.Exchanged, kept *snapshots) error {
	if c.json {
		line := map[string]any{"type": "summary", "exchanged": x}
		if kept.dir != nil {
			line["saved"] = kept.dir.String()
		}
		return json.NewEncoder(c.w).Encode(line)
	}
	fields := []field{{"exchanged", exchanged(&x) + " (the first worker)"}}
	if kept.dir != nil {
		fields = append(fields, field{"saved", kept.kept()})
	}
	printFields(c.w, fields)
	return nil
}
