// Products of matrices of bfloat16 by tensor cores: what a warp computes at once, of fragments of
// which every thread has a part. Numbers come in pairs that follow each other in the inner
// dimension, the first one in the lower half of a word.
__device__ __forceinline__ u16 bits_of(Half x) { return x.bits; }
__device__ __forceinline__ u16 bits_of(float x) { return to_bf16(x); }
__device__ __forceinline__ u32 pair_of(u16 a, u16 b) { return a | (u32)b << 16; }

// c += a·b by the threads' arithmetic, for GPUs whose tensor cores do not know bfloat16. Sums are
// in order.
__device__ inline void multiply_by_threads(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
	int lane = threadIdx.x % 32, row = lane / 4 * 4, column = lane % 4 * 8;
	for (int i = 0; i < 8; i++) {
		int t = i % 4, half = i / 4;
		u32 x[2], y[2];
		for (int j = 0; j < 2; j++) {
			x[j] = __shfl_sync(0xffffffffu, a[2 * half + j], row + t);
			y[j] = __shfl_sync(0xffffffffu, b[half], column + 4 * j + t);
		}
		for (int j = 0; j < 4; j++) {
			u32 p = x[j / 2], q = y[j % 2];
			c[j] = fmaf(__uint_as_float(p << 16), __uint_as_float(q << 16), c[j]);
			c[j] = fmaf(__uint_as_float(p & 0xffff0000), __uint_as_float(q & 0xffff0000), c[j]);
		}
	}
}

// c += a·b of a 16×16 and a 16×8 matrix, sums in f32, in an order that is the GPU's own. Of thread
// 4g+t, with p being pairs 2t, 2t+1: a has (g, p), (g+8, p), (g, p+8) and (g+8, p+8), b has (p, g)
// and (p+8, g), c has columns p of rows g and g+8. All threads of the warp take part.
__device__ __forceinline__ void multiply_by_warp(float (&c)[4], const u32 (&a)[4],
	const u32 (&b)[2]) {
#if defined(GOMEM_EMU)
	emu::multiply(c, a, b);
#elif __CUDA_ARCH__ >= 800
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
	multiply_by_threads(c, a, b);
#endif
}
