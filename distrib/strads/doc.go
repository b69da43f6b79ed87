// Package strads trains regression with few coefficients by coordinate descent, of which a schedule
// says what is updated together: structure-aware parallelisation, as STRADS has it (E. P. Xing et
// al., Strategies and Principles of Distributed Machine Learning on Big Data, 2016, section 3.1).
//
// # The problem
//
// Of all coefficients b those are wanted that make loss(y, Xb) + L1 |b| least: half of the squared
// error, or the cross entropy of two classes. A coefficient's update is the least of a parabola in
// it alone, which lies above the loss and touches it; the loss of squares is that parabola. Two
// coefficients that are updated at the same time do not know of each other, which costs the product
// of their columns: where that is large, the objective may rise.
//
// # A round
//
// schedule: candidates are drawn, with probabilities in proportion to the squares of how far they
// have moved last. Of these alone it is looked up whose columns are correlated by kappa or more.
// Such candidates depend on each other, unless one is 0 and was at its last update. [Blocks] makes
// connected components of them, [Independent] keeps those that depend on none before them. Blocks
// go to workers, the largest first, each to who has the least to do.
//
// push: a worker has some of the samples, and partial sums of gradients, which are added up. A
// candidate that stays 0 by itself is done with, so that its correlations are not asked for.
//
// pull: workers go through their blocks, a coefficient after the other, and tell all what has
// become of them. Within a block an update changes the gradients of the others by products of
// columns, which are known.
//
// # Who has what
//
// Samples are divided, not features. Then a coefficient that is updated costs a worker one number
// that it sends and one that it receives, however many samples there are. Were features divided, a
// change of a coefficient would be a change of predictions, which is a column: as many numbers as
// samples, or as its column has entries, to all workers; and to see whether two columns are
// correlated, one would have to be sent. Coefficients are with all workers, so everyone draws the
// same candidates, and no one has to be told of a schedule.
//
// # What the paper leaves open, and what is different here
//
//   - How candidates are drawn at the beginning, when none has moved. Each epoch begins with a look
//     at the gradients of all coefficients, which the duality gap needs anyway. How far one would
//     move by it is how fast it changes.
//   - Epsilon, without which no coefficient that stands still is drawn again. A constant is too
//     large at the end, when all changes are small; so it is a share: one in ten candidates is
//     drawn without a preference.
//   - That a coefficient stays 0 is a guess, and correlations below kappa add up. So workers add up
//     how curved the loss is along the moves of all blocks together; where these would make the
//     objective rise, they go the part of the way that is best. So it never rises, whatever kappa
//     is (TestNeverRises), and where columns are orthogonal every move is a whole one, with the
//     bits of the serial run (TestOrthogonal). [Unchecked] does not ask.
//   - Who is early repeats its updates while it waits. Here it is known from the work of all
//     blocks who will be early, and how often it may repeat, so that a run has the same bits each
//     time.
//   - When to stop. Slopes, scaled, are a point of the dual problem, so every look has a bound of
//     how far the objective is from the least one. By that bound, too, it knows of coefficients
//     that are 0 in the end, which are not drawn any more (gap-safe screening).
//   - The parabola of the logistic loss need not lie above it everywhere, but as far as the step
//     goes: its curvature near to there is less than the greatest, a fourth, and steps are longer.
//     Those of [Independent] are not, who step without knowing of each other.
//
// # One worker
//
// One who has all samples needs no schedule: everything is one block. [Problem.Solve] goes through
// the coefficients that matter, as long as that is worth more than to look at all of them.
package strads
