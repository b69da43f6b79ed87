// Package conv computes two-dimensional convolutions of float32 images and their
// gradients on the processor, on raw slices in NCHW order.
//
// # Shifts
//
// A convolution is a product of the filters, a matrix of output channels by input
// channels and taps, and of a matrix with a column of input elements for every
// place of the output. Written to memory that second matrix is as many times
// larger than the image as the filter has taps; for a residual network it
// would be the largest tensor of the step. Packing it piece by piece into panels
// for the product saves the memory, but every element is still copied once for
// every tap, a good part of the time if there are few output channels to use it.
//
// Here, in most shapes, nothing is copied more than once. A block of the images is
// copied to scratch with its padding, row after row at one pitch. Seen as one long
// row, the columns of a tap are this copy itself, shifted: by the pitch for a step
// down, by one element for a step right. So the matrix is there already, and the
// product is a sum over the taps of products of ordinary matrices (package gemm's
// Sum), whose tiles stay in registers from the first tap to the last. The price is
// the places between the end of one row and the begin of the next, which are
// computed and dropped; the zeros on the right of a row are also those on the left
// of the next, so that they are few.
//
// With a stride the rows and columns of the image are dealt out to as many planes,
// each of which a tap shifts by whole elements. The gradient of the input is the same
// the other way round: the gradient of the output is the source, and the
// destination's rows and columns are dealt out, each with the taps that reach it.
// With stride 1 it is a plain convolution. Dilation is another distance of shifts.
//
// In the gradient of the filter the places are what is summed over: the shifted
// planes are the left operand, the transposed gradient of the output the right
// one, and every tap has its own product.
//
// # Patches
//
// The shifts lose where images are small: their rows end in places that are dropped,
// their columns fill no tile, and the filters, by then the larger operand, have to be
// reordered by taps and are read again for every image. There the matrix of the
// textbook is written after all, for a block of about 400 places of several images,
// from the planes: a row for every channel and tap, in the order of the filters,
// which are read where they lie. All threads share that panel, and each multiplies it
// by filters of its own, as many as it can have: it is larger than a core's caches,
// and what is copied of it to them is read often. It costs a copy of an element for
// every tap, little beside the product with 64 channels and more of the destination.
// The same holds of images with a handful of channels, whose taps are too short for
// products of their own, and of filters of one element with a stride, where the copy
// takes the places that count. A block of one image is computed where it belongs in
// the destination.
//
// For the gradient of the filter the panel is transposed in registers: a row for
// every place, a column for every channel and tap. The left operand is the gradient
// of the output where it lies, an image a term of the sum, and the result has the
// order of the filters. Tasks have channels of their own; if that makes too few
// tasks, the shifts, which divide the places too, are used.
//
// # Few places
//
// At up to 14 places in all, as an image has at a network's end, most lanes of a tile would be
// idle, and filters are read from memory. There every filter is multiplied by what it sees at each
// place, as vectors, in the order in which it lies in memory, and read once.
//
// Some shapes go other ways: a filter of one element on a larger image is a plain
// product of matrices; and a group with one input channel, as in a depthwise
// convolution, has its planes added up directly.
//
// # Blocks and threads
//
// What a task works on fits the L2 cache. Tasks are independent: they are cut along
// the destination, and along the places only for the gradient of the filter by shifts,
// into parts that the shape alone sets and that are added up in order. So results have
// the same bits for any number of threads. A thread needs scratch of its own. Its
// size must not depend on the machine, so it is for MaxThreads threads, or for as
// many as there are tasks; more threads are left idle.
//
// # What follows
//
// Forward tells its caller which elements are complete, task by task: a bias, an activation
// or an addition then finds them in the cache.
//
// # What it does not do
//
// It has no Winograd or Fourier transforms, which would save multiplications
// and change the rounding; and one element type. A row
// of an image is not cut, so the scratch grows with the width. By shifts the
// gradient of the filter multiplies the places that it drops by zero, so an infinity
// in x may make more of its elements NaN than it should.
package conv
