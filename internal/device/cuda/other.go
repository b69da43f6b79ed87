//go:build !linux || !amd64 || nocuda

package cuda

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// Options configure a device.
type Options struct {
	GPU      int            // number of the GPU, from 0
	Source   string         // of all kernels
	Threads  int            // threads of a kernel of the host; 0: one for every processor
	DiskDir  string         // where the files of a disk memory are; "" means no disk
	Listener trace.Listener // told of every task; nil means nobody is
	Dirs     []string       // where libraries are looked for first
	Cache    string         // folder of compiled kernels; "" is the user's
	TF32     bool           // matrix products round their operands
	Eager    bool           // launches are not captured and launched as graphs
	// Interpret has no kernels compiled for chains: they are interpreted, to the same bits.
	Interpret bool
	Logger    *slog.Logger // told of what is not captured, and what takes long; nil logs nothing
}

// ErrLeftOut says that this binary cannot drive GPUs.
var ErrLeftOut = errors.New("this build has no CUDA device: it is for Linux on x86-64, " +
	"without the tag nocuda")

// Open is not possible in this build.
func Open(Options) (device.Device, error) { return nil, ErrLeftOut }

// Measure is not possible in this build.
func Measure(Options, int) (int64, error) {
	return 0, fmt.Errorf("%w: %w", ErrNone, ErrLeftOut)
}

// Convolves is true of no convolution in this build: there is no library.
func Convolves(_ Options, list []kernels.Conv) ([]Convolved, error) {
	return make([]Convolved, len(list)), nil
}

// GPUs is not possible in this build.
func GPUs([]string) ([]Info, error) { return nil, ErrLeftOut }

// Count is not possible in this build.
func Count([]string) (int, error) { return 0, ErrLeftOut }

// Reach is not possible in this build.
func Reach([]string, []int) (bool, error) { return false, ErrLeftOut }

// Find is not possible in this build.
func Find([]string, int) (Info, error) { return Info{}, fmt.Errorf("%w: %w", ErrNone, ErrLeftOut) }
