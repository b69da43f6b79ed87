package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/internal/tensor"
)

//go:embed peer.py
var peerSource string

// peer is PyTorch with a model, in a process that waits on a pipe while gomem
// has its turn.
type peer struct {
	about string
	blas  []library
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   bytes.Buffer
}

// task is what the peer is to compute, and how.
type task struct {
	config
	Threads        int     `json:"threads"`
	Rate           float64 `json:"rate"`
	BalanceWeight  float64 `json:"balance_weight"`
	CapacityFactor float64 `json:"capacity_factor"`
}

// tensors are named values, in order.
type tensors struct {
	names  []string
	values map[string]tensor.View
}

func (t *tensors) add(name string, v tensor.View) {
	if t.values == nil {
		t.values = map[string]tensor.View{}
	}
	t.names = append(t.names, name)
	t.values[name] = v
}

func (t *tensors) write(w io.Writer) error {
	var entries []safetensors.Entry
	for _, name := range t.names {
		entries = append(entries, safetensors.Entry{Name: name, Type: t.values[name].Type})
	}
	get := func(e safetensors.Entry) ([]byte, error) { return t.values[e.Name].Data, nil }
	return safetensors.Write(w, entries, nil, get)
}

// startPeer starts PyTorch and gives it a model's parameters, inputs and
// constants.
func startPeer(ctx context.Context, python string, c config, threads int,
	t *tensors) (*peer, error) {
	arg, err := json.Marshal(task{c, threads, learningRate, balanceWeight, capacityFactor})
	if err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.CommandContext(ctx, python, "-c", peerSource, string(arg))}
	p.cmd.Env = environment(os.Environ(), threads)
	p.cmd.Stderr = &p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w; %s", err, torchPackage)
	}
	var hello struct {
		About string
		BLAS  []library
	}
	err = t.write(p.in)
	if err == nil {
		err = p.answer(&hello)
	}
	if err != nil {
		return nil, errors.Join(p.explain(err), p.in.Close())
	}
	p.about, p.blas = hello.About, hello.BLAS
	return p, nil
}

// startRival starts a peer that a ratio to says something.
func startRival(ctx context.Context, python string, c config, threads int,
	t *tensors) (*peer, error) {
	p, err := startPeer(ctx, python, c, threads, t)
	if err != nil {
		return nil, err
	}
	if err := atItsBest(p.blas); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// torchPackage is what to do where PyTorch does not start.
const torchPackage = "`apt-get install python3-torch` provides PyTorch on Debian"

// library is one of linear algebra that PyTorch has loaded.
type library struct {
	Path     string
	Parallel int // whose threads OpenBLAS uses
}

// openMP is the Parallel of an OpenBLAS that uses OpenMP's threads.
const openMP = 2

// atItsBest refuses a PyTorch whose products are several times slower than they
// need be: a ratio to it would say nothing. One that loads no library of linear
// algebra has its own.
func atItsBest(blas []library) error {
	if len(blas) == 0 || slices.ContainsFunc(blas, func(l library) bool {
		return l.Parallel == openMP
	}) {
		return nil
	}
	return fmt.Errorf("PyTorch multiplies with %s, which is slower by far than OpenBLAS's build "+
		"with OpenMP: `apt-get install libopenblas0-openmp` provides that on Debian", blas[0].Path)
}

// explain prefers the last line that the peer complained with, its exception.
func (p *peer) explain(err error) error {
	stopped := p.cmd.Wait()
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	if last := lines[len(lines)-1]; last != "" && stopped != nil {
		return fmt.Errorf("%s; %s", last, torchPackage)
	}
	return err
}

// environment is that in which PyTorch is at its best: the widest vectors, no
// choice of OpenBLAS's kernels by variable, the build of OpenBLAS that shares
// OpenMP's threads, and freed memory that is kept rather than returned to the
// system and cleared again.
func environment(env []string, threads int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_") ||
			strings.HasPrefix(v, "LD_LIBRARY_PATH=")
	})
	path := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	if builds, err := filepath.Glob("/usr/lib/*-linux-gnu/openblas-openmp"); err == nil {
		path = append(builds, path...)
	}
	if len(path) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(path, string(filepath.ListSeparator)))
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ {
		env = append(env, "ATEN_CPU_CAPABILITY=avx512")
	}
	return append(env,
		fmt.Sprint("OMP_NUM_THREADS=", threads), fmt.Sprint("OPENBLAS_NUM_THREADS=", threads),
		"MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=17179869184",
		"MALLOC_TOP_PAD_=67108864")
}

// ask gives a command, and reads the answer into v.
func (p *peer) ask(command string, v any) error {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return p.explain(fmt.Errorf("PyTorch: %w", err))
	}
	if err := p.answer(v); err != nil {
		return p.explain(err)
	}
	return nil
}

func (p *peer) answer(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("PyTorch stopped: %w", err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("PyTorch answers %q: %w", line, err)
	}
	return nil
}

// close ends the peer: it stops at the end of its input.
func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
