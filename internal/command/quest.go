package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/distrib/workload"
)

// quest is what a model without layers is to learn, as flags say it.
type quest struct {
	model      string
	data, held string // files to learn from, and that are held out; "": drawn, and none
	seed       uint64
	epochs     int     // 0: the model's own number
	rate       float64 // of learning; 0: the model's own
	rotate     int     // epochs after which rows change their places
	rank       int     // of a factorisation; 0: as usual
	lambda     float64 // the penalty of coefficients; 0: a part of the largest
	gap        float64 // to which these are learnt; 0: as usual
	sync       string
	scheduled  bool // workers need not be kept in step
	lag        int  // of their scheme, if they are
	lda        ldaRun
	trees      treeRun
	threads    int    // that sample documents; 0: one
	host       int64  // bytes of memory; 0: no matter
	disk       string // a directory for documents; "": the system's, if there is a budget
	gradients  bool   // that sends these
	// both has factors of both sides shared: what one worker alone has is lost with it.
	both bool
}

// task is what is to be learnt, and what it is, in a line.
func (q quest) task() (runner, string, error) {
	if q.rotate > 0 && q.model != "mlr" {
		return nil, "", usagef("--rotate-every does nothing for --model %s: its rows are where "+
			"its data are", q.model)
	}
	switch q.model {
	case "mlr":
		return q.classes()
	case "lr":
		return q.clicks()
	case "lasso", "l1-lr":
		return q.coefficients()
	case "lda":
		return q.topics()
	case "gbt":
		return q.boosted()
	}
	return q.factors()
}

// run is what a directory of snapshots says of it, and of its data.
func (q quest) run(about string, task runner) tablesRun {
	r := tablesRun{Model: q.model, Data: q.data, EvalData: q.held, Seed: q.seed, LR: q.rate,
		Epochs: q.epochs, About: about, Factors: q.rank, Lambda: q.lambda, Gap: q.gap}
	shaped := func(s *workload.Samples) {
		shape := s.Shape()
		r.Shape = &shape
	}
	switch t := task.(type) {
	case *workload.MLR:
		shaped(t.Train)
	case *workload.LR:
		shaped(t.Train)
	case *workload.L1:
		shaped(t.Train)
	case *workload.MF:
		r.Matrix = matrixOf(t.Data)
	case *workload.Strata:
		r.Matrix = matrixOf(t.Data)
	case *workload.Topics, *workload.PLDA:
		r.LDA = &q.lda
		r.LDA.Words = topicsIn(task).Train.Names
	case *workload.GBT:
		shaped(t.Train)
		r.Trees = &q.trees
	}
	return r
}

// rounds is how many epochs there are, unless said otherwise so many.
func (q quest) rounds(usual int) int { return max(1, cmp.Or(q.epochs, usual)) }

// sampling is how files of samples are read: like others, if these are given.
type sampling func(r io.Reader, like *workload.Samples) (*workload.Samples, error)

// labelled is the samples of --data and --eval-data, and what they are, in words.
func (q quest) labelled(read sampling) (train, test *workload.Samples, about string,
	err error) {
	err = opened("libsvm", q.data, func(r io.Reader) (err error) {
		train, err = read(r, nil)
		return err
	})
	if err == nil && q.held != "" {
		err = opened("libsvm", q.held, func(r io.Reader) (err error) {
			test, err = read(r, train)
			return err
		})
	}
	if err == nil {
		about = fmt.Sprintf("%s: %d samples of %d features and %d classes", q.data, train.Len(),
			train.Features, train.Classes)
	}
	return train, test, about, err
}

// classes is multinomial logistic regression.
func (q quest) classes() (runner, string, error) {
	train, test := workload.Covertype(q.seed, 500, 50)
	about := "covertype's shape, drawn: 500 samples of 54 features and 7 classes"
	if q.data != "" {
		var err error
		if train, test, about, err = q.labelled(workload.ReadLIBSVM); err != nil {
			return nil, "", err
		}
	}
	m := &workload.MLR{Train: train, Test: test, Epochs: q.rounds(40), Clocks: 10,
		Rate: cmp.Or(q.rate, 0.01), Decay: 0.99, Slack: q.lag, Losses: true,
		Gradients: q.gradients, Rotate: q.rotate}
	return m, about, m.Check()
}

// clicks is logistic regression with sparse rows. What is drawn has a thousandth of the features of
// Parameter Flow's (105 million, table 2), in as many fields as its Criteo data have.
func (q quest) clicks() (runner, string, error) {
	var train, test *workload.Samples
	about := "clicks, drawn: 20000 samples of 39 among 100000 features"
	if q.data == "" {
		train, test = workload.Clicks(q.seed, 20_000, 10_000, 100_000, 39, 3)
	} else {
		var err error
		if train, test, about, err = q.labelled(workload.ReadBinary); err != nil {
			return nil, "", err
		}
	}
	m := &workload.LR{Train: train, Test: test, Epochs: q.rounds(10), Clocks: 100,
		Rate: cmp.Or(q.rate, 0.01), Decay: 0.9, Slack: q.lag, Losses: true}
	return m, about, m.Check()
}

// usualRank is the numbers of a row and of a column of a matrix.
const usualRank = 10

// factors is the factorisation of a matrix.
func (q quest) factors() (runner, string, error) {
	ratings := workload.LowRank(q.seed, 600, 400, 10, 30000, 0.1)
	about := "30000 elements of a matrix of rank 10, 600 by 400, drawn"
	if q.data != "" {
		var err error
		if ratings, err = q.ratings(); err != nil {
			return nil, "", err
		}
		about = fmt.Sprintf("%s: %d elements of a matrix, %d by %d", q.data, ratings.Len(),
			ratings.Rows, ratings.Cols)
	}
	rank, epochs, rate := cmp.Or(q.rank, usualRank), q.rounds(40), cmp.Or(q.rate, 0.02)
	lambda := cmp.Or(q.lambda, 0.01)
	if q.scheduled {
		m := &workload.Strata{Data: ratings, Rank: rank, Seed: q.seed, Epochs: epochs, Rate: rate,
			Lambda: lambda, Decay: 0.99}
		return m, about, m.Check()
	}
	m := &workload.MF{Data: ratings, Rank: rank, Seed: q.seed, Epochs: epochs, Clocks: 4,
		Rate: rate, Decay: 0.99, Lambda: lambda, Slack: q.lag, Losses: true,
		Gradients: q.gradients, Both: q.both}
	return m, about, m.Check()
}

// ratings are those of --data.
func (q quest) ratings() (r *workload.Ratings, err error) {
	if dir, ok := strings.CutPrefix(q.data, "ml:"); ok {
		return movieLens(dir)
	}
	err = opened("mtx", q.data, func(in io.Reader) (err error) {
		r, err = workload.ReadMatrixMarket(in)
		return err
	})
	if _, usage := errors.AsType[*usageError](err); usage {
		err = usagef("--data %s: want mtx:FILE or ml:DIR", q.data)
	}
	return r, err
}

// movieLens reads the ratings of a MovieLens set, which are in one file of its directory.
func movieLens(dir string) (r *workload.Ratings, err error) {
	var found []string
	for _, name := range workload.MovieLensFiles() {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s: %s of ratings: want one of %s in it", dir,
			counted(len(found), "file"), either(workload.MovieLensFiles()))
	}
	spec := "ml:" + filepath.Join(dir, found[0])
	err = opened("ml", spec, func(in io.Reader) (err error) {
		r, err = workload.ReadMovieLens(in, found[0])
		return err
	})
	return r, err
}
