// Package split rewrites graphs for budgets that single operations exceed: it cuts
// operations into parts that follow one another, and adds gradients up where they
// are. Results stay the same to the bit.
//
// # What an operation needs
//
// While an operation is executed its operands, its results and its workspace are in
// one memory, whatever a plan swaps or computes again. So the neediest operation is
// a floor below which no policy comes (see [Needs]). The usual one is the end of a
// language model: a row of logits for every position has as many elements as there
// are words.
//
// # What is cut
//
// An operation that needs more than the limit is cut along its leading axes, if it
// is a [graph.Cutter]. One alone would gain nothing: its operands and results would
// still be whole. So what makes or reads a large value that is cut is cut with it, at
// the same places, and so on: a region. Within a region a value exists in parts only.
// At its border a part of an operand is a view of the whole, or of those values that
// were only joined to make it, and the parts of a result are joined, as far as what is
// read is in several of them.
//
// Cut are the values between: from the product that makes logits through their
// cross-entropy and its gradient to the products that read that, a part after the
// other, unless the gradient needs all of the loss. Then the parts are at least values
// of their own, which a plan can swap or compute again one by one. An evaluation's
// logits are never whole either: their losses, best classes and hits are cut with them.
//
// # Why bits stay
//
// A part of a result's rows is computed as the whole computes them: operations say
// where that is so, down to the order in which a product adds up, which is another for
// few rows than for many. Noise goes on where it was. A gradient of weights is a sum
// over rows. The kernel adds it up in runs of some hundred rows: it holds the sum of a
// run in registers, and adds it to the result. So the parts begin where runs begin,
// each is added to the result in place, and the runs stay as long as they were; a
// single run may stop anywhere, since it goes on in registers from what it stored. A
// plain sum over rows, such as the gradient of a bias, is the sum of blocks of rows;
// its parts add to the blocks. A sum that is added up in another way is not cut.
//
// # Images
//
// Convolutions, their gradients, windows and what is elementwise beside them are cut between
// images. A part has as many as the kernel adds up as it does all of them. The gradient of filters
// is added up by blocks of images, whose number the shape sets: parts begin where blocks do, and
// add to the sums of the whole, which may be several that are added at the end.
//
// A norm over the batch needs all of its operand before it makes any of its result, so it is first
// made in stages, a [graph.Staged]: moments, which are added up image by image in f64, what they
// come to, and the result; and so is its gradient. Planes of less than a hundred elements are
// added up across channels, in f32 and several times over: norms of those stay whole.
//
// # Order
//
// The parts of a region are created one after the other, as far as nothing that
// follows needs something whole of what is before; so the order of creation, which
// policies keep or start from, is one in which parts are short-lived.
//
// # How many parts
//
// A [Survey] finds regions, and builds the graph for any numbers of parts. [Split] looks
// for about the fewest with which the neediest operation of each meets the limit, by what
// a few numbers come to, and leaves a region as it is where parts do not help.
//
// # Sums of gradients
//
// What is read several times has a gradient that is a sum. Where the partial gradients
// are products, as those of recurrent weights, one of them is as large as the sum.
// [Accumulate] has each product add itself to the sum, in place, in the order in which
// they were added before. That keeps bits where the kernel visits the result once, with
// the complete sum; a product of more than one run is left as it is.
// An embedding's gradient is added up row by row before it is added.
//
// # Sequences
//
// What goes along a sequence step by step, a [graph.Sequence], is made some steps at a time where
// it needs more than the limit, before all else: into operations on some steps each, of which each
// takes the state that the one before it leaves. What one of them keeps for its gradient can be
// away, or be computed again, while others run. Sequences of one length that read each other's rows
// are cut at the same steps.
//
// A loop (package control) gives its parts its body, and its gradient is one, too, whose sums over
// steps are a state: so its bits stay wherever it is cut, and it says into how many parts by its
// sizes: as many as meet the limit, or with which its rows are a sixteenth of the rest.
//
// An LSTM as one operation makes the gates of all steps, which are most of what it needs, and its
// gradient reads them. One operation of a part makes what the input gives to the gates, the next
// runs the steps; each needs a half of the weights. Backward, one makes the gradients of the gates,
// and products those of the input and of the weights, the rows for the input and those for the
// state in values of their own. These are joined where updates are. Its bits stay: the product with
// the input sums as that of all steps does. The gradient of the weights is added up by products of
// some hundred rows each, from the last steps to the first, by the definition of the operation; the
// parts are the steps of one product. So a sequence of fewer rows stays whole.
//
// # What is not done
//
// Only leading axes are cut, since other slices would have to be copied: a convolution of one image
// is whole, since its channels are not leading, and so is attention to one text. Updates are not
// cut. What needs all of a value that is in
// parts joins them, and so needs it twice: parts are not made where they are joined.
// Nothing is computed twice: that is a plan's choice.
package split
