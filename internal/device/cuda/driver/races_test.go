//go:build linux && amd64 && !nocuda

package driver_test

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// racing are kernels that are right if their number is 1, and lack something if it is 0.
const racing = `
struct alignas(16) Four { float x[4]; };
extern "C" __global__ void neighbour(float *x, int right) {
	__shared__ float s[256];
	s[threadIdx.x] = 0;
	__syncthreads();
	s[threadIdx.x] = x[threadIdx.x];
	if (right) __syncthreads();
	x[threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void overtaken(float *x, int right) {
	__shared__ float s[256];
	s[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	float v = s[threadIdx.x ^ 64];
	if (right) __syncthreads();
	s[threadIdx.x] = v;
	x[threadIdx.x] = v;
}
extern "C" __global__ void lanes(float *x, int right) {
	__shared__ float s[256];
	s[threadIdx.x] = x[threadIdx.x];
	if (right) __syncwarp();
	else __shfl_sync(0xffffffffu, 1, 0);
	x[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void blocks(float *x, int right) {
	if (threadIdx.x == 0) x[right ? blockIdx.x : 0] = 1;
}
extern "C" __global__ void follows(float *x, int right) {
	if (threadIdx.x == 0) x[blockIdx.x] = right || !blockIdx.x ? 1 : x[blockIdx.x - 1];
}
extern "C" __global__ void counted(float *x, int right) {
	if (right) atomicAdd(x, 1.f);
	else *x += 1;
}
extern "C" __global__ void stale(float *x, int right) {
	__shared__ float s[64];
	if (threadIdx.x < 32) s[threadIdx.x] = 1;
	__syncthreads();
	if (threadIdx.x < 32) x[threadIdx.x] = s[right ? threadIdx.x : threadIdx.x + 1];
}
extern "C" __global__ void vectors(float *x, int right) {
	if (threadIdx.x == 0) *(Four *)(x + (right ? 4 : 1)) = Four{{1, 2, 3, 4}};
}
extern "C" __global__ void beyond(float *x, int right) {
	__shared__ float s[32];
	if (threadIdx.x == 0) s[right ? 31 : 32] = 1, x[0] = 1;
}
`

// TestRaces: what lacks a barrier, an atomic or an event, reads what nobody wrote or misaligns a
// vector is an error that says where, whatever it computed; what lacks none of them is no error.
func TestRaces(t *testing.T) {
	t.Setenv("EMU_RACES", "1")
	var code []byte
	for name, want := range map[string]string{
		"neighbour": "race in shared memory", "overtaken": "race in shared memory",
		"lanes": "race in shared memory", "blocks": "race in global memory",
		"follows": "race in global memory", "counted": "race in global memory",
		"stale": "nobody wrote this", "vectors": "misaligned", "beyond": "outside of an array",
	} {
		for right := range int32(2) {
			m := open(t)
			if code == nil {
				c, err := m.Compiler()
				ok(t, err)
				code, err = c.Compile(racing, "racing")
				ok(t, err)
			}
			mod, err := m.Load(code)
			ok(t, err)
			m.mod, m.free = mod, append(m.free, mod.Close)
			k, err := mod.Kernel(name)
			ok(t, err)
			x := m.put(make([]float32, 256))
			args := []byte{8: byte(right), 11: 0}
			for i := range 8 {
				args[i] = byte(x >> (8 * i))
			}
			blocks := uint32(1)
			if strings.Contains(want, "global") {
				blocks = 2
			}
			err = m.s.Launch(k.Prepare([3]uint32{blocks, 1, 1}, [3]uint32{256, 1, 1}, 0, args))
			ok(t, err)
			m.judge(name, want, m.Sync(), right == 1)
		}
	}
}

// judge compares an error with what is wanted of a thing that is right, or of one that is not.
func (m *machine) judge(name, want string, err error, right bool) {
	m.t.Helper()
	if right && err != nil {
		m.t.Errorf("%s: %v", name, err)
	}
	if !right && (err == nil || !strings.Contains(err.Error(), want)) {
		m.t.Errorf("%s: %v, want %s", name, err, want)
	}
	m.end()
}

// event is one that ends with the machine.
func (m *machine) event() *driver.Event {
	m.t.Helper()
	e, err := m.Event(false)
	ok(m.t, err)
	m.free = append(m.free, e.Close)
	return e
}

// TestRacesOfStreams: what two streams write has an event of the first between, or a wait of the
// host, or is an error, in whatever order it was done.
func TestRacesOfStreams(t *testing.T) {
	t.Setenv("EMU_RACES", "1")
	for name, between := range map[string]func(m *machine, other *driver.Stream){
		"nothing": func(*machine, *driver.Stream) {},
		"event": func(m *machine, other *driver.Stream) {
			e := m.event()
			ok(m.t, m.s.Record(e))
			ok(m.t, other.Wait(e))
		},
		"early event": func(m *machine, other *driver.Stream) {
			e := m.event()
			ok(m.t, other.Record(e))
			ok(m.t, m.s.Wait(e))
		},
		"host": func(m *machine, other *driver.Stream) {
			e := m.event()
			ok(m.t, m.s.Record(e))
			ok(m.t, e.Await())
		},
	} {
		m := open(t)
		other, err := m.Stream()
		ok(t, err)
		m.free = append(m.free, other.Close)
		p := m.alloc(64)
		ok(t, m.s.FillBytes(p, 1, 64))
		between(m, other)
		ok(t, other.FillBytes(p+60, 2, 4))
		m.judge(name, "race between streams", m.Sync(), name == "event" || name == "host")
	}
}

// TestNobodyWrote: what was allocated, or filled with ones as tests do, is not read.
func TestNobodyWrote(t *testing.T) {
	t.Setenv("EMU_RACES", "1")
	for name, fill := range map[string]int{"nothing": -1, "ones": 0xff, "zeros": 0} {
		m := open(t)
		p := m.alloc(64)
		if fill >= 0 {
			ok(t, m.s.FillBytes(p, byte(fill), 64))
			ok(t, m.Sync())
		}
		m.judge(name, "nobody wrote this", m.Read(p, make([]byte, 64)), fill == 0)
	}
}
