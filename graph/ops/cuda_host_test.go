//go:build linux && amd64 && !nocuda

package ops

import (
	"bufio"
	stdbytes "bytes"
	"crypto/sha256"
	_ "embed"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

//go:embed testdata/cuda/host.cpp
var hostText string

// host runs commands on this machine: the kernels' text, compiled behind a shim by the
// machine's compiler, in a process beside, whose memory is the test's.
type host struct {
	memory  []byte
	address uint64 // of the memory, as commands have it
	used    int64  // bytes of it; 0: all
	gpu     *realGPU
	orders  uint32 // the order in which threads run: forward, backward, scattered
	written bool   // kernels are those that were written for chains
	to      *bufio.Writer
	answers *bufio.Reader
}

const (
	hostAddress = 0x2000_0000_0000 // of the memory
	hostMemory  = 64 << 20
)

// kernelNames finds the kernels in the source.
var kernelNames = regexp.MustCompile(
	`(?m)^extern "C" __global__ void (?:__launch_bounds__\([\w, ]+\) )?(\w+)\(`)

// hostSource is the whole program of the text of kernels.
func hostSource(text string) string {
	var b, table strings.Builder
	b.WriteString(emu.Header())
	b.WriteString(text)
	for _, m := range kernelNames.FindAllStringSubmatch(text, -1) {
		fmt.Fprintf(&b, "EMU_KERNEL(%s)\n", m[1])
		fmt.Fprintf(&table, "\t{%q, %s__emu},\n", m[1], m[1])
	}
	b.WriteString("static const struct { const char *name; int (*run)(const char *, size_t, " +
		"const unsigned *, size_t, int, char *, size_t); } kernels[] = {\n")
	b.WriteString(table.String() + "};\n")
	b.WriteString(hostText)
	return b.String()
}

var errNoCompiler = errors.New("there is no g++ to compile kernels for this machine")

// hostFlags are what the compiler is told. In the long form the kernels end the process where they
// touch what is not theirs, of shared memory too, misalign a vector, or overflow what has no bits
// for that.
func hostFlags() []string {
	flags := []string{"-std=c++17", "-O1", "-ffp-contract=off", "-w", "-pthread"}
	if longtest.Enabled() && !watched {
		flags = append(flags, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
	}
	return flags
}

// watched is whether kernels tell of every access to memory: EMU_RACES.
var watched = os.Getenv("EMU_RACES") != ""

// buildHost compiles the program, unless a test before has: it is kept by its content.
func buildHost(source string) (path string, err error) {
	if _, err := exec.LookPath("g++"); err != nil {
		return "", errNoCompiler
	}
	text, flags := hostSource(source), hostFlags()
	watcher, kernels := emu.Watcher(), slices.Clone(flags)
	if watched {
		kernels = append(kernels, strings.Fields("-Og "+emu.RaceFlags)...) // built in half the time
	}
	sum := sha256.Sum256(fmt.Append([]byte(text+watcher), kernels))
	path = filepath.Join(os.TempDir(), fmt.Sprintf("gomem-kernels-%d-%x", os.Getuid(), sum[:12]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "gomem-kernels")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	err = errors.Join(os.WriteFile(in("host.cpp"), []byte(text), 0o600),
		os.WriteFile(in("watch.cpp"), []byte(watcher), 0o600))
	steps := [][]string{append(kernels, "-c", "-o", in("host.o"), in("host.cpp")),
		append(flags, "-o", in("host"), in("host.o"), in("watch.cpp"))}
	for _, args := range steps {
		if err != nil {
			return "", err
		}
		var out []byte
		if out, err = exec.Command("g++", args...).CombinedOutput(); err != nil {
			err = fmt.Errorf("the kernels do not compile: %v\n%s", err, out)
		}
	}
	if err != nil {
		return "", err
	}
	return path, os.Rename(in("host"), path)
}

// startHost starts the process; it ends with the test's. Where GOMEM_GPU is set, it is the
// machine's GPU.
func startHost(source string) (*host, error) {
	if os.Getenv("GOMEM_GPU") != "" {
		return startGPU(source)
	}
	path, err := buildHost(source)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "gomem-memory")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := file.Truncate(hostMemory); err != nil {
		return nil, err
	}
	cmd := exec.Command(path, file.Name(), strconv.Itoa(hostMemory),
		strconv.FormatUint(hostAddress, 10))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &host{address: hostAddress, to: bufio.NewWriter(in), answers: bufio.NewReader(out)}
	h.memory, err = syscall.Mmap(int(file.Fd()), 0, hostMemory, syscall.PROT_READ|
		syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err == nil { // it has opened its own once it answers
		err = h.run(cuda.Fill{Addr: hostAddress})
	}
	return h, errors.Join(err, os.Remove(file.Name()))
}

var theHost = sync.OnceValues(func() (*host, error) { return startHost(cuda.Source()) })

// needHost is the process that all tests share.
func needHost(t testing.TB) *host {
	t.Helper()
	h, err := theHost()
	if errors.Is(err, errNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// grant says which memory commands may touch, and whether they may read it before they write it:
// any other is nobody's where accesses are watched.
func (h *host) grant(operands, others []spot) error {
	if !watched || h.gpu != nil {
		return nil
	}
	list := []uint64{uint64(len(operands) + len(others))}
	for _, s := range operands {
		list = append(list, s.from, s.to-s.from, 1)
	}
	for _, s := range others {
		list = append(list, s.from, s.to-s.from, 0)
	}
	message, err := encoding.Append([]byte{'m'}, encoding.LittleEndian, list)
	if err != nil {
		return err
	}
	_, err = h.ask(message)
	return err
}

// ask sends a message; the answer is a line, without its end.
func (h *host) ask(message []byte) (string, error) {
	_, _ = h.to.Write(message)
	if err := h.to.Flush(); err != nil {
		return "", err
	}
	answer, err := h.answers.ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

// run runs a command.
func (h *host) run(c cuda.Command) error {
	if k, ok := c.(cuda.Kernel); ok && h.written {
		k.Name = k.Written.Name
		c = k
	}
	if h.gpu != nil {
		return h.gpu.run(h, c)
	}
	var message stdbytes.Buffer
	put := func(list ...any) {
		for _, x := range list {
			_ = encoding.Write(&message, encoding.LittleEndian, x) // to memory
		}
	}
	switch c := c.(type) {
	case cuda.Kernel:
		var name [64]byte
		copy(name[:], c.Name)
		put(uint8('k'), name, c.Grid, c.Block, c.Shared, uint32(len(c.Args)), h.orders, c.Args)
	case cuda.Gemm:
		put(uint8('g'), c.A, c.B, c.C, int64(flag(c.TransA)), int64(flag(c.TransB)), int64(c.M),
			int64(c.N), int64(c.K), int64(c.LdA), int64(c.LdB), int64(c.LdC), int64(c.Batch),
			c.StrideA, c.StrideB, c.StrideC, c.Alpha, c.Beta, uint64(flag(c.HalfIn)),
			uint64(flag(c.HalfOut)))
	case cuda.Copy:
		put(uint8('c'), c.To, c.From, c.Bytes)
	case cuda.Fill:
		put(uint8('f'), c.Addr, c.Words, uint64(c.Word))
	}
	answer, err := h.ask(message.Bytes())
	if err == nil && answer != "" {
		err = fmt.Errorf("%+v: %s", c, answer)
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%+v ended the process", c)
	}
	return err
}
