// What all kernels share. The text is compiled by NVRTC, which has no headers, and by a host's
// compiler behind an emulator's shim, which defines GOMEM_EMU. No sum here depends on the order
// in which threads run: there are no atomics. Products are not fused with sums unless fmaf says
// so: the text is compiled with --fmad=false.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// A structure that a kernel reads where its arguments are, rather than copies for each thread.
#ifdef __CUDACC_RTC__
#define PARAM const __grid_constant__
#else
#define PARAM const
#endif

// Is a number below zero? One without a sign is not, and compilers warn of a plain question.
template <class T> __device__ __forceinline__ bool negative(T x) { return x <= 0 && x != 0; }

// Elements of a grid, each for one thread.
#define EACH(i, n) \
	for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); \
		i += (i64)gridDim.x * blockDim.x)

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }
__device__ __forceinline__ bool is_nan(float x) { return x != x; }

// The larger and the smaller of two, NaN if one is, b of two zeros.
__device__ __forceinline__ float max_of(float a, float b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float min_of(float a, float b) { return a < b || a != a ? a : b; }

// Numbers of bfloat16, to nearest even, NaN to a quiet one.
__device__ __forceinline__ float from_bf16(u16 h) { return __uint_as_float((u32)h << 16); }
__device__ __forceinline__ u16 to_bf16(float x) {
	u32 u = __float_as_uint(x);
	if ((u & 0x7fffffff) > 0x7f800000) return (u16)(u >> 16 | 0x40);
	return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
// Element types, as the host numbers them, and the integers among them.
enum { F32 = 1, I32, U8, BF16, F16, I64, F64, BOOL, I8, I16, U16, U32, U64 };
#define INTEGERS(CASE) \
	CASE(I8, signed char) CASE(I16, short) CASE(I32, int) CASE(I64, i64) \
	CASE(U8, u8) CASE(U16, u16) CASE(U32, u32) CASE(U64, u64)

// An element of bfloat16 that reads as a float and rounds what it is given. Kernels of which there
// is a second one, with _16 after its name, have such elements where the first has floats.
struct Half {
	u16 bits;
	__device__ __forceinline__ operator float() const { return from_bf16(bits); }
	__device__ __forceinline__ void operator=(float x) { bits = to_bf16(x); }
};

template <class T> struct Sum {
	__device__ static T zero() { return 0; }
	__device__ static T two(T a, T b) { return a + b; }
};
struct Max {
	__device__ static float zero() { return -infinity(); }
	__device__ static float two(float a, float b) { return max_of(a, b); }
};

// Teams share rows out among a block's threads: a warp takes a short row, a block a long one.
// Which it is depends on the row's length alone, and so do a sum's bits.
struct Team {
	int lane, size;
	i64 first, step; // rows
};
__device__ __forceinline__ Team team(int wide) {
	int warps = blockDim.x / 32;
	if (wide) return Team{(int)threadIdx.x, (int)blockDim.x, (i64)blockIdx.x, (i64)gridDim.x};
	return Team{(int)threadIdx.x % 32, 32, (i64)blockIdx.x * warps + threadIdx.x / 32,
		(i64)gridDim.x * warps};
}

// A reduction over a warp, whose result every thread gets.
template <class O, class T> __device__ __forceinline__ T fold_warp(T v) {
	for (int o = 16; o; o >>= 1) v = O::two(v, __shfl_xor_sync(0xffffffffu, v, o));
	return v;
}

// A reduction over a team, whose result every thread gets. All threads of the team take part.
template <class O, class T> __device__ T fold(Team t, T v) {
	__shared__ T part[32];
	v = fold_warp<O>(v);
	if (t.size == 32) return v;
	int warps = t.size / 32;
	__syncthreads(); // the parts may still be read by a fold before
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
	__syncthreads();
	int lane = threadIdx.x % 32;
	return fold_warp<O>(lane < warps ? part[lane] : O::zero());
}
__device__ __forceinline__ float sum_of(Team t, float v) { return fold<Sum<float>>(t, v); }
__device__ __forceinline__ float max_of(Team t, float v) { return fold<Max>(t, v); }

// Random words, as the host draws them: word e of the stream of a key is word e mod 4 of
// Philox4x32-10 at counter e/4.
__device__ __forceinline__ u64 scramble(u64 x) {
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}
__device__ __forceinline__ u64 stream_key(const int *seed, u64 salt) {
	return scramble(scramble((u64)(u32)seed[0] | (u64)(u32)seed[1] << 32) ^ salt);
}
struct Words {
	u32 w[4];
	// Word i, chosen among registers: an array with an index that varies is in local memory.
	__device__ __forceinline__ u32 at(int i) const {
		return i & 2 ? i & 1 ? w[3] : w[2] : i & 1 ? w[1] : w[0];
	}
};
__device__ inline Words philox(u64 key, u64 block) {
	u32 a = (u32)block, b = (u32)(block >> 32), c = 0, d = 0, k = (u32)key, l = (u32)(key >> 32);
	for (int i = 0; i < 10; i++) {
		u32 p = __umulhi(0xd2511f53u, a), q = __umulhi(0xcd9e8d57u, c);
		u32 lp = 0xd2511f53u * a, lq = 0xcd9e8d57u * c;
		a = q ^ b ^ k, b = lq, c = p ^ d ^ l, d = lp;
		k += 0x9e3779b9u, l += 0xbb67ae85u;
	}
	return Words{{a, b, c, d}};
}
__device__ __forceinline__ u32 philox_word(u64 key, u64 e) { return philox(key, e / 4).at(e % 4); }
// Words e to e+3.
__device__ inline Words philox_from(u64 key, u64 e) {
	Words r = philox(key, e / 4);
	int skip = e % 4;
	if (!skip) return r;
	Words next = philox(key, e / 4 + 1), out;
	for (int i = 0; i < 4; i++) out.w[i] = i + skip < 4 ? r.at(i + skip) : next.at(i + skip - 4);
	return out;
}
__device__ __forceinline__ float unit(u32 word) { return (float)(word >> 8) * (1.f / (1 << 24)); }

// The element of a value whose elements have so many bytes.
__device__ __forceinline__ void move(void *dst, i64 to, const void *src, i64 from, int bytes) {
	switch (bytes) {
	case 1: ((u8 *)dst)[to] = ((const u8 *)src)[from]; break;
	case 2: ((u16 *)dst)[to] = ((const u16 *)src)[from]; break;
	case 4: ((u32 *)dst)[to] = ((const u32 *)src)[from]; break;
	default: ((u64 *)dst)[to] = ((const u64 *)src)[from];
	}
}
__device__ __forceinline__ void wipe(void *dst, i64 to, int bytes) {
	switch (bytes) {
	case 1: ((u8 *)dst)[to] = 0; break;
	case 2: ((u16 *)dst)[to] = 0; break;
	case 4: ((u32 *)dst)[to] = 0; break;
	default: ((u64 *)dst)[to] = 0;
	}
}

// Axes with the strides of three operands along them; the last axis varies fastest.
struct Walk {
	i64 n, rank, size[8], stride[3][8], base[3];
};
__device__ inline void places(const Walk &w, i64 i, i64 *at, int operands) {
	for (int k = 0; k < operands; k++) at[k] = w.base[k];
	for (int a = (int)w.rank - 1; a >= 0; a--) {
		i64 rest = i / w.size[a], index = i - rest * w.size[a];
		for (int k = 0; k < operands; k++) at[k] += index * w.stride[k][a];
		i = rest;
	}
}
