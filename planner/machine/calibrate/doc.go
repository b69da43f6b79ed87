// Package calibrate measures the machine at hand, for package machine to price
// operations by.
//
// Every distinct operation of a graph (its signature: attributes, types of operands
// and results) is timed on the CPU device, on operands of the size that it has in the
// graph, and the least of several rounds is kept. Rooflines were the alternative, fitted
// to a few sizes of every operation: their errors on small operations, and on those whose
// speed depends on a shape, are tens of per cent, and a step is made of them.
//
// Operations are timed in sequence, like in a step, with operands where a step would
// have them: a result is read where it was made, memory is reused, and so on. The same
// operation run again and again, which is simpler, is up to twice as fast as in a step
// where it is short, for the processor foresees its branches; and with operands of its
// own it is several times slower where it only moves bytes, for they are in no cache.
// How many operations of a signature take part depends on the limits.
//
// What a kernel does may depend on data: routed experts compute what they are given.
// So operands that are not floating point are computed, by the operations that make
// them in the graph, of random numbers.
//
// Measuring is bounded: by time, and by the memory of a single operation. What does not
// fit is priced by the rates of the same operation at other sizes, or by those of all.
// Operations that occur often come first. Results are kept in a file for each machine,
// so that a graph is measured once; a file that is missing, damaged or of another
// machine is no error, but measured again.
//
// The machine may have something else to do meanwhile. Where the rounds of a number are far
// apart it is measured again next time, and the better is kept, until there were enough. Where
// a run disagrees, by more than twice ([Machine.Doubt]), what its plan was made by is forgotten
// and measured again.
//
// A GPU is measured in the same way, by its own clock, and kept by its name, its driver and
// libraries, and the text of its kernels. Its link is measured each way and both ways at once,
// and plans go by the latter, since they copy both ways. Its kernels refuse no numbers, so
// those of the processor say which make sense. What plans may have the host do, the updates of
// variables, is measured on the processor.
//
// What operations lose to copies that run beside them, of the processor's cores and of the memory's
// bandwidth, is measured with products and a sum that no cache holds, in turns without copies and
// with them.
//
// Not measured: what operations that run at the same time cost each other.
package calibrate
