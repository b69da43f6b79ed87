// Package gemm multiplies matrices of float32 on the processor, on raw slices.
//
// # Tiles
//
// The work is done by micro-kernels in assembly, one for every height and width
// of a tile of C that fits the registers: up to 14 rows of 32 columns with
// AVX-512, 6 of 16 with AVX2. A kernel holds the tile in registers, and at every
// k multiplies a vector of a row of B by each of a few elements of a column of A.
// A tile of 14×32 does 28 fused multiply-adds for 16 loads, so the arithmetic
// units are what limits it. The kernels come from the generator in gen, which
// go generate runs; the instruction set is chosen when the program starts. Where
// there is none, portable Go of the same shape takes its place.
//
// Rows are cut into panels of even height (20 rows are 10 and 10, not 14 and 6),
// and columns that fill no tile are masked. No edge is slow.
//
// # Packing
//
// The textbook copies blocks of A and B into panels before it multiplies, for
// three reasons: short strides, no two rows in the same set of the cache, and
// adjacency for the prefetcher. The copies are pure overhead and weigh most on
// the small products that training is full of, so this package makes as few as it
// can. A is read where it lies: a kernel reads it one element at a time, at any
// stride, and prefetches the next panel while it computes. Only an A whose rows are
// a multiple of a page apart is copied, since its rows share sets of the L1 cache;
// and for low tiles one whose columns are contiguous, since a panel of 6 rows uses 24
// bytes of every line, of lines that are far apart (on Zen 3 the kernel falls from 90 to
// 55 GFLOP/s). A block of some hundred rows at a time is copied to panels, for all
// columns of a task.
//
// A B with contiguous rows is read where it lies if it is small, or by few panels of A.
// Else a pass copies as much of it as stays in the L2 cache, row by row in long runs. To
// copy it as the first row of tiles reads it, a panel at a time, looks cheaper and is
// not: runs of 64 bytes, pages apart, took 44 % of the time of 64×1024×4096 for 1/11 of
// the arithmetic. A B with contiguous columns is transposed in registers on the way. The
// copy belongs to the thread, and is used up before the next is made.
//
// # Small products
//
// A product of a few tiles is over before its set-up has paid. Where the products of
// a batch are one panel wide, a kernel goes from product to product as it otherwise
// goes from panel to panel: a task is as many products as the L1 cache has room for.
//
// # Bias and activation
//
// A Product may have an epilogue, a bias and an activation, which is applied to rows
// of C while they are in the cache. It calls what the operations by themselves call,
// so that joining them changes no bit. It saves the passes through memory, not the
// arithmetic.
//
// # Few bits
//
// Operands of bfloat16, and rows of few bits (package fewbits), are widened as they are
// copied, and then always are copied; sums are in float32. The result has the bits of
// the product of the same numbers in float32. With a few rows of the other operand, what
// is widened at a time stays in the L1 or L2 cache, and memory is read once, packed. The
// processor's own products of bfloat16 (VDPBF16PS) flush subnormals and add in pairs, so
// their bits would be others, and are not used.
//
// # Few rows
//
// With a handful of rows, memory sets the speed, and what matters is to read B
// in long runs: see skinny.go. Tiles go over B a few rows at a time, as many streams as
// the processor prefetches by itself, and their sums wait in the L2 cache. To prefetch
// the next rows by instructions was half as fast: each keeps one of the L1 cache's few
// places for what is under way. A single row keeps its coefficients in registers. Few
// columns are few rows of the transpose.
//
// # Sums of products
//
// A tile can stay in registers for more than one product: a kernel that has come to
// the end of k may step to another place of A and of B and go on. Sum offers that
// to convolutions, whose taps are such terms. It packs nothing and runs on the
// caller's thread.
//
// # Threads
//
// C is cut into blocks of rows and columns, never along k, and each is a task;
// there are no barriers and nothing shared between tasks. Each element of C is
// the sum over k in ascending order, in blocks of kBlock, whatever tile it falls
// into; on the skinny paths, in an order that the shape alone sets. So the
// result has the same bits for any number of threads, and wherever the slices
// lie. Instruction sets may differ from each other in the last bits; portable Go is
// the same on every architecture. Built with the tag portable, a program uses it
// everywhere. A product can be computed in parts, by rows or by blocks of k, with the
// bits of the whole: see Order, Block and Resume.
//
// # What it does not do
//
// Sums and results are float32; there are no triangular, symmetric or sparse forms;
// and k is not split, so that one long dot product runs on one thread.
package gemm
