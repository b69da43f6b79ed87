package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph/tensor"
)

// The operations here implement graph.Checker: feeds may be their operands. What
// others refuse, such as packed rows that [Route] did not make, only operations
// make.

// known is an operand's indices, or nil before they are known.
func known(v tensor.View) []int32 {
	if v.Data == nil {
		return nil
	}
	return v.I32()
}

// CheckData wants rows of the table.
func (embedding) CheckData(in []tensor.View) error {
	return checkIDs(known(in[1]), in[0].Type.Size(0))
}

// CheckData wants rows of the table.
func (o embeddingGrad) CheckData(in []tensor.View) error { return checkIDs(known(in[0]), o.Rows) }

// CheckData wants rows of the table.
func (o embeddingAdd) CheckData(in []tensor.View) error { return o.Grad.CheckData(in[1:]) }

// CheckData wants classes.
func (o oneHot) CheckData(in []tensor.View) error { return checkIDs(known(in[0]), o.Depth) }

// CheckData wants labels that are classes.
func (crossEntropy) CheckData(in []tensor.View) error {
	return checkIDs(known(in[1]), in[0].Type.Size(-1))
}

// CheckData wants labels that are classes.
func (crossEntropyGrad) CheckData(in []tensor.View) error { return crossEntropy{}.CheckData(in) }

// CheckData wants labels that are classes.
func (correct) CheckData(in []tensor.View) error { return crossEntropy{}.CheckData(in) }

// CheckData wants what [CTCLoss] does.
func (ctcGrad) CheckData(in []tensor.View) error { return ctc{}.CheckData(in) }

// CheckData wants lengths that are.
func (ctcReadable) CheckData(in []tensor.View) error {
	return checkLengths("label", known(in[1]), in[0].Type.Size(1))
}

// CheckData wants places in a row, or none.
func (takeLast) CheckData(in []tensor.View) error {
	return checkChoices(known(in[1]), in[0].Type.Size(-1))
}

// CheckData wants places in a row, or none.
func (o putLast) CheckData(in []tensor.View) error { return checkChoices(known(in[0]), o.Size) }

// CheckData wants places in a row.
func (o scatterLast) CheckData(in []tensor.View) error { return checkIDs(known(in[0]), o.N) }

// CheckData wants places in a row.
func (gatherLast) CheckData(in []tensor.View) error {
	return checkIDs(known(in[0]), in[1].Type.Size(-1))
}

// CheckData wants experts, or none.
func (o positions) CheckData(in []tensor.View) error { return checkExperts(in, o.Experts) }

// CheckData wants experts, or none.
func (o route) CheckData(in []tensor.View) error { return checkExperts(in, o.Experts) }

// checkExperts reports a first or second choice of n or more.
func checkExperts(in []tensor.View, n int) error {
	for _, v := range in {
		if err := checkChoices(known(v), n); err != nil {
			return err
		}
	}
	return nil
}

// CheckData wants steps counted from 1.
func (adam) CheckData(in []tensor.View) error { return checkCount(in[5]) }

// CheckData wants steps counted from 1.
func (adafactor) CheckData(in []tensor.View) error { return checkCount(in[len(in)-1]) }

// checkCount reports a step before the first: its bias corrections divide by 0.
func checkCount(step tensor.View) error {
	if step.Data == nil || step.F32()[0] >= 1 {
		return nil
	}
	return fmt.Errorf("step %v, want 1 or more", step.F32()[0])
}
