//go:build linux && amd64 && !nocuda

package driver

import "unsafe"

// Reaches reports whether a GPU can copy from the memory of another one directly, by their numbers.
func (d *Driver) Reaches(number, other int) (bool, error) {
	var gpus [2]int32
	for i, n := range []int{number, other} {
		if err := d.do(cuDeviceGet, uintptr(unsafe.Pointer(&gpus[i])), word(n)); err != nil {
			return false, err
		}
	}
	var can int32
	err := d.do(cuDeviceCanAccessPeer, uintptr(unsafe.Pointer(&can)), word(gpus[0]), word(gpus[1]))
	return can != 0, err
}

// FromPeer copies bytes from an address of another GPU, or of this one, to one of this GPU's.
func (s *Stream) FromPeer(dst uint64, from *GPU, src uint64, bytes int64) error {
	return s.gpu.do(cuMemcpyPeerAsync, uintptr(dst), s.gpu.context, uintptr(src), from.context,
		word(bytes), s.handle)
}
