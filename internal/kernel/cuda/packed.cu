// Rows of few bits, as package quant has them: an element at a time.

enum { Q8_0 = 1, Q4_0, Q4_K, Q6_K, NF4, ROWS_BF16, ROWS_F16 };

__device__ __forceinline__ u16 two(const u8 *p) { return (u16)(p[0] | p[1] << 8); }

// A number of binary16.
__device__ inline float from_f16(u16 h) {
	u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
	if (e == 31) return __uint_as_float(sign | 0x7f800000 | m << 13 | (m ? 0x400000 : 0));
	if (e) return __uint_as_float(sign | (e + 112) << 23 | m << 13);
	float x = (float)m * __uint_as_float(103u << 23); // 2^-24
	return sign ? -x : x;
}

__device__ __constant__ const float quantiles[16] = {
	-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
	-0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
	0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
	0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

__device__ __forceinline__ float float_at(const u8 *p) {
	return __uint_as_float((u32)two(p) | (u32)two(p + 2) << 16);
}

// A block of 32 elements of a row whose elements are integers: some bytes, the number of the block
// in them, and what integers are multiplied by, and less what.
struct Block {
	const u8 *at;
	int part;
	float scale, floor;
};

__device__ inline Block block_of(int format, const u8 *row, i64 i) {
	switch (format) {
	case Q8_0: row += i * 34; return Block{row + 2, 0, from_f16(two(row)), 0};
	case Q4_0: row += i * 18; return Block{row + 2, 0, from_f16(two(row)), 0};
	case Q6_K: row += i / 8 * 210; return Block{row, (int)(i % 8), from_f16(two(row + 208)), 0};
	}
	row += i / 8 * 144; // of Q4_K
	const u8 *s = row + 4;
	int p = (int)(i % 8), step, floor;
	if (p < 4) step = s[p] & 63, floor = s[4 + p] & 63;
	else step = (s[4 + p] & 15) | s[p - 4] >> 6 << 4, floor = s[4 + p] >> 4 | s[p] >> 6 << 4;
	return Block{row + 16 + p / 2 * 32, p % 2, from_f16(two(row)) * (float)step,
		from_f16(two(row + 2)) * (float)floor};
}

// The code of element i of a block, and the step of its part, which is 1 but in Q6_K.
__device__ __forceinline__ int code_of(int format, const Block &b, int i) {
	switch (format) {
	case Q8_0: return (signed char)b.at[i];
	case Q4_0: return (b.at[i % 16] >> i / 16 * 4 & 15) - 8;
	case Q4_K: return b.at[i] >> b.part * 4 & 15;
	}
	int half = b.part / 4, quarter = b.part % 4;
	return ((b.at[64 * half + quarter % 2 * 32 + i] >> quarter / 2 * 4 & 15) |
		(b.at[128 + 32 * half + i] >> quarter * 2 & 3) << 4) - 32;
}
__device__ __forceinline__ int step_of(int format, const Block &b, int i) {
	return format == Q6_K ? (signed char)b.at[192 + b.part * 2 + i / 16] : 1;
}

// Element i of a row.
__device__ inline float packed_at(int format, const u8 *row, i64 i) {
	switch (format) {
	case NF4: {
		const u8 *b = row + 8 + i / 64 * 33;
		int k = (int)(i % 64);
		float scale = float_at(row) + float_at(row + 4) * (float)b[0];
		return quantiles[b[1 + k % 32] >> k / 32 * 4 & 15] * scale;
	}
	case ROWS_BF16: return from_bf16(((const u16 *)row)[i]);
	case ROWS_F16: return from_f16(((const u16 *)row)[i]);
	}
	Block b = block_of(format, row, i / 32);
	int k = (int)(i % 32);
	return b.scale * (float)step_of(format, b, k) * (float)code_of(format, b, k) - b.floor;
}

// The first of rows that are between two numbers, and how many, of n.
__device__ inline i64 between_rows(const int *between, i64 *n) {
	if (!between) return 0;
	i64 lo = between[0] > 0 ? between[0] : 0, hi = between[1] < *n ? between[1] : *n;
	*n = hi > lo ? hi - lo : 0;
	return lo;
}

// Products of n rows of x, or of those of them that are between two numbers, with all rows of w, 8
// rows of x by one of w a warp.
#define PACKED_ROWS 8
extern "C" __global__ void packed_product(float *out, const float *x, const u8 *w,
	const int *between, i64 n, i64 rows, i64 width, i64 bytes, int format) {
	i64 start = between_rows(between, &n);
	out += start * rows, x += start * width;
	i64 groups = (n + PACKED_ROWS - 1) / PACKED_ROWS, lane = threadIdx.x % 32;
	for (i64 t = blockIdx.x * 8 + threadIdx.x / 32; t < groups * rows; t += (i64)gridDim.x * 8) {
		i64 first = t / rows * PACKED_ROWS, j = t % rows;
		float sums[PACKED_ROWS] = {};
		for (i64 k = lane; k < width; k += 32) {
			float v = packed_at(format, w + j * bytes, k);
#pragma unroll
			for (int r = 0; r < PACKED_ROWS; r++)
				if (first + r < n) sums[r] = fmaf(x[(first + r) * width + k], v, sums[r]);
		}
#pragma unroll
		for (int r = 0; r < PACKED_ROWS; r++) {
			float sum = fold_warp<Sum<float>>(sums[r]);
			if (lane == 0 && first + r < n) out[(first + r) * rows + j] = sum;
		}
	}
}

// 256 elements of a row that is rounded to integers: codes times the scale of each 32, and of each
// 32 the sum of codes, too.
struct Rounded {
	short codes[256];
	float scales[8], sums[8];
};

// Rows of x rounded, of the same rows: see package fewbits.
extern "C" __global__ void packed_round(Rounded *to, const float *x, const int *between, i64 n,
	i64 width) {
	x += between_rows(between, &n) * width;
	i64 blocks = width / 32, groups = (width + 255) / 256;
	EACH(t, n * blocks) {
		i64 row = t / blocks, b = t % blocks;
		const float *from = x + row * width + b * 32;
		u32 most = 0;
		for (int i = 0; i < 32; i++) {
			u32 v = __float_as_uint(from[i]) & 0x7fffffff;
			most = v > most ? v : most;
		}
		float m = __uint_as_float(most), scale = m, times = 0;
		if (most < 15u << 23) scale = 0;
		else if (most < 255u << 23) scale = m / 16383.f, times = 16383.f / m;
		Rounded *g = to + row * groups + b / 8;
		int sum = 0;
		for (int i = 0; i < 32; i++) {
			int c;
			if (most < 255u << 23) c = (int)rintf(from[i] * times);
			else c = (from[i] == infinity()) - (from[i] == -infinity());
			g->codes[b % 8 * 32 + i] = (short)c, sum += c;
		}
		g->scales[b % 8] = scale, g->sums[b % 8] = (float)sum;
	}
}

// Products of rounded rows of x, of n or of those that are between two numbers, with all rows of w:
// 8 rows of x by 4 of w a warp. Of a product each of 8 threads has the sum of every eighth block.
extern "C" __global__ void packed_times(float *out, const Rounded *x, const u8 *w,
	const int *between, i64 n, i64 rows, i64 width, i64 bytes, int format) {
	out += between_rows(between, &n) * rows;
	i64 blocks = width / 32, groups = (width + 255) / 256, lane = threadIdx.x % 32;
	i64 fours = (rows + 3) / 4, tiles = (n + PACKED_ROWS - 1) / PACKED_ROWS * fours;
	int part = (int)(lane % 8);
	for (i64 t = blockIdx.x * 8 + threadIdx.x / 32; t < tiles; t += (i64)gridDim.x * 8) {
		i64 first = t / fours * PACKED_ROWS, j = t % fours * 4 + lane / 8;
		const u8 *row = w + (j < rows ? j : rows - 1) * bytes;
		float sums[PACKED_ROWS] = {};
		for (i64 b = part; b < blocks; b += 8) {
			Block block = block_of(format, row, b);
			const Rounded *g = x + first * groups + b / 8;
			int dots[PACKED_ROWS] = {};
			for (int i = 0; i < 32; i++) {
				int q = code_of(format, block, i) * step_of(format, block, i);
#pragma unroll
				for (int r = 0; r < PACKED_ROWS; r++)
					if (first + r < n) dots[r] += q * g[r * groups].codes[part * 32 + i];
			}
#pragma unroll
			for (int r = 0; r < PACKED_ROWS; r++) {
				if (first + r >= n) continue;
				const Rounded *y = g + r * groups;
				float both = block.scale * (float)dots[r] - block.floor * y->sums[part];
				sums[r] = sums[r] + y->scales[part] * both;
			}
		}
#pragma unroll
		for (int r = 0; r < PACKED_ROWS; r++) {
			float sum = sums[r];
			for (int o = 1; o < 8; o *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
			if (part == 0 && j < rows && first + r < n) out[(first + r) * rows + j] = sum;
		}
	}
}

// Products of such rows of x with the columns of w, 8 rows of x by one column a thread.
extern "C" __global__ void packed_product_back(float *out, const float *x, const u8 *w,
	const int *between, i64 n, i64 rows, i64 width, i64 bytes, int format) {
	i64 start = between_rows(between, &n);
	out += start * width, x += start * rows;
	i64 groups = (n + PACKED_ROWS - 1) / PACKED_ROWS;
	EACH(t, groups * width) {
		i64 first = t / width * PACKED_ROWS, k = t % width;
		float sums[PACKED_ROWS] = {};
		for (i64 j = 0; j < rows; j++) {
			float v = packed_at(format, w + j * bytes, k);
#pragma unroll
			for (int r = 0; r < PACKED_ROWS; r++)
				if (first + r < n) sums[r] = fmaf(x[(first + r) * rows + j], v, sums[r]);
		}
#pragma unroll
		for (int r = 0; r < PACKED_ROWS; r++)
			if (first + r < n) out[(first + r) * width + k] = sums[r];
	}
}

// Rows of a table by index, zero where it is outside.
extern "C" __global__ void packed_rows(float *out, const u8 *table, const int *index, i64 count,
	i64 rows, i64 width, i64 bytes, i64 first, int format) {
	EACH(i, count * width) {
		i64 at = index[i / width] - first;
		out[i] = at >= 0 && at < rows ? packed_at(format, table + at * bytes, i % width) : 0.f;
	}
}
