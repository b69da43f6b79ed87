package cpu_test

import (
	"fmt"
	"testing"

	"github.com/gomem/gomem/internal/device/cpu"
)

// BenchmarkDisk writes 64 MiB to a disk that the operating system has in memory, in values of
// one size, and reads them.
func BenchmarkDisk(b *testing.B) {
	const size = 64 << 20
	d, err := cpu.Open(cpu.Options{DiskDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	m, err := d.Alloc(disk, size)
	if err != nil {
		b.Fatal(err)
	}
	data := random(16 << 20)
	for _, value := range []int64{64 << 10, 1 << 20, 16 << 20} {
		for _, access := range []struct {
			name string
			move func(int64, []byte) error
		}{{"store", m.Write}, {"load", m.Read}} {
			b.Run(fmt.Sprintf("%s/%dKiB", access.name, value>>10), func(b *testing.B) {
				b.SetBytes(size)
				for b.Loop() {
					for off := int64(0); off < size; off += value {
						if err := access.move(off, data[:value]); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
