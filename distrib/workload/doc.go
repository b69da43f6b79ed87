// Package workload is learning without deep networks, as the papers on parameter servers
// have it: logistic regression, of many classes or of two with sparse rows of weights, and matrix
// factorisation, by stochastic gradient descent, on a [distrib.Synchronizer].
//
// A workload is a value, [MLR], [LR] or [MF], that describes the task; Run is one worker's part
// of it. The data are divided among the workers, and everything that they share is
// parameters of the synchronizer: the weights of the regression, one row a class; of a
// factorisation X = L R^T the matrix R, one row a column of X. The rows of L are touched by
// the worker alone that has the ratings in them, and stay with it unless [MF.Both] asks
// for the papers' way, which keeps L on the servers too.
//
// Within a clock a worker steps through its samples one after the other, on its own copy,
// as Bösen's applications do, and then pushes what that came to. That is plain SGD with
// delayed updates, and needs a step size. With Gradients it pushes sums of gradients
// instead, computed from the values as pulled, for owners whose rule takes steps of its
// own (AdaRevision, Adam).
//
// [Newton] learns what MLR does by a quasi-Newton method, of which workers send vectors, as Orpheus
// has it: [SVG] and [Secant] are its Algorithm 1.
//
// [Topics] finds topics of documents by a schedule, of which nothing is kept in step, and [PLDA]
// by a table that workers share and read stale.
//
// [GBT] learns trees, an epoch each, by a schedule of its own: there is nothing that a synchronizer
// would keep in step.
//
// Serial is the same task in one process without a synchronizer, in float64 and with all
// data: what runs of several workers are compared with.
//
// Data are drawn here ([Covertype], [Clicks], [LowRank], [Friedman]) or read from files in
// LIBSVM's and MatrixMarket's formats, so that the papers' own files can be used where they are
// at hand. What is learnt is a [State], by which a task [Says] what it predicts.
package workload
