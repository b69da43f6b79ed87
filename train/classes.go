package train

import (
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
)

// ClassScorer is a scorer of classifiers, whose first output is the class that is said of each
// example, i32[batch 1] or i32[batch], and whose batches have the labels as second input,
// i32[batch], 0 for none. It adds to a confusion, and has no metrics of its own.
func ClassScorer(c *Confusion) Scorer { return classScorer{c} }

type classScorer struct{ confusion *Confusion }

// Score adds the examples that have a label.
func (s classScorer) Score(b data.Batch, outputs []gomem.Tensor,
	_ func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	said, labels := outputs[0].I32(), b.Inputs[1].I32()
	if len(said) != len(labels) {
		return fmt.Errorf("%d classes are said of %d examples", len(said), len(labels))
	}
	for i, label := range labels {
		if label != 0 {
			s.confusion.Add(int(label), int(said[i]))
		}
	}
	return nil
}

// Metrics are none: the confusion is the result.
func (classScorer) Metrics() (map[string]float64, error) { return nil, nil }
