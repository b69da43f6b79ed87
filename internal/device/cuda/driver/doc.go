// Package driver calls NVIDIA's libraries from Go without cgo: the driver (libcuda), the
// compiler of kernels (NVRTC), matrix products (cuBLAS), convolutions (cuDNN), and what says who
// has the GPU's memory (NVML). It knows no plans and no devices of ours.
//
// The libraries are found and loaded when the program runs, so it builds on a machine
// without CUDA, with CGO_ENABLED=0, and where there is no driver [Load] says so. Functions
// are bound by the names that the libraries export, whose suffixes fix their ABI. Every call
// of C goes through the function call: should a release of Go break how that is done, one
// file is replaced.
//
// # Threads
//
// The driver keeps its current context by thread of the operating system, and goroutines
// move between threads. What talks to a GPU therefore runs on a goroutine that called
// [GPU.Bind] and has not unbound yet. Unbinding clears the context, so that a goroutine that
// forgot to bind always fails instead of working by luck.
//
// # Where libraries are looked for
//
// In Options.Dirs; in GOMEM_CUDA_PATH; where the dynamic linker looks; in the folders of
// toolkits and of container runtimes; in the wheels of Python environments. NVIDIA's wheels
// come without run paths, so what a library needs beside it is loaded first.
//
// The build tag nocuda leaves all of it out: binaries are then static again.
package driver
