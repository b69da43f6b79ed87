package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed peer/*.c peer/*.h
var sources embed.FS

// origin is what a peer is made of: a library and a program that times it.
type origin struct {
	name     string   // in a table's heading
	source   string   // file in the folder peer
	links    []string // flags after the source
	packages string   // what to install (Debian)
}

var (
	openBLAS = origin{"OpenBLAS", "gemm.c", []string{"-lopenblas"},
		"gcc libc6-dev libopenblas-dev libopenblas0-openmp"}
	oneDNN = origin{"oneDNN", "conv.c", []string{"-ldnnl"}, "gcc libc6-dev libdnnl-dev"}
	plainC = origin{"C", "vector.c", []string{"-lmvec"}, "gcc libc6-dev"}
)

// flags let the compiler use the widest vectors of this processor, and the
// vector functions of the C library: the best that it does with plain loops.
func flags() []string {
	f := []string{"-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fopenmp"}
	if masked() {
		f = append(f, "-mno-avx512f")
	}
	return f
}

// masked says that gomem is kept from AVX-512 on a processor that has it, and so are its
// peers.
func masked() bool { return strings.Contains(os.Getenv("GODEBUG"), "cpu.avx512f=off") }

// toolchain builds peers in a temporary folder.
type toolchain struct {
	cc  string // the compiler's name or path
	dir string
}

func newToolchain(cc string) (*toolchain, error) {
	dir, err := os.MkdirTemp("", "gomem-kernels")
	if err != nil {
		return nil, err
	}
	t := &toolchain{cc: cc, dir: dir}
	if err := t.unpack(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *toolchain) unpack() error {
	files, err := sources.ReadDir("peer")
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := sources.ReadFile("peer/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.dir, f.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (t *toolchain) close() error { return os.RemoveAll(t.dir) }

// build compiles a library's program, once, and returns its path.
func (t *toolchain) build(ctx context.Context, l origin) (string, error) {
	path := filepath.Join(t.dir, strings.TrimSuffix(l.source, ".c"))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	args := slices.Concat(flags(), []string{"-o", path, "peer.c", l.source}, l.links,
		[]string{"-lm"})
	cmd := exec.CommandContext(ctx, t.cc, args...)
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); first != "" {
			err = fmt.Errorf("%w: %s", err, first)
		}
		return "", err
	}
	return path, nil
}

// peer is a running program that times one library's kernels. Its process waits
// on a pipe while the other side of a comparison runs.
type peer struct {
	origin
	about   string // what it says of itself; if missing, why
	missing bool
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// start builds and starts a library's peer. One that cannot be built is missing,
// which is no error.
func (t *toolchain) start(ctx context.Context, l origin, threads int) *peer {
	p := &peer{origin: l}
	err := p.launch(ctx, t, threads)
	if err != nil {
		p.missing = true
		p.about = fmt.Sprintf("missing (%v); `apt-get install %s` provides it on Debian", err,
			l.packages)
	}
	return p
}

func (p *peer) launch(ctx context.Context, t *toolchain, threads int) error {
	path, err := t.build(ctx, p.origin)
	if err != nil {
		return err
	}
	p.cmd = exec.CommandContext(ctx, path, fmt.Sprint(threads))
	p.cmd.Env = environment(os.Environ(), threads, openMPBuilds())
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.about, err = p.line()
	return err
}

// environment is that in which a peer is at its best: no choice of OpenBLAS's
// kernels by variable but for its instructions, as many threads as gomem has, and the
// build of OpenBLAS
// that shares OpenMP's threads before others.
func environment(env []string, threads int, openMP []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_") ||
			strings.HasPrefix(v, "LD_LIBRARY_PATH=")
	})
	if path := append(openMP, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...); len(path) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(path, string(filepath.ListSeparator)))
	}
	if masked() {
		env = append(env, "OPENBLAS_CORETYPE=Haswell", "DNNL_MAX_CPU_ISA=AVX2")
	}
	return append(env, fmt.Sprint("OMP_NUM_THREADS=", threads),
		fmt.Sprint("OPENBLAS_NUM_THREADS=", threads))
}

// openMPBuilds are the folders where Debian keeps OpenBLAS built with OpenMP.
func openMPBuilds() []string {
	dirs, err := filepath.Glob("/usr/lib/*-linux-gnu/openblas-openmp")
	if err != nil {
		return nil
	}
	return dirs
}

func (p *peer) line() (string, error) {
	s, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s stopped: %w", p.source, err)
	}
	return strings.TrimSpace(s), nil
}

// ask puts a question, and returns the time and the sums of the answer.
func (p *peer) ask(repetitions int, question string) (time.Duration, sums, error) {
	if _, err := fmt.Fprintln(p.in, repetitions, question); err != nil {
		return 0, sums{}, fmt.Errorf("%s: %w", p.source, err)
	}
	line, err := p.line()
	if err != nil {
		return 0, sums{}, err
	}
	if reason, bad := strings.CutPrefix(line, "error "); bad {
		return 0, sums{}, fmt.Errorf("%s: %q: %s", p.source, question, reason)
	}
	var seconds float64
	var s sums
	if _, err := fmt.Sscan(line, &seconds, &s.value, &s.magnitude); err != nil {
		return 0, sums{}, fmt.Errorf("%s: answer %q: %w", p.source, line, err)
	}
	return time.Duration(seconds * 1e9), s, nil
}

// prepare has the peer run a problem once, on fresh operands.
func (p *peer) prepare(question string) (sums, error) {
	_, s, err := p.ask(0, question)
	return s, err
}

// side is the peer's side of a comparison: nil if it is missing.
func (p *peer) side(question string) side {
	if p.missing {
		return nil
	}
	return func(repetitions int) (time.Duration, error) {
		d, _, err := p.ask(repetitions, question)
		return d, err
	}
}

// close ends the peer: it stops at the end of its input.
func (p *peer) close() error {
	if p.missing {
		return nil
	}
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
