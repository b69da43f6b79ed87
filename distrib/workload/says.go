package workload

import (
	"fmt"

	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/distrib/strads"
	"github.com/gomem/gomem/internal/libm"
)

// Says is what a model says of a sample, by the features that are not 0, ascending, and their
// values: one number, or the probability of the second of two classes, or that of each class.
type Says func(index []int32, value []float32) []float64

// Says is the probability of class 1, by what is learnt.
func (l *LR) Says(learnt State) (Says, error) {
	w := learnt.Rows[0]
	return func(index []int32, value []float32) []float64 {
		return []float64{sigmoid(float64(logit(w, index, value)))}
	}, nil
}

// Says is the probabilities of all classes, by what is learnt.
func (m *MLR) Says(learnt State) (Says, error) {
	w, p := learnt.Rows[0], make([]float32, m.Train.Classes)
	return func(index []int32, value []float32) []float64 {
		softmax(w, m.Train.Features, index, value, p)
		return double(p)
	}, nil
}

// Says is a number, or the probability of class 1, by what is learnt.
func (m *L1) Says(learnt State) (Says, error) {
	ps := m.Params()
	for i, p := range ps {
		p.Data = learnt.Rows[i]
	}
	b := pointOf(ps, learnt.Epoch).B
	return func(index []int32, value []float32) []float64 {
		z := logit(b, index, value)
		if m.loss() == strads.Logistic {
			z = sigmoid(z)
		}
		return []float64{z}
	}, nil
}

// Says is a number, or the probability of class 1, by what is learnt.
func (m *GBT) Says(learnt State) (Says, error) {
	ps := m.Grown(learnt.Epoch)
	for i, p := range ps {
		p.Data = learnt.Rows[i]
	}
	forest, err := m.forest(ps)
	if err != nil {
		return nil, fmt.Errorf("gbt: %w", err)
	}
	row := make([]float32, m.Train.Features)
	return func(index []int32, value []float32) []float64 {
		z := along(forest.Trees, float64(forest.Base), row, index, value)
		if m.Loss == gbt.Logistic {
			z = sigmoid(z)
		}
		return []float64{z}
	}, nil
}

// along adds what trees say of a sample to a number. The row is of zeros, before and after.
func along(trees []gbt.Tree, says float64, row []float32, index []int32, value []float32) float64 {
	for k, j := range index {
		row[j] = value[k]
	}
	for _, t := range trees {
		says += float64(t.At(func(j int32) float32 { return row[j] }))
	}
	for _, j := range index {
		row[j] = 0
	}
	return says
}

// sigmoid is the probability of log odds.
func sigmoid(z float64) float64 { return 1 / (1 + libm.Exp(-z)) }

// Says is what a factorisation says of an element of its matrix, by what is learnt: one shares both
// factors.
func (m *MF) Says(learnt State) func(row, col int) float64 {
	return func(row, col int) float64 {
		return float64(dot(rowOf(learnt.Rows[1], m.Rank, int32(row)),
			rowOf(learnt.Rows[0], m.Rank, int32(col))))
	}
}
