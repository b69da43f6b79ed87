package cpu_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
)

// opened is a device with a disk, and the disk's file.
func opened(t *testing.T, bytes int64) (*tiers, *os.File) {
	t.Helper()
	var file *os.File
	d := newTiers(t, bytes, func(f cpu.File) cpu.File {
		file, _ = f.(*os.File)
		return f
	})
	if file == nil {
		t.Skip("the file is not open under its own type")
	}
	return d, file
}

// TestDiskPages: whatever is written over what, in part or whole, what is read is what was
// written last, and what was never written is zero. When a byte changes, whoever reads it is
// told.
func TestDiskPages(t *testing.T) {
	const begin, size = cpu.SectionBytes - 2*cpu.PageBytes, 3*cpu.PageBytes + 777
	d, file := opened(t, begin+size)
	edges := rapid.OneOf(rapid.IntRange(0, size), rapid.SampledFrom([]int{0, 1, 64,
		cpu.PageBytes - 1, cpu.PageBytes, cpu.PageBytes + 1, 2 * cpu.PageBytes, size}))
	model := make([]byte, size)
	source := random(size)
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(r, "accesses") {
			lo, hi := edges.Draw(r, "lo"), edges.Draw(r, "hi")
			lo, hi = min(lo, hi), max(lo, hi)
			if rapid.Bool().Draw(r, "writes") {
				copy(model[lo:hi], source[rapid.IntRange(0, lo).Draw(r, "what"):])
				if err := d.disk.Write(begin+int64(lo), model[lo:hi]); err != nil {
					r.Fatal(err)
				}
			}
			got := make([]byte, hi-lo)
			if err := d.disk.Read(begin+int64(lo), got); err != nil ||
				!bytes.Equal(got, model[lo:hi]) {
				r.Fatalf("from %d to %d: %v", lo, hi, err)
			}
		}
		at := rapid.IntRange(0, size-1).Draw(r, "damaged")
		other := []byte{model[at] ^ 1<<rapid.IntRange(0, 7).Draw(r, "bit")}
		if _, err := file.WriteAt(other, begin+int64(at)); err != nil {
			r.Fatal(err)
		}
		err := d.disk.Read(begin+int64(at), make([]byte, 1))
		if !errors.Is(err, device.ErrDamaged) || !strings.Contains(err.Error(), file.Name()) {
			r.Fatalf("byte %d is another: %v", at, err)
		}
		if _, err := file.WriteAt(model[at:at+1], begin+int64(at)); err != nil {
			r.Fatal(err)
		}
		if err := d.disk.Read(begin, make([]byte, size)); err != nil {
			r.Fatalf("all is as it was: %v", err)
		}
	})
}

// TestDiskDamaged: a copy of what is not what was written is its task's error; a write that
// ends within it is, too, since the rest would get a checksum; one over all of it is not.
func TestDiskDamaged(t *testing.T) {
	d, file := opened(t, 1<<20)
	if err := d.host.Write(0, random(1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := d.copy(t, store, 4096, 8192); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("somebody was here"), 5000); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"whole":         d.copy(t, load, 4096, 8192),
		"another part":  d.again(t, load, 9000, 64),
		"with others":   d.again(t, load, 0, 1<<20),
		"written over":  d.again(t, store, 9000, 64),
		"or before it":  d.again(t, store, 4096, 64),
		"within it":     d.again(t, store, 6000, 64),
		"by a function": d.disk.Read(4096, make([]byte, 8)),
	} {
		if !errors.Is(err, device.ErrDamaged) || strings.Count(err.Error(), file.Name()) != 1 ||
			!strings.Contains(err.Error(), "page 0, at byte 4096") {
			t.Errorf("%s: error is %v", what, err)
		}
	}
	if err := d.again(t, load, 0, 4096); err != nil {
		t.Errorf("before it: %v", err)
	}
	if err := d.again(t, store, 4096, 8192); err != nil {
		t.Errorf("over all of it: %v", err)
	}
	if err := d.again(t, load, 4096, 8192); err != nil {
		t.Errorf("and back: %v", err)
	}
}

// TestDiskNeighbours: two may touch different bytes of what was written at once.
func TestDiskNeighbours(t *testing.T) {
	d, _ := opened(t, cpu.PageBytes)
	data := random(cpu.PageBytes)
	if err := d.disk.Write(0, data); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for k := range int64(8) {
		both.Go(func() {
			got := make([]byte, 4096)
			for range 50 {
				if err := d.disk.Write(k<<13, data[:4096]); err != nil {
					t.Error(err)
				}
				if err := d.disk.Read(k<<13+4096, got); err != nil ||
					!bytes.Equal(got, data[k<<13+4096:k<<13+8192]) {
					t.Errorf("%d: %v", k, err)
				}
			}
		})
	}
	both.Wait()
}
