package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/distrib/strads"
	"github.com/gomem/gomem/distrib/workload"
)

// sparse are the models of few coefficients, whose workers have a schedule.
var sparse = []string{"lasso", "l1-lr"}

func isSparse(model string) bool { return slices.Contains(sparse, model) }

// sparseFlags are for these.
type sparseFlags struct {
	Lambda positive `group:"training" placeholder:"X"`
	Gap    share    `group:"training" placeholder:"SHARE"`
}

// coefficients is regression with few of them. What is drawn of the Lasso has more features than
// samples, and few that matter; of logistic regression it is what lr learns from.
func (q quest) coefficients() (runner, string, error) {
	policy, err := strads.ParsePolicy(q.sync)
	if err != nil {
		return nil, "", usagef("--sync: %w", err)
	}
	m := &workload.L1{Lambda: q.lambda, Schedule: strads.Options{Policy: policy, Seed: q.seed},
		Stop: strads.Stop{Epochs: q.rounds(1000), Gap: cmp.Or(q.gap, 1e-6)}}
	var about string
	part := 10.0 // of the penalty that leaves none
	if q.model == "l1-lr" {
		part = 1000
	}
	switch {
	case q.data != "":
		m.Train, m.Test, about, err = q.labelled(q.labels())
		about = strings.TrimSuffix(about, " and 1 classes") // labels are numbers
	case q.model == "lasso":
		m.Train, m.Test = workload.Regression(q.seed, 400, 200, 2000, 20, 0.5)
		about = "a linear function, drawn: 400 samples, 20 of 2000 features matter"
	default:
		m.Train, m.Test = workload.Clicks(q.seed, 20_000, 10_000, 100_000, 39, 3)
		about = "clicks, drawn: 20000 samples of 39 among 100000 features"
	}
	if err != nil {
		return nil, "", err
	}
	m.Lambda = cmp.Or(m.Lambda, m.Largest()/part)
	return m, fmt.Sprintf("%s, lambda %.6g", about, m.Lambda), m.Check()
}

// labels is how a model's are read.
func (q quest) labels() sampling {
	if q.model == "lasso" {
		return workload.ReadTargets
	}
	return workload.ReadBinary
}

// sparse shows the coefficients of an epoch.
func (c epochs) sparse(p workload.Progress) {
	x := p.Sparse
	mean := p.TestLoss / float64(max(p.TestCount, 1))
	if c.json {
		line := map[string]any{"type": "epoch", "epoch": p.Epoch, "loss": p.Mean(),
			"objective": x.Objective, "gap": x.Gap, "nonzero": x.Nonzero, "live": x.Live,
			"updates": x.Updates, "rounds": x.Rounds}
		if p.TestCount > 0 {
			line["test_loss"] = mean
		}
		if p.TestCount > 0 && c.model == "l1-lr" {
			line["test_error"], line["auc"] = float64(p.TestErrors)/float64(p.TestCount), p.AUC
		}
		_ = json.NewEncoder(c.w).Encode(line)
		return
	}
	line := fmt.Sprintf("epoch %d  objective %.6g  gap %.1e  nonzero %d", p.Epoch, x.Objective,
		x.Gap, x.Nonzero)
	if p.TestCount > 0 {
		line += fmt.Sprintf("  test loss %.4f", mean)
	}
	if p.TestCount > 0 && c.model == "l1-lr" {
		line += fmt.Sprintf("  auc %.4f", p.AUC)
	}
	fmt.Fprintln(c.w, line)
}
