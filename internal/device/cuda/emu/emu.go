// Package emu builds a stand-in for NVIDIA's libraries that runs on the CPU, for tests on
// machines without a GPU: libcuda, NVRTC, cuBLAS, cuDNN and NVML in one shared object.
//
// NVRTC's compiler is the host's C++ compiler, g++, with a header in which every thread of
// a block is a fiber. Streams are threads that may pause at random before each operation, so
// that what lacks a wait really races. Device memory starts as NaN and has pages around it
// that nobody may touch; copies are checked against what is allocated and what is pinned;
// calls from a thread without a context, of a handle without a workspace and of a kernel with
// other arguments than it has are refused. If asked to, it watches every access to memory, and
// finds what lacks a barrier or an event whether that did harm or not.
//
// What it does not show: speed, the order of tensor cores' sums, that of memory between blocks,
// the diagnostics of NVRTC, and inline PTX.
package emu

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed src
var embedded embed.FS

// Header is what the text of kernels is compiled behind: after it, EMU_KERNEL(name) makes a
// function name__emu of a kernel, which launches it.
func Header() string { return whole("kernel.h") }

// RaceFlags are what Header and kernels are compiled with so that they tell a watcher of every
// access to memory; they must not be linked with them, but with the text of Watcher, which is
// compiled without.
//
//go:embed src/race.flags
var RaceFlags string

// Watcher is the text of what finds races, and reads of what nobody wrote.
func Watcher() string { return whole("watch.cpp") }

// whole is the text of a file with all that it includes of this folder, each once.
func whole(name string) string {
	seen := map[string]bool{}
	var expand func(name string) string
	expand = func(name string) string {
		data, err := embedded.ReadFile("src/" + name)
		if err != nil {
			panic(err) // the files are of one commit
		}
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			file, ok := strings.CutPrefix(line, "#include \"")
			switch file = strings.TrimSuffix(file, "\"\n"); {
			case !ok:
				b.WriteString(line)
			case !seen[file]:
				seen[file] = true
				b.WriteString(expand(file))
			}
		}
		return b.String()
	}
	return expand(name)
}

// library is the file's name as a driver's; the others are links to it.
const library = "libcuda.so.1"

// Dir builds the libraries, if they are not there from an earlier test, and returns their
// folder. Without g++ the test is skipped, or fails if the environment variable CI is set:
// there is no other proof that anything works.
//
// The libraries read environment variables when a process makes its first context: EMU_JITTER_US,
// the longest pause before an operation of a stream; EMU_SEED of the pauses; EMU_ORDER of threads
// and blocks, 0 forward, 1 backward, 2 scattered; EMU_COUNT, how many GPUs there are; EMU_MEM,
// bytes of device memory, of several GPUs separated by commas, as for EMU_FAIL; EMU_FAIL, the
// number of the launch that fails while it runs, from 1; EMU_PEERFAIL likewise, of copies from
// other GPUs; EMU_PEERS, 0 where GPUs do not reach each other's memory; EMU_CAPTURE, what fails of
// capturing a graph: begin, work or upload; EMU_CONV_LACKS and EMU_CONV_FAILS, of how many filters
// convolutions are that cuDNN does not compute, and that it fails to prepare; EMU_CONV_BREAKS and
// EMU_CONV_ERRS likewise, that it fails to compute and computes wrong; EMU_CONV_ROOM, bytes that it
// works in; EMU_HANDLE, bytes that cuBLAS and cuDNN take for a handle, and EMU_FIRST, that cuBLAS
// takes for what it loads at first; EMU_CONTEXT and EMU_MODULE, that a context takes and a module;
// EMU_LOCAL, that each thread of a kernel has for itself: the first launch takes them for all that
// run at once; EMU_NVML, what NVML does: "broken", it does not start; "hidden", it does not list
// this process; "closed", it lists none, for want of permission; EMU_CHOOSY, which has the order of
// its additions depend on sizes, addresses modulo 256 and its workspace, as the choice among a
// library's kernels may; EMU_LOSES, of how many terms sums are of which it leaves out what is
// beyond a multiple of 8; EMU_HURRY, how much faster than the clock the times of events pass;
// EMU_PINS, bytes of the host that can be pinned; EMU_STICKY, which has errors outlive their
// context; EMU_UNBOUND, which has no thread get the context; EMU_ARCHS, compute capabilities that
// kernels are compiled for, "80 90"; EMU_INIT, what cuInit returns; EMU_VERSION of CUDA; EMU_RACES,
// which has every access to memory watched, as watch.h says: races of threads, of blocks and of
// streams, and what is read that nobody wrote, are errors of the launch.
//
// Where GOMEM_GPU is set, tests have the machine's GPU instead: the folder is that of
// GOMEM_CUDA_PATH, or none, and libraries are where they usually are.
func Dir(t testing.TB) string {
	t.Helper()
	if os.Getenv("GOMEM_GPU") != "" {
		return os.Getenv("GOMEM_CUDA_PATH")
	}
	if _, err := exec.LookPath("g++"); err != nil {
		const text = "g++ not found: the emulated GPU is built with it"
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	dir, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("EMU_DIR", dir)
	return dir
}

// Build makes the libraries, unless they are there, and returns their folder, whose name says
// what is in it: the environment variable EMU_DIR must be that.
func Build() (string, error) {
	sources, err := fs.Sub(embedded, "src")
	if err != nil {
		return "", err
	}
	names, err := fs.Glob(sources, "*")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range names {
		data, err := fs.ReadFile(sources, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	dir := filepath.Join(os.TempDir(), "gomem-emu-"+hex.EncodeToString(hash.Sum(nil))[:16])
	if _, err := os.Stat(filepath.Join(dir, library)); err == nil {
		return dir, nil
	}
	work, err := os.MkdirTemp("", "gomem-emu-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := errors.Join(os.CopyFS(work, sources), compile(work)); err != nil {
		return "", err
	}
	// another test may have been faster: then its folder stays
	if err := os.Rename(work, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// compile makes the libraries of the sources in a folder.
func compile(dir string) error {
	cmd := exec.Command("g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden",
		"-o", library, "driver.cpp", "graph.cpp", "nvrtc.cpp", "cublas.cpp", "cudnn.cpp",
		"nvml.cpp", "watch.cpp", "races.cpp", "-ldl", "-lpthread")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the emulated GPU cannot be built: %w\n%s", err, out)
	}
	for _, name := range []string{"libnvrtc.so.13", "libcublas.so.13", "libcublasLt.so.13",
		"libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9",
		"libcudnn_engines_precompiled.so.9",
		"libnvidia-ml.so.1"} {
		if err := os.Symlink(library, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
