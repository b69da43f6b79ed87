package data

import "slices"

// Whole is the corpus with every pair held out, in the order of the corpus: for the
// evaluation of what was trained on other data. Nothing can be trained on it.
func (c *Corpus) Whole() *Corpus {
	w := &Corpus{Info: c.Info, HeldOut: slices.Concat(c.HeldOut, c.Train), whole: true}
	w.Info.HeldOut = len(w.HeldOut)
	return w
}

// Whole is [Corpus.Whole] of running text.
func (r *Running) Whole() *Running {
	w := &Running{Info: r.Info, HeldOut: slices.Concat(r.HeldOut, r.Train), whole: true}
	w.Info.HeldOut = len(w.HeldOut)
	return w
}
