package gemm

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns a copy of s that begins or ends at a page that cannot be read
// or written.
func guarded(t *testing.T, s []float32, atEnd bool) []float32 {
	t.Helper()
	page := os.Getpagesize()
	size := (4*len(s) + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mem) })
	for _, guard := range [][]byte{mem[:page], mem[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	start := page
	if atEnd {
		start = page + size - 4*len(s)
	}
	out := unsafe.Slice((*float32)(unsafe.Pointer(&mem[start])), len(s))
	copy(out, s)
	return out
}

// TestStaysInBounds surrounds the operands with pages that must not be touched.
func TestStaysInBounds(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		for _, d := range [][3]int{{1, 70, 37}, {3, 5, 35}, {3, 300, 9}, {17, 41, 19},
			{40, 33, 530}, {16, 16, 16}, {45, 700, 33}, {75, 270, 500}} {
			for form := range 16 {
				x := problem{batch: 1 + 2*(form>>3), m: d[0], n: d[1], k: d[2], transA: form&1 != 0,
					transB: form&2 != 0, alpha: 1, beta: 1}
				x.pack()
				want := x.result(s, nil)
				atEnd := form&4 != 0
				x.a, x.b, x.c = guarded(t, x.a, atEnd), guarded(t, x.b, atEnd),
					guarded(t, x.c, atEnd)
				x.run(s, nil)
				if err := sameBits(x.c, want); err != nil {
					t.Errorf("%v: %v", &x, err)
				}
			}
		}
	})
}
