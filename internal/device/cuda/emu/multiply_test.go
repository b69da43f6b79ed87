//go:build linux && amd64

package emu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/emu"
)

// multiplying computes c + a·b of small matrices of bfloat16 by a warp: as tensor cores have
// fragments, as threads do without them, and element by element in double. It prints what differs.
const multiplying = `
extern "C" __global__ void fragments(float *out, const u16 *x, const u16 *y, int threads) {
	int lane = threadIdx.x, g = lane / 4, p = lane % 4 * 2;
	auto left = [=](int i, int k) { return pair_of(x[i * 16 + k], x[i * 16 + k + 1]); };
	auto right = [=](int k, int j) { return pair_of(y[k * 8 + j], y[k * 8 + 8 + j]); };
	u32 a[4] = {left(g, p), left(g + 8, p), left(g, p + 8), left(g + 8, p + 8)};
	u32 b[2] = {right(p, g), right(p + 8, g)};
	float c[4];
	for (int i = 0; i < 4; i++) c[i] = out[(g + i / 2 * 8) * 8 + p + i % 2];
	if (threads) multiply_by_threads(c, a, b);
	else multiply_by_warp(c, a, b);
	for (int i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + p + i % 2] = c[i];
}
EMU_KERNEL(fragments)
int main() {
	u16 x[256], y[128];
	u32 seed = 1;
	auto draw = [&] { return (float)(int)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 24); };
	for (u16 &v : x) v = to_bf16(draw() - 0.5f);
	for (u16 &v : y) v = to_bf16(draw() - 0.5f);
	float was[128], got[2][128];
	for (float &v : was) v = draw();
	for (int threads = 0; threads < 2; threads++) {
		memcpy(got[threads], was, sizeof was);
		struct { u64 out, x, y; int threads; } args{(u64)got[threads], (u64)x, (u64)y, threads};
		unsigned dims[6] = {1, 1, 1, 32, 1, 1};
		char why[256];
		if (fragments__emu((char *)&args, 28, dims, 0, 2, why, sizeof why)) return puts(why), 1;
	}
	for (int i = 0; i < 128; i++) {
		double sum = was[i];
		for (int k = 0; k < 16; k++)
			sum += (double)from_bf16(x[i / 8 * 16 + k]) * from_bf16(y[k * 8 + i % 8]);
		for (int threads = 0; threads < 2; threads++)
			if (!(fabs(got[threads][i] - sum) < 1e-6))
				printf("element %d is %g, by threads %g, want %g\n", i, got[0][i], got[1][i], sum);
	}
	return 0;
}
`

// TestMultiply: a warp's product of bfloat16 is that of its matrices within a rounding of each
// sum, whichever way it is computed.
func TestMultiply(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip(err)
	}
	text := emu.Header()
	for _, name := range []string{"prelude", "mma"} {
		file, err := os.ReadFile("../../../kernel/cuda/" + name + ".cu")
		if err != nil {
			t.Fatal(err)
		}
		text += string(file)
	}
	path := filepath.Join(t.TempDir(), "multiply")
	build := exec.Command("g++", "-std=c++17", "-O1", "-ffp-contract=off", "-w", "-pthread",
		"-x", "c++", "-o", path, "-")
	build.Stdin = strings.NewReader(text + multiplying)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
