// Package mesh divides a graph over the coordinates of a mesh: the axes of its values that
// have names, such as the batch or the experts, are cut into equal blocks, and every
// operation is computed block by block. On one device the blocks follow one another, so that
// each can be staged, swapped and computed again alone: what an operation needs at once is a
// block of its operands and results, not all of them. It is how an operation larger than the
// device runs at all (J. Wei, thesis 2019, 6.5: over-partitioning).
//
// # What says what is divided
//
// A [Layout] names axes of inputs and variables, and the axes of the [Mesh] along which they
// are divided, as in Mesh-TensorFlow (Shazeer et al. 2018). Names are handles on leaves and
// nothing more: an axis of a value inside may be the product of two named ones, or part of
// one. What follows for all other values follows from the rules of the operations
// ([graph.Splitter]): which axes of operands and results are one loop, and over which loops
// an operation sums.
//
// A variable that is one element of an axis, as the weights of one expert among many are
// ([graph.Graph.Place]), is not divided but placed: it is at one coordinate, and so is what
// reads it. Where values at several coordinates are joined along an axis, or are what a
// value was taken apart into, that axis is divided.
//
// # Propagation
//
// [Propagate] sweeps over the nodes to and fro until nothing changes, and never takes back
// what it has found out: first what is placed, then forward from operands to results, and
// then both ways, so that a weight is divided where all that is made of it is, and a
// gradient as what it is for. An axis of the mesh divides one axis of a value at most; an
// axis of a value is divided along one. What is forward comes before what is backward
// because it is what the layout is about: swept at once, a gradient's way of being divided
// would decide about activations. Where a node could be divided along one axis by several of
// its loops, as a product of tokens by batch and weights by expert, and processes lie along
// it, that loop is taken for which they send the fewest bytes: so tokens move to experts, not
// experts to tokens, where those are more.
//
// A variable is written in place, by updates that must find it in the pieces that they
// compute. Where an update cannot, its variables are pinned: they stay whole, and all begins
// anew. An update that needs to know all of its variable, as Adafactor does whose rate depends
// on norms, is first composed of operations that divide, if it can be ([graph.Composer]); and so
// are losses that have no logits (package graph/join).
//
// # Lowering
//
// [Lower] goes through the nodes in order. A node is made once for every coordinate along
// those axes of the mesh that divide its loops, of the blocks of its operands there. Where a
// loop is summed over, the partial sums are added up in the order of the coordinates, so
// that results repeat to the bit. Everything else is made once, however many slices read it.
//
// A value that is wanted in other blocks than it was computed in is converted: sliced,
// joined, or moved from one axis to another, from that form of it that there is from which
// the fewest bytes are copied. Every form is made once. Slices along the first axis are
// views.
//
// A divided variable is a variable for each block. They begin as blocks of what the whole
// begins with, and whoever reads or sets the variable, or saves it, sees the whole.
//
// # Processes
//
// Along every axis the mesh has some processes, and each of them some slices. [Lower] makes the
// graph of one process, of a rank: it computes the blocks at its own coordinates, and has the
// variables, or the blocks of them, that are there ([Propagation.Owners]); inputs are fed whole
// to every process, which takes its slices of them, and what is fetched is whole on every one.
//
// What a process lacks is exchanged among those along an axis of the mesh: blocks are gathered,
// or swapped all to all where another axis is to be divided; partial sums, added up inside
// first, are reduced, or scattered where the sum is wanted in blocks; and what is at one place
// is sent to the one that wants it, or copied to all others. Exchanges are along the first axis
// of a value: another is brought there by slicing and joining. Of the forms of a value that
// there are, and the ways from them, those are taken by which the fewest bytes are sent, and of
// these, copied.
//
// All that is decided follows from where values are, and never from which of their blocks are
// here. So all processes on a line along an axis have the same exchanges, under the same names,
// in the same order, also those that have nothing to give, and give zeros, or need nothing of
// the result. These take part as long as anybody needs it: [Result.Kept]. Of what is at one
// place along another axis, as the gradient of an expert is of which processes have parts of
// the batch, only the line there exchanges anything.
//
// Sums wait. Where a sum over processes is only added to others, scaled, reshaped or reduced
// further, that is done with each process's terms, and what comes of it is added up instead:
// once for the gradients of all three projections of an attention, and for a mixture of experts
// after its rows have been combined. Rows that are packed by expert stay with the
// process that has the expert, from the first product to the last, through what makes zeros
// of zeros: a layer with experts on n processes and all else everywhere sends 2(n-1)/n of its
// output's bytes forward and as many backward, and of its gates' gradients, dense or sparse.
//
// Rows that are wanted travel alone. Where the batch and sparse experts are divided along one
// axis, every process routes all tokens, by their choices, which are gathered; so all know which
// rows which of them want. Of tokens, of the gradients of what comes of them and of the weights
// of choices each gets the rows that its experts want ([ops.AllGatherSome]); and of its sums over
// experts it sends each process the rows of its tokens that are not zero
// ([ops.ReduceScatterSome]). What that takes is known in the step: of tokens with two choices
// at most min(2, n-1)/n of the bytes by each process, and less than 2(n-1)/n² of them where
// experts are chosen evenly: at most 2/n of what all tokens would take.
//
// What each process computes for itself, of the same values, has the same bits everywhere; and
// a sum is the same bits for all who reduce it. So variables that several have stay equal.
//
// # What results are
//
// What is only divided has the bits of the whole. What is summed up in parts has been rounded
// elsewhere: so losses and weights of a step are within 1e-6 of those of the whole graph,
// and longer runs drift apart as two runs do whose weights differ in the last place.
// Where routing or another choice depends on rounding, choices flip.
//
// # What is not done
//
// Blocks are equal: a size that the mesh does not divide is refused where the layout names
// it, and computed whole where it comes up inside: among processes it is gathered then, which
// the list of conversions shows ([Result.Print]). A loop that is the minor part of an axis
// is not divided, as its blocks would lie in strips. Tokens are routed by every process, all of
// them: where groups of them that are gated together are not divided, as there are fewer than
// processes, all tokens are gathered before. What comes of rows that are exchanged has room for
// all. Which layout is good is not searched for.
package mesh
