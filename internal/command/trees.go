package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/distrib/workload"
)

// treeTexts are what --help says of the flags of trees, as in flagTexts.
const treeTexts = `
--tree-depth
    gbt: questions from the root of a tree to a leaf, at most (default 6).
--min-leaf
    gbt: samples of a leaf, at least (default 20).
`

// treeFlags are those of gradient-boosted trees.
type treeFlags struct {
	Depth count `name:"tree-depth" group:"model" placeholder:"N"`
	Least count `name:"min-leaf" group:"model" placeholder:"N"`

	loss string // of the model's flags
}

func (f treeFlags) given() []option {
	return []option{{"tree-depth", f.Depth > 0}, {"min-leaf", f.Least > 0}}
}

// treeRun is what a directory of snapshots says of trees, beside their number.
type treeRun struct {
	Depth int    `json:"tree_depth"`
	Loss  string `json:"loss"`
	Least int    `json:"min_leaf,omitempty"` // 0: as usual
}

// run is what flags say, and the usual of what they do not.
func (f treeFlags) run() treeRun {
	return treeRun{cmp.Or(int(f.Depth), 6), cmp.Or(f.loss, gbt.Squares.String()),
		cmp.Or(int(f.Least), minLeaf)}
}

// adopt takes the settings of a run that is gone on from. What flags say must be the same.
func (f *treeFlags) adopt(dir location, run treeRun) error {
	own := f.run()
	switch {
	case f.Depth > 0 && own.Depth != run.Depth:
		return fmt.Errorf("%s: the run there has --tree-depth %d, not %d", dir, run.Depth,
			own.Depth)
	case f.loss != "" && own.Loss != run.Loss:
		return fmt.Errorf("%s: the run there has --loss %s, not %s", dir, run.Loss, own.Loss)
	case f.Least > 0 && own.Least != cmp.Or(run.Least, minLeaf):
		return fmt.Errorf("%s: the run there has --min-leaf %d, not %d", dir,
			cmp.Or(run.Least, minLeaf), own.Least)
	}
	*f = treeFlags{Depth: count(run.Depth), Least: count(run.Least), loss: run.Loss}
	return nil
}

// minLeaf is how many samples a leaf has at least, unless it is said: as many as others have it.
const minLeaf = 20

// model is a forest of so many trees, without data.
func (r treeRun) model(trees int, rate, lambda float64) (*workload.GBT, error) {
	loss, err := gbt.ParseLoss(r.Loss)
	if err != nil {
		return nil, usagef("--loss: %w", err)
	}
	m := &workload.GBT{Options: gbt.Options{Loss: loss, Trees: trees, Depth: r.Depth, Rate: rate,
		L2: lambda, MinLeaf: cmp.Or(r.Least, minLeaf)}}
	return m, m.Options.Check()
}

// boosted is gradient-boosted trees.
func (q quest) boosted() (runner, string, error) {
	m, err := q.trees.model(q.rounds(100), cmp.Or(q.rate, 0.1), cmp.Or(q.lambda, 1))
	if err != nil {
		return nil, "", err
	}
	loss := m.Loss
	about := "Friedman's function, drawn: 20000 samples of 10 features"
	switch {
	case q.data == "":
		m.Train, m.Test = workload.Friedman(q.seed, 20_000, 5_000, loss == gbt.Logistic)
	case loss == gbt.Logistic:
		m.Train, m.Test, about, err = q.labelled(workload.ReadBinary)
	default:
		m.Train, m.Test, about, err = q.labelled(workload.ReadTargets)
		about = strings.TrimSuffix(about, " and 1 classes") // labels are numbers
	}
	if err != nil {
		return nil, "", err
	}
	return m, about, m.Check()
}

// trees shows how well a forest does.
func (c epochs) trees(p workload.Progress) {
	classes, ratio := *p.Forest == gbt.Logistic, func(n, of int) float64 {
		return float64(n) / float64(max(of, 1))
	}
	line := map[string]any{"type": "epoch", "epoch": p.Epoch, "loss": p.Mean()}
	text := fmt.Sprintf("epoch %d  loss %.4f", p.Epoch, p.Mean())
	if classes {
		line["error"] = ratio(p.Errors, p.Count)
		text += fmt.Sprintf("  error %.4f", line["error"])
	}
	if p.TestCount > 0 {
		line["test_loss"] = p.TestLoss / float64(p.TestCount)
		text += fmt.Sprintf("  test loss %.4f", line["test_loss"])
	}
	if p.TestCount > 0 && classes {
		line["test_error"], line["auc"] = ratio(p.TestErrors, p.TestCount), p.AUC
		text += fmt.Sprintf("  test error %.4f  auc %.4f", line["test_error"], p.AUC)
	}
	if c.json {
		_ = c.line(line)
		return
	}
	fmt.Fprintln(c.w, text)
}
