package cpu_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/plan/space"
)

// disk is the space that is a file; load and store are the engines that reach it.
const disk = space.Host + 1

var load, store = space.Copier(disk, space.Host), space.Copier(space.Host, disk)

// TestDiskDevice: with a directory the device has a third memory, and engines
// between it and the host. When it is closed the directory is as before.
func TestDiskDevice(t *testing.T) {
	dir := t.TempDir()
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := cpu.Open(cpu.Options{Threads: 2, DiskDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, devicetest.Options{Computes: true, Engines: []space.Engine{space.Compute, space.CopyIn,
		space.CopyOut, space.HostCompute, load, store}})
	mustBeEmpty(t, dir)
}

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// tiers is a device with a disk, and memories on both sides of it.
type tiers struct {
	*cpu.Device
	host, disk device.Memory
	in, out    device.Stream
}

func newTiers(t *testing.T, bytes int64, wrap func(cpu.File) cpu.File) *tiers {
	t.Helper()
	dir := t.TempDir()
	d, err := cpu.OpenWith(cpu.Options{Threads: 1, DiskDir: dir}, wrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		mustBeEmpty(t, dir)
	})
	out := &tiers{Device: d}
	var errs [4]error
	out.host, errs[0] = d.Alloc(space.Host, bytes)
	out.disk, errs[1] = d.Alloc(disk, bytes)
	out.in, errs[2] = d.Stream("load", load)
	out.out, errs[3] = d.Stream("store", store)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return out
}

func same(f cpu.File) cpu.File { return f }

// copy copies between the memories, at the same addresses of both.
func (d *tiers) copy(t *testing.T, e space.Engine, off, bytes int64) error {
	t.Helper()
	h, f := device.Region{Mem: d.host, Off: off, Bytes: bytes},
		device.Region{Mem: d.disk, Off: off, Bytes: bytes}
	c, s := device.Copy{Engine: e, Step: 3, Name: "w", What: "stage", Dst: h, Src: f}, d.in
	if e == store {
		c.Dst, c.Src, s = f, h, d.out
	}
	task, err := d.Copy(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Run(task)
	return s.Sync()
}

func random(n int64) []byte {
	data := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

// TestDiskKeepsBytes: what goes to the disk, in pieces of any size, comes back; it is
// zero before, and the peak is counted as everywhere.
func TestDiskKeepsBytes(t *testing.T) {
	const size = 9<<20 + 5
	d := newTiers(t, size, same)
	data := random(size)
	first := make([]byte, 100)
	if err := d.disk.Read(size-100, first); err != nil || !bytes.Equal(first, make([]byte, 100)) {
		t.Errorf("a new file has %v, %v", first, err)
	}
	d.disk.ResetUsed()
	if err := d.host.Write(0, data); err != nil {
		t.Fatal(err)
	}
	for _, piece := range [][2]int64{{0, 1}, {1, 4 << 20}, {1 + 4<<20, 4<<20 + 1},
		{2 + 8<<20, size - 2 - 8<<20}, {7, 0}} {
		if err := d.copy(t, store, piece[0], piece[1]); err != nil {
			t.Fatal(err)
		}
		if used := d.disk.Used(); used < piece[0]+piece[1] {
			t.Errorf("used is %d after a copy to %d", used, piece[0]+piece[1])
		}
	}
	if err := d.host.Write(0, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := d.copy(t, load, 0, size); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, size)
	if err := d.host.Read(0, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("other bytes come back, %v", err)
	}
	clear(got)
	if err := d.disk.Write(64, data[:5<<20]); err != nil {
		t.Fatal(err)
	}
	if err := d.disk.Read(64, got[:5<<20]); err != nil || !bytes.Equal(got[:5<<20], data[:5<<20]) {
		t.Errorf("other bytes are read than were written, %v", err)
	}
}

// TestDiskRefused: a directory that is not there, and a file that no disk has room
// for, are errors that name them; nothing is left, and the device goes on.
func TestDiskRefused(t *testing.T) {
	dir := t.TempDir()
	d, err := cpu.Open(cpu.Options{DiskDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Alloc(disk, 1<<60)
	if e, ok := errors.AsType[*fs.PathError](err); !ok || !strings.HasPrefix(e.Path, dir) {
		t.Errorf("an exbibyte: %v", err)
	}
	mustBeEmpty(t, dir)
	if _, err := d.Alloc(disk, -1); err == nil {
		t.Error("a file of -1 bytes is made")
	}
	if m, err := d.Alloc(disk, 0); err != nil || m.Bytes() != 0 {
		t.Errorf("a file of no bytes: %v", err)
	}
	nowhere, err := cpu.Open(cpu.Options{DiskDir: dir + "/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	if _, err := nowhere.Alloc(disk, 8); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// faulty is a file that goes wrong as it is told.
type faulty struct {
	cpu.File
	read, write, stat error
	short             bool // reads give half of what is asked for
}

func (f *faulty) ReadAt(p []byte, off int64) (int, error) {
	if f.read != nil {
		return 0, f.read
	}
	if f.short {
		n, _ := f.File.ReadAt(p[:len(p)/2], off)
		return n, io.EOF
	}
	n, err := f.File.ReadAt(p, off)
	if err == nil {
		err = io.EOF // as a reader may say at the end
	}
	return n, err
}

func (f *faulty) WriteAt(p []byte, off int64) (int, error) {
	if f.write != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, f.write
	}
	return f.File.WriteAt(p, off)
}

func (f *faulty) Stat() (fs.FileInfo, error) {
	if f.stat != nil {
		return nil, f.stat
	}
	return f.File.Stat()
}

// TestDiskFaults: a read or write that fails, or ends early, is the error of its task,
// with the file's name; what the host has stays, and the device goes on.
func TestDiskFaults(t *testing.T) {
	var file *faulty
	d := newTiers(t, 1<<20, func(f cpu.File) cpu.File { file = &faulty{File: f}; return file })
	data := random(1 << 20)
	if err := d.host.Write(0, data); err != nil {
		t.Fatal(err)
	}
	full := &fs.PathError{Op: "write", Path: file.Name(), Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		fault  faulty
		engine space.Engine
		want   error
	}{
		"full":        {faulty{write: full}, store, syscall.ENOSPC},
		"write fails": {faulty{write: syscall.EIO}, store, syscall.EIO},
		"read fails":  {faulty{read: syscall.EIO}, load, syscall.EIO},
		"short read":  {faulty{short: true}, load, io.ErrUnexpectedEOF},
		"gone":        {faulty{stat: fs.ErrClosed}, load, fs.ErrClosed},
		"gone too":    {faulty{stat: fs.ErrClosed}, store, fs.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			if err := d.copy(t, store, 0, 1<<20); err != nil {
				t.Fatal(err)
			}
			c.fault.File = file.File
			*file = c.fault
			err := d.copy(t, c.engine, 0, 1<<19)
			*file = faulty{File: file.File}
			e, ok := errors.AsType[*device.Error](err)
			if !ok || e.Step != 3 || !errors.Is(err, c.want) ||
				strings.Count(err.Error(), file.Name()) != 1 {
				t.Errorf("error is %v", err)
			}
			if err := d.copy(t, load, 0, 8); err == nil {
				t.Error("a task runs after the error")
			}
			d.Reset()
			got := make([]byte, 1<<19)
			if err := d.host.Read(1<<19, got); err != nil || !bytes.Equal(got, data[1<<19:]) {
				t.Errorf("what was not under way has changed, %v", err)
			}
			if err := d.host.Write(0, data); err != nil {
				t.Fatal(err)
			}
			for _, e := range []space.Engine{store, load} {
				if err := d.copy(t, e, 0, 1<<20); err != nil {
					t.Errorf("after Reset: %v", err)
				}
			}
		})
	}
}

// TestDiskCut: a file that is cut while copies run is noticed, though what is written
// later makes it long again: nothing is read that nobody wrote.
func TestDiskCut(t *testing.T) {
	d, file := opened(t, 8<<20)
	data := random(8 << 20)
	if err := d.host.Write(0, data); err != nil {
		t.Fatal(err)
	}
	if err := d.copy(t, store, 0, 8<<20); err != nil {
		t.Fatal(err)
	}
	cut := make(chan error)
	go func() { cut <- file.Truncate(1 << 20) }()
	var err error
	for range 100000 {
		if err = d.copy(t, load, 0, 8<<20); err != nil {
			break
		}
	}
	if cutErr := <-cut; cutErr != nil {
		t.Fatal(cutErr)
	}
	for what, err := range map[string]error{
		"a load": err, "a store": d.again(t, store, 7<<20, 1<<20),
		"a load of what is left": d.again(t, load, 0, 1<<20),
		"a read":                 d.disk.Read(0, make([]byte, 8)),
		"a write":                d.disk.Write(0, make([]byte, 8)),
	} {
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), file.Name()) {
			t.Errorf("%s: error is %v", what, err)
		}
	}
}

// again is the error of a copy after the error before is forgotten.
func (d *tiers) again(t *testing.T, e space.Engine, off, bytes int64) error {
	t.Helper()
	d.Reset()
	return d.copy(t, e, off, bytes)
}
