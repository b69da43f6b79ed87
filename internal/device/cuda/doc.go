// Package cuda is the device for NVIDIA GPUs: operations run on the GPU, updates and what
// else a plan has on the host by the kernels of package cpu, and copies between the two on
// streams of their own, at once with both.
//
// # One goroutine issues
//
// The goroutine that drives the device hands tasks to queues and goes on. One other goroutine,
// tied to a thread on which the GPU's context is current, takes them and gives them to the
// GPU: a task is prepared when it is made, so that takes a call of the driver a kernel. A
// stream that waits for the host is held back there, while others go on; so nothing on the
// GPU ever waits for the host, an error leaves nothing that hangs, and what was begun is known:
// it was issued.
//
// # Memory
//
// The device's memory is one allocation of exactly the plan's peak, and addresses in it are
// the plan's. The host's memory is pinned in the background, piece by piece, after it was
// mapped; the first copies wait for their pieces. What a system does not let be pinned is copied
// through a mebibyte that is, which was taken first: the goroutine that issues waits for each of
// these copies, and no other stream is given anything meanwhile. What cuBLAS works in is one more
// allocation a compute stream, of [Workspace] bytes: it is there beside the plan's and must be
// counted to it. What cuDNN works in is scratch of the plan, as much as a convolution wants.
//
// Beside that the process has a context, modules of kernels, what libraries take for handles and
// load for their first product, and, of kernels whose threads need memory of their own, as much for
// all threads that the GPU has at once, which the driver takes by their first launch. [Measure] is
// how much that is before there are plans, and [Device.Beside] when all is ready. Streams are
// started, and products computed in them, before the plan's memory is taken, so that what is
// missing is missing then. NVML says what the process has; without it, it is what is not free, and
// a context that is thought to be no larger than others were seen to be.
//
// # Libraries
//
// Matrix products are cuBLAS's, by its older interface: with one workspace a stream and one
// algorithm a shape, which it chooses itself, they repeat to the bit. cuBLASLt would add sums of
// biases and activations to products, which may round otherwise than they do alone, so that fusion
// would change results; it is not used. Some versions have lost the end of sums whose number of
// terms is odd, in some shapes: so before the first step each product of the plans, of one shape
// and form once, is computed of ones in the plans' memory, and looked at ([ProductError]).
//
// Convolutions that are no matrix products are cuDNN's where it is found, of version 8 or 9, and
// kernels of our own otherwise, or where cuDNN does not compute a shape or wants more than 256 MiB
// to work in. That is asked before there are plans ([Convolves]), and tried: each convolution is
// computed once, of small whole numbers, and parts of what it comes to are compared with a plain
// loop. Every plan for the machine says it of every launch, and the device does it or refuses: it
// chooses nothing, and from then on what the library fails at is an error. Of cuDNN its older
// interface does, with one algorithm a pass that adds up in a fixed order.
//
// # What is not used, and why
//
// No pools of memory (cuMemAllocAsync): the plan knows all lifetimes. No managed memory: it
// moves when it likes. No callbacks of the driver: threads that C made would run Go.
//
// # Kernels that are written for launches
//
// A launch may come with a kernel that was written for it (Written, of internal/kernel/cuda). Those
// of a plan are compiled in one module when its tasks are made ([Device.Compile]), and kept beside
// the others. The driver takes memory of the GPU for them, beside the plan's: where it has none,
// that is an error, and [Options].Interpret does without.
//
// # Data that says what runs
//
// Loops that end by their data and branches are commands of which data says which are run (Branch,
// of internal/kernel/cuda): the goroutine that issues waits for the stream, copies the number from
// the GPU, and issues what it says. That ends, since what was issued waits for nothing that was
// not; but until then no other stream is given anything, and the stream that was waited for has
// nothing to do while it is told what is next. Conditional nodes of CUDA graphs would spare the
// wait: they need a driver of CUDA 12.4, and a graph for every such operation, of which the driver
// tells nobody how much memory it takes. Running a loop to its bound and selecting what counts
// would spare it too, and takes as long as the bound. Such an operation is not captured.
//
// # Graphs
//
// What a compute stream is given at once, the launches between two waits of a plan, is captured
// the second time it is given, and launched as one CUDA graph from then on. A
// task's calls have all that they say settled when it is made, and what differs from step to step
// is data that is copied to fixed addresses; so a graph is good for all steps, and waits stay
// outside of it. It is what networks of many small kernels are quicker by. The driver takes memory
// of the GPU for graphs, beside the plan's; where it has none, and where it captures otherwise
// nothing, tasks are given one by one, as they are with [Options].Eager, where a listener is told
// of each, and where data says what runs. The log says which and why, and how much less memory was
// free after graphs were made.
//
// # Errors
//
// A GPU tells of an error in a kernel with some later call, and does nothing after it until the
// process ends its context, which no library in it lets happen: a device that is opened later in
// the process is refused ([BrokenError]). The error is that of the task that was issued when it
// came up; with CUDA_LAUNCH_BLOCKING=1 in the environment the driver waits for each kernel, and it
// is the task at fault.
package cuda
